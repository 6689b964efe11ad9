"""What goes in and what is reported: kinds of input, blanks, surrogates, truncation, chunks."""

import logging
import random
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import tiny_models
from safetensors.torch import load_file, save_file

from sbertkit.encoder import Encoder, encoding
from sbertkit.errors import InputError, InputTypeError

TEXTS = ["two goats", "a", "the river Ob is long", "two goats", "ß und æ"]
SAME = 1e-5


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


class OnlyIndexed:
    """Iterable through __getitem__ alone, as some columns are."""

    def __len__(self) -> int:
        return len(TEXTS)

    def __getitem__(self, place: int) -> str:
        return TEXTS[place]


class Deceiving(list[str]):
    """Says another length than it has."""

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        (text for text in TEXTS),
        deque(TEXTS),
        map(str, TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=np.dtypes.StringDType()),
        [np.str_(text) for text in TEXTS],
        pd.Series(TEXTS),
        pd.Series(TEXTS, index=[9, 8, 7, 6, 5]),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS, dtype="category"),
        pd.DataFrame({"text": TEXTS})["text"],
        pl.Series(TEXTS),
        pl.DataFrame({"text": TEXTS})["text"],
        OnlyIndexed(),
        Deceiving(TEXTS),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_every_iterable_of_strings_gives_the_same(tiny_encoder: Encoder, texts: Any) -> None:
    found = tiny_encoder.encode(texts)
    assert found.dtype == np.float32
    assert found.shape == (5, tiny_encoder.dim)
    for text, vector in zip(TEXTS, found, strict=True):
        assert np.abs(vector - tiny_encoder.encode(text)).max() <= SAME


@pytest.mark.parametrize(
    "texts", [[], (), iter([]), np.array([], dtype=object), pd.Series([], dtype=str), pl.Series([])]
)
def test_no_texts_have_a_matrix_of_no_rows(tiny_encoder: Encoder, texts: Any) -> None:
    encoded = tiny_encoder.encode_with_report(texts)
    assert encoded.vectors.shape == (0, tiny_encoder.dim)
    assert encoded.vectors.dtype == np.float32
    assert encoded.report.rows == 0


def test_a_bare_string_has_one_vector(tiny_encoder: Encoder) -> None:
    found = tiny_encoder.encode(np.str_("two goats"))
    assert found.shape == (tiny_encoder.dim,)
    assert np.abs(found - tiny_encoder.encode(["two goats"])[0]).max() <= SAME


@pytest.mark.parametrize(
    "texts",
    [
        None,
        3,
        2.5,
        b"bytes",
        bytearray(b"bytes"),
        {"a": "b"},
        np.array("no dimension"),
        pd.DataFrame({"text": TEXTS}),
        pl.DataFrame({"text": TEXTS}),
        object(),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_what_holds_no_strings_is_refused_by_its_type(tiny_encoder: Encoder, texts: Any) -> None:
    with pytest.raises(InputTypeError, match="expected an iterable of strings") as no:
        tiny_encoder.encode(texts)
    assert type(texts).__name__ in str(no.value)
    assert isinstance(no.value, TypeError)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "NoneType"),
        (float("nan"), r"float \(nan\)"),
        (3, "int"),
        (b"b", "bytes"),
        (["b"], "list"),
        (("a", "b"), "tuple"),
        ({"text": "b"}, "dict"),
        (np.float32(1), "float32"),
        (pd.NA, "NAType"),
        (True, "bool"),
    ],
)
@pytest.mark.parametrize("row", [0, 3])
def test_a_row_that_is_no_string_is_named_with_its_type(
    tiny_encoder: Encoder, value: Any, found: str, row: int
) -> None:
    texts: list[Any] = ["a", "b", "c", "d"]
    texts[row] = value
    with pytest.raises(InputTypeError, match=f"^row {row}: expected a string, found {found}"):
        tiny_encoder.encode(texts)


@pytest.mark.parametrize(
    "column", [pd.Series(["a", None]), pl.Series(["a", None]), np.array([["a"], ["b"]])]
)
def test_a_column_with_gaps_or_more_dimensions_is_refused(
    tiny_encoder: Encoder, column: Any
) -> None:
    with pytest.raises(InputTypeError, match=r"^row [01]: expected a string, found"):
        tiny_encoder.encode(column)


BLANK = ["", " ", "\t\n", "\r\n", "\u00a0", "\u3000\u2003", "\u200b", "\ufeff", "\x00"]


