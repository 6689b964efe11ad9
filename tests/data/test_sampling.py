"""Texts drawn from a corpus."""

import collections
from pathlib import Path
from typing import Any

import pytest

from sbertkit.data import Document
from sbertkit.data.sampling import sample_texts
from sbertkit.errors import InputError, InputTypeError, MissingFile

TEXTS = [f"text {number}" for number in range(100)]


def test_a_small_corpus_is_taken_whole_and_in_order() -> None:
    sample = sample_texts(TEXTS, 100)
    assert (sample.texts, sample.documents) == (tuple(TEXTS), 100)
    assert sample_texts(iter(TEXTS), 1_000).texts == tuple(TEXTS)


def test_a_sample_is_distinct_in_order_and_repeats_with_its_seed() -> None:
    sample = sample_texts(TEXTS, 10, seed=4)
    assert len(set(sample.texts)) == 10
    assert list(sample.texts) == sorted(sample.texts, key=TEXTS.index)
    assert sample == sample_texts(TEXTS, 10, seed=4)
    assert sample.texts != sample_texts(TEXTS, 10, seed=5).texts


def test_every_text_is_as_likely_as_any_other() -> None:
    counts = collections.Counter(
        text for seed in range(2_000) for text in sample_texts(TEXTS[:20], 5, seed=seed).texts
    )
    # 500 each, with a deviation of about 19
    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


def test_repeated_and_blank_texts_count_once_and_not_at_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = sample_texts(["one", " ", "two", "one", ""], 10)
    assert sample.texts == ("one", "two")
    assert "2 blank" in caplog.text


def test_documents_mappings_and_pairs_are_taken() -> None:
    corpus: list[Any] = [Document("1", "one"), {"id": "2", "text": "two"}, ("3", "three"), "four"]
    assert sample_texts(corpus, 10).texts == ("one", "two", "three", "four")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("one\n\ntwo\n")
    assert sample_texts(path, 10).texts == ("one", "two")
    with pytest.raises(MissingFile):
        sample_texts(tmp_path / "nowhere.txt", 10)


@pytest.mark.parametrize(
    ("corpus", "count", "kind"),
    [
        ([], 5, InputError),
        ([" "], 5, InputError),
        (["one"], 0, InputError),
        (["one"], 1.5, InputTypeError),
        (None, 5, InputTypeError),
        ({"id": "text"}, 5, InputTypeError),
        ([None], 5, InputTypeError),
    ],
)
def test_what_is_no_corpus_is_refused(corpus: Any, count: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sample_texts(corpus, count)


class Frame(list[Any]):
    """What iterates over the names of its columns."""

    columns = ("a", "text")


def test_samples_are_read_as_documents_are() -> None:
    with pytest.raises(InputTypeError, match=r"pass its rows as mappings"):
        sample_texts(Frame(["a", "text"]), 10)
    with pytest.raises(InputTypeError, match=r"row 2 \(int\)"):
        sample_texts(["fine", "fine two", 5], 10)  # type: ignore[list-item]
