"""Which tokens pretraining masks, by what they are replaced, and how that is repeated."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from sbertkit import Encoder, InputError, MaskedSpans, MaskedTokens, MaskedWords
from sbertkit.training.pretraining.draws import HELD_OUT, Draws
from sbertkit.training.pretraining.pieces import Pieces
from sbertkit.training.pretraining.tasks.masking import MaskingTask
from sbertkit.training.pretraining.vocabulary import Vocabulary, similar_tokens
from sbertkit.training.pretraining.words import MAX_WORD, word_numbers

TOKENS = 1_000_000
TASKS: list[MaskingTask] = [MaskedTokens(), MaskedWords(), MaskedSpans()]
MASK, FIRST, LAST = 4, 2, 3
ORDINARY = np.arange(1_000, 30_000)
SEED = 7


def example(random: np.random.Generator, longest: int = 120) -> tuple[Any, Any]:
    """A text of words of one to five tokens between special ones: ids and words."""
    sizes = random.choice([1, 1, 1, 2, 2, 3, 5], random.integers(1, longest))
    words = np.repeat(np.arange(len(sizes)), sizes)
    ids = random.choice(ORDINARY, len(words)).astype(np.int32)
    return np.r_[FIRST, ids, LAST].astype(np.int32), np.r_[-1, words, -1]


@pytest.fixture(scope="module")
def examples() -> list[tuple[Any, Any]]:
    random = np.random.default_rng(1)
    made, count = [], 0
    while count < TOKENS:
        made.append(example(random))
        count += len(made[-1][0]) - 2
    return made


def ready(task: MaskingTask) -> MaskingTask:
    """The task with a vocabulary."""
    return type(task)(**task.options, vocabulary=Vocabulary(MASK, ORDINARY))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_of_a_million_tokens_the_share_is_masked_in_the_ratios_of_bert(
    task: MaskingTask, examples: Sequence[tuple[Any, Any]]
) -> None:
    draws, made = Draws(SEED, 0), ready(task)
    total = chosen = masked = kept = 0
    for ids, words in examples:
        found = made.masked(ids, words, draws.random(ids))
        places = found.places
        assert len(set(places.tolist())) == len(places)
        assert (words[places] >= 0).all(), "a special token was chosen"
        others = np.setdiff1d(np.arange(len(ids)), places)
        assert (found.ids[others] == ids[others]).all()
        total += int((words >= 0).sum())
        chosen += len(places)
        masked += int((found.ids[places] == MASK).sum())
        kept += int((found.ids[places] == ids[places]).sum())
    assert chosen / total == pytest.approx(0.15, abs=0.001)
    assert masked / chosen == pytest.approx(0.8, abs=0.005)
    assert kept / chosen == pytest.approx(0.1, abs=0.005)
    assert (chosen - masked - kept) / chosen == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("share", [0.05, 0.4])
@pytest.mark.parametrize("kind", [MaskedTokens, MaskedWords, MaskedSpans])
def test_another_share_is_exact_for_short_texts_too(kind: Any, share: float) -> None:
    random = np.random.default_rng(2)
    made, draws = ready(kind(mask=share)), Draws(SEED, 0)
    total = chosen = 0
    for ids, words in (example(random, longest=12) for _ in range(8_000)):
        chosen += len(made.masked(ids, words, draws.random(ids)).places)
        total += len(ids) - 2
    assert chosen / total == pytest.approx(share, abs=0.003)


def test_words_are_masked_as_a_whole_and_alike(examples: Sequence[tuple[Any, Any]]) -> None:
    made, draws = ready(MaskedWords()), Draws(SEED, 0)
    for ids, words in examples[:2_000]:
        found = made.masked(ids, words, draws.random(ids))
        chosen = set(found.places.tolist())
        for word in set(words[found.places].tolist()):
            places = np.flatnonzero(words == word)
            assert chosen.issuperset(places.tolist())
            states = {int(found.ids[p] == MASK) for p in places}
            assert len(states) == 1


def test_span_lengths_are_the_truncated_geometric_distribution() -> None:
    lengths = MaskedSpans().lengths(np.random.default_rng(3), 200_000)
    expected = np.array([0.2 * 0.8**n for n in range(10)])
    expected /= expected.sum()
    shares = np.bincount(lengths, minlength=11)[1:] / len(lengths)
    assert shares == pytest.approx(expected, abs=0.005)
    assert lengths.mean() == pytest.approx(3.8, abs=0.1)
    assert lengths.min() == 1
    assert lengths.max() == 10


def test_spans_are_runs_of_whole_words_of_those_lengths() -> None:
    random = np.random.default_rng(4)
    task, spans = MaskedSpans(mask=0.1), []
    for _ in range(3_000):
        words = np.r_[-1, np.arange(400), -1]
        units = sorted(task.units(words, random), key=lambda unit: unit.places[0])
        for unit, after in pairwise(units):
            assert after.places[0] > unit.after, "the token beside a span is not hidden"
        for unit in units:
            assert (np.diff(unit.places) == 1).all()
            assert (unit.before, unit.after) == (unit.places[0] - 1, unit.places[-1] + 1)
            spans.append(len(unit.places))
    # The last span of an example is shortened, which lowers the mean a little.
    assert np.mean(spans) == pytest.approx(3.6, abs=0.2)
    assert max(spans) == 10


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_dynamic_masks_differ_from_epoch_to_epoch_and_static_ones_repeat(task: MaskingTask) -> None:
    random = np.random.default_rng(5)
    texts = [example(random) for _ in range(50)]
    static = type(task)(**{**task.options, "static": 3})

    def places(made: MaskingTask, epoch: int) -> list[list[int]]:
        draws = Draws(SEED, epoch)
        draws = draws if made.static is None else draws.among(made.static)
        return [
            ready(made).masked(ids, words, draws.random(ids)).places.tolist()
            for ids, words in texts
        ]

    dynamic = [places(task, epoch) for epoch in range(4)]
    assert all(dynamic[a] != dynamic[b] for a in range(4) for b in range(a))
    assert dynamic[0] == places(task, 0)
    fixed = [places(static, epoch) for epoch in range(6)]
    assert fixed[:3] == fixed[3:]
    assert all(fixed[a] != fixed[b] for a in range(3) for b in range(a))
    assert Draws(SEED, HELD_OUT).among(3).epoch == HELD_OUT


# --- words


def pieces_of(folder: Path, texts: Sequence[str], **more: Any) -> Pieces:
    pieces = Pieces(Encoder.load(folder, pooling="mean", device="cpu"), **more)
    pieces.read(texts)
    return pieces


FAMILIES = ["bert", "roberta", "xlm_roberta", "albert", "deberta_v2", "modernbert", "mpnet"]
"""WordPiece, byte-level BPE and Unigram."""


@pytest.mark.parametrize("family", FAMILIES)
def test_words_end_at_blanks_for_every_kind_of_tokenizer(family: str, tmp_path: Path) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    text = "two bakers eat bread"
    words = pieces_of(folder, [text]).words[0]
    inner = words[words >= 0]
    assert len(set(inner.tolist())) == 4
    assert (np.diff(inner) >= 0).all()
    assert len(inner) > 4, "a word has several tokens"


@pytest.mark.parametrize("family", ["bert", "xlm_roberta"])
def test_chinese_words_are_those_of_its_segmenter(family: str, tmp_path: Path) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    text = "\u4e00\u4e2a\u4eba\u4e0d\u4e86\u89e3 ok"
    import rjieba

    expected = [len(word) for word in rjieba.cut(text[:6])]
    assert max(expected) > 1
    backend = Encoder.load(folder, pooling="mean").torch.spec.tokenizer.hf.backend_tokenizer
    encoding = backend.encode(text, add_special_tokens=False)
    numbers = word_numbers(encoding, text)
    by_character = {
        start: int(number)
        for number, (start, end) in zip(numbers, encoding.offsets, strict=True)
        if text[start:end].strip() and start < 6
    }
    assert [
        list(by_character.values()).count(number) for number in range(len(expected))
    ] == expected
    assert numbers[-1] == len(expected)


def test_a_word_of_many_tokens_is_divided(tmp_path: Path) -> None:
    folder = tiny_models.ARCHITECTURES["bert"](tmp_path / "model")
    words = pieces_of(folder, ["x" * (MAX_WORD + 1) + " " + "x" * MAX_WORD]).words[0]
    counts = np.bincount(words[words >= 0])
    assert counts.tolist() == [1] * (MAX_WORD + 1) + [MAX_WORD]


# --- pieces


def test_a_text_that_is_longer_than_the_model_reads_makes_several_pieces(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path / "model")
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    text = " ".join(["heron", "bakers", "salt"] * 60)
    pieces = pieces_of(folder, [text, "x", "", " "])
    ids = encoder.spec.tokenizer.tokenize_bare([text], None)[0].ids
    limit = encoder.max_tokens
    assert limit is not None
    *long, last = pieces.tokens
    assert np.concatenate([one.ids[1:-1] for one in long]).tolist() == ids.tolist()
    assert all(limit - 5 <= len(one.ids) <= limit for one in long[:-1]), "no word is divided"
    assert len(last.ids) == 3
    assert {int(one.ids[0]) for one in pieces.tokens} == {2}


def test_packed_texts_fill_the_model_and_are_divided_by_the_end_token(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path / "model")
    texts = [f"heron {number}" for number in range(40)]
    alone, packed = pieces_of(folder, texts), pieces_of(folder, texts, pack=True)
    assert len(packed.tokens) < len(alone.tokens) / 4
    assert max(packed.lengths) <= 64
    inner = np.concatenate([one.ids[1:-1] for one in packed.tokens])
    assert (
        inner[inner != 3].tolist()
        == np.concatenate([one.ids[1:-1] for one in alone.tokens]).tolist()
    )
    for tokens, words in zip(packed.tokens, packed.words, strict=True):
        assert (words[np.isin(tokens.ids, [2, 3])] == -1).all()
        assert np.unique(words[words >= 0]).tolist() == list(range(words.max() + 1))


# --- similar words


def test_similar_words_are_the_nearest_of_the_input_embeddings(tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_models.bert(tmp_path / "model"), pooling="mean", device="cpu")
    vocabulary = Vocabulary.of(encoder)
    used = np.arange(5, 400)
    found = similar_tokens(encoder, vocabulary, used)
    weight = encoder.torch.transformer.model.embeddings.word_embeddings.weight.detach().numpy()
    names = encoder.spec.tokenizer.hf.convert_ids_to_tokens(list(range(len(weight))))
    words = [n for n, name in enumerate(names) if name.isalpha() and n in vocabulary.ordinary]
    assert 0 < len(found) < len(used)
    for token, near in found.items():
        cosines = weight[words] @ weight[token] / np.linalg.norm(weight[words], axis=1)
        cosines /= np.linalg.norm(weight[token])
        best = [words[p] for p in np.argsort(-cosines) if words[p] != token and cosines[p] >= 0.4]
        assert near.tolist() == best[:5]


def test_a_word_without_a_similar_one_becomes_random_tokens() -> None:
    near = {1_000: np.array([2_000, 2_001])}
    task = MaskedWords(
        similar=True, mask=0.5, vocabulary=Vocabulary(MASK, ORDINARY), similar_to=near
    )
    random = np.random.default_rng(6)
    ids, words = np.array([FIRST, *[1_000] * 40, LAST]), np.r_[-1, np.arange(40), -1]
    found = task.masked(ids, words, random)
    replaced = found.ids[found.places]
    assert np.isin(replaced, [2_000, 2_001]).mean() == pytest.approx(0.8, abs=0.1)
    other = task.masked(np.where(ids == 1_000, 1_001, ids), words, random)
    assert MASK not in other.ids
    assert len(set(other.ids[other.places].tolist())) > 10


@pytest.mark.parametrize("mask", [0, 1.5, -0.1, float("nan"), True, "x"])
@pytest.mark.parametrize("kind", [MaskedTokens, MaskedWords, MaskedSpans])
def test_a_share_that_is_none_is_refused(kind: Any, mask: Any) -> None:
    with pytest.raises((InputError, TypeError), match="mask must be"):
        kind(mask=mask)