def test_blank_texts_have_the_vector_of_the_empty_text_and_are_reported_once(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["first", *BLANK, "last"]
    encoded = tiny_encoder.encode_with_report(texts)
    assert encoded.report.blank == tuple(range(1, 10))
    assert warnings_of(caplog) == ["9 blank among 11 texts: given the vector of the empty text"]
    assert np.isfinite(encoded.vectors).all()
    assert len(np.unique(encoded.vectors[1:10], axis=0)) == 1
    for row in (0, 10):
        assert np.abs(encoded.vectors[row] - tiny_encoder.encode(texts[row])).max() <= SAME


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_blank_texts_are_finite_for_every_model(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean")
    encoded = encoder.encode_with_report(["", " \n"])
    assert np.isfinite(encoded.vectors).all()
    assert encoded.report.blank == (0, 1)


def test_unpaired_surrogates_become_the_replacement_character_and_are_reported_once(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["a \ud83d b", "a \ufffd b", "\udc4d", "\ufffd", "\U0001f604", "plain", "\ud83d\ude04"]
    encoded = tiny_encoder.encode_with_report(texts)
    assert encoded.report.repaired == (0, 2, 6)
    assert warnings_of(caplog) == ["3 of 7 texts had unpaired surrogates, which became U+FFFD"]
    assert np.array_equal(encoded.vectors[0], encoded.vectors[1])
    assert np.array_equal(encoded.vectors[2], encoded.vectors[3])
    assert np.array_equal(encoded.vectors[6], encoded.vectors[4])
    assert not np.array_equal(encoded.vectors[3], encoded.vectors[4])


def test_truncated_texts_are_counted_exactly_and_logged_once(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    fits = "a " * 62
    texts = [fits, "a " * 63, "short", "a " * 100]
    encoded = tiny_encoder.encode_with_report(texts)
    assert encoded.report.truncated == (1, 3)
    assert encoded.report.tokens_lost == 1 + 38
    assert warnings_of(caplog) == ["2 of 4 texts were truncated to 64 tokens (39 tokens lost)"]
    assert np.abs(encoded.vectors[[1, 3]] - encoded.vectors[0]).max() <= SAME


def test_texts_that_differ_only_behind_the_limit_have_one_vector(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    encoded = tiny_encoder.encode_with_report(["b " * 600 + "one", "b " * 600 + "two three"])
    assert np.abs(encoded.vectors[0] - encoded.vectors[1]).max() <= SAME
    caplog.clear()
    tiny_encoder.encode(["a short one"])
    assert warnings_of(caplog) == []


def test_the_prompt_counts_for_the_limit(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", max_tokens=10, prompts={"query": "x y z "})
    text = "a b c d e f g h"
    assert encoder.encode_with_report([text]).report.truncated == ()
    assert encoder.encode_with_report([text], kind="query").report.tokens_lost == 3


def test_equal_texts_are_computed_once_and_counted(tiny_encoder: Encoder) -> None:
    texts = ["a", "b", "a", "", " ", "a"]
    encoded = tiny_encoder.encode_with_report(texts)
    assert encoded.report.duplicates == 3
    assert np.array_equal(encoded.vectors[0], encoded.vectors[5])
    assert np.array_equal(encoded.vectors[3], encoded.vectors[4])
    assert not np.array_equal(encoded.vectors[0], encoded.vectors[1])


def test_nothing_is_logged_about_good_texts(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    report = tiny_encoder.encode_with_report(["one", "two"]).report
    assert warnings_of(caplog) == []
    assert (report.rows, report.truncated, report.blank, report.repaired) == (2, (), (), ())
    assert report.seconds > 0
    assert report.tokens_per_second == pytest.approx(10 / report.seconds)


def many_texts(count: int) -> list[str]:
    draw = random.Random(5)
    words = ["heron", "salt", "", "ω", "twelve", "\ud800", "x" * 90, "of", "the"]
    return [" ".join(draw.choices(words, k=draw.randint(0, 12))) for _ in range(count)]


@pytest.mark.parametrize("bound", ["_CHUNK_TEXTS", "_CHUNK_CHARS"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_more_texts_than_one_chunk_come_in_order_with_one_report(
    tiny_encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    bound: str,
    size: int,
) -> None:
    texts = many_texts(50)
    expected = tiny_encoder.encode_with_report(texts)
    logged = warnings_of(caplog)
    caplog.clear()
    monkeypatch.setattr(encoding, bound, size)
    found = tiny_encoder.encode_with_report(text for text in texts)
    assert np.abs(found.vectors - expected.vectors).max() <= SAME
    for name in ("rows", "truncated", "tokens_lost", "blank", "repaired"):
        assert getattr(found.report, name) == getattr(expected.report, name)
    assert warnings_of(caplog) == logged
    assert len(logged) == 3


def test_texts_are_drawn_no_further_than_one_chunk_ahead(
    tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", 4)
    drawn = 0

    def texts() -> Iterator[str]:
        nonlocal drawn
        for number in range(10):
            drawn += 1
            yield f"text {number}"

    ahead = [(drawn, len(vectors)) for vectors in tiny_encoder.start_run().vectors(texts())]
    assert ahead == [(8, 4), (10, 4), (10, 2)]


def test_a_bad_row_in_a_later_chunk_is_named_by_its_row(
    tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", 4)
    with pytest.raises(InputTypeError, match=r"^row 9: expected a string, found int"):
        tiny_encoder.encode([*"abcdefghi", 9, "j"])  # type: ignore[list-item]


@pytest.mark.parametrize("size", [2, 100])
def test_damaged_weights_are_refused_with_the_row(
    tiny_copy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    folder = tiny_copy()
    path = folder / "model.safetensors"
    weights = load_file(path)
    place = tiny_models.read_json(folder / "tokenizer.json")["model"]["vocab"]["q"]
    weights["embeddings.word_embeddings.weight"][place] = float("nan")
    save_file(weights, path, {"format": "pt"})
    encoder = Encoder.load(folder, pooling="mean")
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", size)
    assert np.isfinite(encoder.encode(["a", "b"])).all()
    with pytest.raises(InputError, match=r"row 3: the model gave a vector with NaN"):
        encoder.encode(["a", "b", "c", "q", "q"])


def test_an_error_of_the_iterator_itself_comes_through(tiny_encoder: Encoder) -> None:
    def texts() -> Iterator[str]:
        yield "a"
        raise TimeoutError("the source is gone")

    with pytest.raises(TimeoutError, match="the source is gone"):
        tiny_encoder.encode(texts())


@pytest.mark.parametrize("char", ["x", "漢", "丕", "👍", "ก"])
def test_a_very_long_line_is_encoded_and_its_truncation_counted(
    tiny_folder: Callable[[str], Path], char: str
) -> None:
    for architecture in ("bert", "roberta", "albert"):
        encoder = Encoder.load(tiny_folder(architecture), pooling="mean")
        encoded = encoder.encode_with_report(["short", char * 150_000, "also short"])
        assert np.isfinite(encoded.vectors).all()
        assert np.abs(encoded.vectors[0] - encoder.encode("short")).max() <= SAME
        assert encoded.report.truncated in ((), (1,))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_very_long_lines_do_not_gather_in_memory(tiny_folder: Callable[[str], Path]) -> None:
    # in a process of its own, whose memory other tests have not filled with holes
    code = (
        "import sys; from pathlib import Path; from sbertkit import Encoder\n"
        "encoder = Encoder.load(sys.argv[1], pooling='mean')\n"
        "def resident():\n"
        "    return int(Path('/proc/self/statm').read_text().split()[1]) * 4096\n"
        # two chunks first (one is tokenized ahead): what they take is kept, more lines add nothing
        "encoder.encode('丕' * (150_000 - number) for number in range(30))\n"
        "before = resident()\n"
        "encoder.encode('丕' * (150_000 + number) for number in range(60))\n"
        "print(resident() - before)"
    )
    command = [sys.executable, "-c", code, str(tiny_folder("bert"))]
    grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(grown) < 100_000_000  # all at once took a gigabyte


def test_progress_goes_to_standard_error_and_only_when_asked(
    tiny_encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_encoder.encode(["a"] * 10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("of", [list, tuple, lambda rows: np.array(rows, dtype=object)])
@pytest.mark.parametrize("wrong", [3, None, float("nan"), b"a"])
def test_a_list_is_checked_to_its_end_before_the_model_is_called(
    tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch, of: Callable[[Any], Any], wrong: Any
) -> None:
    calls: list[int] = []
    backend = tiny_encoder._runtime.backend

    def counted(texts: int) -> Any:
        calls.append(texts)
        return backend(texts)

    monkeypatch.setattr(tiny_encoder._runtime, "backend", counted)
    monkeypatch.setattr("sbertkit.encoder.encoding._CHUNK_TEXTS", 10)
    with pytest.raises(InputTypeError, match=r"^row 40: expected a string, found"):
        tiny_encoder.encode(of(["a"] * 40 + [wrong]))
    with pytest.raises(InputError, match=r"^row 40: the query is blank"):
        tiny_encoder.encode(of(["a"] * 40 + [" "]), kind="query")
    assert calls == []
    with pytest.raises(InputTypeError, match=r"^row 40"):
        tiny_encoder.encode(iter(["a"] * 40 + [wrong]))
    assert calls
