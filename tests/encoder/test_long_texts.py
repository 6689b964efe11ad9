"""Giant texts: the tokens of the whole text, from bounded pieces of it."""

import itertools
import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sbertkit.encoder import Encoder, long_texts, tokenization
from sbertkit.encoder.tokenization import Tokenizer

WORDS = [
    *("the", "heron", "an", "Ünïcödé", "a\u0301e\u0301", "don't", "x", "123,456", "🙂🙂", "ΟΔΟΣ"),
    *(
        "[SEP]",
        "</s>",
        "<|endoftext|>",
        "\u200f",
        "日本語のテキスト",
        "y" * 40,
        "##",
        "...",
        "\ufffd",
    ),
]
SPACES = [" ", " ", "  ", "\n", "\t ", "", "\u3000", "\r\n"]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=200).map(
    lambda pairs: "".join(itertools.chain.from_iterable(pairs))
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds so small that a text of a few hundred characters is long."""
    monkeypatch.setattr(tokenization, "LONG_CHARS", 150)
    monkeypatch.setattr(long_texts, "WINDOW_CHARS", 60)
    monkeypatch.setattr(long_texts, "CONTEXT_CHARS", 250)
    monkeypatch.setattr(long_texts, "COUNTED_CHARS", 400)


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Callable[[str], Path]) -> Callable[..., Tokenizer]:
    @cache
    def load(architecture: str, *, left: bool = False) -> Tokenizer:
        hf = transformers.AutoTokenizer.from_pretrained(tiny_folder(architecture))
        hf.truncation_side = "left" if left else "right"
        return Tokenizer(hf)

    return load


def whole(tokenizer: Tokenizer, text: str, room: int | None) -> tuple[list[int], int]:
    """Ids and truncated tokens of a text that is tokenized in one piece."""
    encode: Any = tokenizer._fast or tokenizer.hf
    ids = (
        encode.encode(text, add_special_tokens=False).ids
        if tokenizer._fast
        else encode(text, add_special_tokens=False)["input_ids"]
    )
    found = tokenizer._tokens(ids, len(ids), room)
    special = tokenizer.special
    with_special = [*special.before, *found.ids.tolist(), *special.after]
    return with_special or [tokenizer._filler_id()], found.truncated


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=TEXTS, room=st.one_of(st.none(), st.integers(1, 60)))
def test_a_long_text_has_the_tokens_of_the_whole_text(
    small: None,
    tokenizer: Callable[..., Tokenizer],
    architecture: str,
    left: bool,
    text: str,
    room: int | None,
) -> None:
    ours = tokenizer(architecture, left=left)
    limit = None if room is None else room + len(ours.special)
    (found,) = ours.tokenize([text], limit)
    ids, truncated = whole(ours, text, room)
    assert found.ids.tolist() == ids
    assert (found.truncated > 0) == (truncated > 0)
    if found.exact:
        assert found.truncated == truncated


@pytest.mark.usefixtures("small")
def test_truncated_tokens_are_counted_up_to_a_bound_and_estimated_beyond(
    tokenizer: Callable[..., Tokenizer],
) -> None:
    ours = tokenizer("bert")
    (counted, estimated) = ours.tokenize(["ab " * 130, "ab " * 1_300], 12)
    assert counted[1:4] == (130 * 2 - 10, True, 0)
    assert not estimated.exact
    assert estimated.truncated == pytest.approx(1_300 * 2 - 10, rel=0.05)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("text", [" " * 3_000 + "heron", "y" * 3_000, "y" * 3_000 + " heron"])
def test_a_text_of_few_tokens_is_read_to_its_end(
    tokenizer: Callable[..., Tokenizer], text: str
) -> None:
    ours = tokenizer("bert")
    (found,) = ours.tokenize([text], 12)
    assert (found.ids.tolist(), found.truncated, found.exact) == (*whole(ours, text, 10), True)


@pytest.mark.usefixtures("small")
def test_the_report_tells_an_estimate_from_a_count(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    report = tiny_encoder.encode_with_report(["ab " * 100, "ab " * 10]).report
    assert (report.tokens_lost, report.tokens_lost_exact) == (100 * 2 - 62, True)
    report = tiny_encoder.encode_with_report(["ab " * 1_000, "ab " * 100]).report
    assert not report.tokens_lost_exact
    assert "truncated to 64 tokens (about " in caplog.text


def test_a_giant_text_has_the_vector_of_its_beginning(bundled_encoder: Encoder) -> None:
    beginning = "A heron stands in the shallow water, and two bakers argue about salt. " * 50
    short, giant = bundled_encoder.encode([beginning, beginning + "x y " * 500_000])
    assert np.abs(short - giant).max() <= 1e-5


def test_a_giant_text_costs_little_memory_for_its_size(bundled_encoder: Encoder) -> None:

    text = "two bakers argue about salt " * 350_000  # 10 MB
    bundled_encoder.encode(["warm"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bundled_encoder.tokenizer.tokenize([text], bundled_encoder.max_tokens)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100_000  # KB
