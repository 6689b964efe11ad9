"""The forms of data of the ecosystem, each read into the rows that it means."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from sbertkit import InputError, RankingPair, TrainConfig
from sbertkit.data.ranking import read_ranking
from sbertkit.training.multi import TrainingSet

A, P, N, M = "where is it", "it is here", "a stone", "a tree"
POSITIVE, NEGATIVE = RankingPair.of(A, P, 1.0), RankingPair.of(A, N, 0.0)
OTHER = RankingPair.of(A, M, 0.0)

ROWS: dict[str, tuple[dict[str, Any], list[RankingPair]]] = {
    "pair": ({"anchor": A, "positive": P}, [POSITIVE]),
    "triplet": ({"anchor": A, "positive": P, "negative": N}, [POSITIVE, NEGATIVE]),
    "tuple": (
        {"anchor": A, "positive": P, "negative_1": N, "negative_2": M},
        [POSITIVE, NEGATIVE, OTHER],
    ),
    "lists": ({"query": A, "positive": P, "negatives": [N, M]}, [POSITIVE, NEGATIVE, OTHER]),
    "flag": ({"query": A, "pos": [P], "neg": [N, M]}, [POSITIVE, NEGATIVE, OTHER]),
    "labeled": ({"sentence1": A, "sentence2": N, "label": 0}, [NEGATIVE]),
    "question": ({"question": A, "answer": P}, [POSITIVE]),
    "sentences": ({"sentence1": A, "sentence2": P}, [POSITIVE]),
}
FILLER = {"labeled": {"sentence1": M, "sentence2": P, "label": 1}}


def jsonl(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def gzipped(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(folder, rows).read_bytes()))
    return path


def parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "rows.parquet"
    datasets.Dataset.from_list(rows).to_parquet(path)
    return path


def saved(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """What save_to_disk makes of one split."""
    datasets.Dataset.from_list(rows).save_to_disk(folder / "saved")
    return folder / "saved"


def saved_splits(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """What save_to_disk makes of several splits."""
    one = datasets.Dataset.from_list(rows)
    other = datasets.Dataset.from_list([{key: rows[0][key] for key in rows[0]}] * 3)
    datasets.DatasetDict({"train": one, "test": other}).save_to_disk(folder / "dict")
    return folder / "dict"


def hub(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A repository of the hub with Parquet files."""
    (folder / "hub" / "data").mkdir(parents=True)
    for split, part in (("train", rows), ("test", rows[:1])):
        path = folder / "hub" / "data" / f"{split}-00000-of-00001.parquet"
        datasets.Dataset.from_list(part).to_parquet(path)
    return folder / "hub"


FILES: list[Callable[[Path, list[dict[str, Any]]], Path]] = [
    jsonl,
    gzipped,
    parquet,
    saved,
    saved_splits,
    hub,
]


@pytest.fixture(autouse=True)
def quiet() -> None:
    datasets.disable_progress_bars()


@pytest.mark.parametrize("make", FILES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("form", ROWS)
def test_pairs(tmp_path: Path, form: str, make: Any) -> None:
    row, expected = ROWS[form]
    more = [RankingPair.of(M, P, 1.0)] if form in FILLER else []
    path = make(tmp_path, [row, *([FILLER[form]] if more else [])])
    assert read_ranking(path, distinct=True).pairs == (*expected, *more)


@pytest.mark.parametrize("make", FILES, ids=lambda one: one.__name__)
def test_scored_sentences(tmp_path: Path, make: Any) -> None:
    rows = [
        {"sentence1": A, "sentence2": P, "score": 0.75},
        {"sentence1": A, "sentence2": N, "score": 0.0},
    ]
    data = TrainingSet("sts", make(tmp_path, rows)).read(TrainConfig())
    assert [(*row[:2], row[3]) for row in data.rows] == [(A, P, 0.75), (A, N, 0.0)]


@pytest.mark.parametrize("make", FILES, ids=lambda one: one.__name__)
def test_labeled_sentences(tmp_path: Path, make: Any) -> None:
    rows = [
        {"premise": A, "hypothesis": P, "label": "entailment"},
        {"premise": A, "hypothesis": N, "label": "contradiction"},
    ]
    data = TrainingSet("nli", make(tmp_path, rows)).read(TrainConfig())
    assert [tuple(row[:2]) for row in data.rows] == [(A, P), (A, N)]
    assert data.label_numbers == [0, 2]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"anchor": A, "positive": A, "negative": N}, "a positive is the anchor itself"),
        ({"anchor": A, "positive": P, "negative": P}, "a positive is a negative, too"),
        ({"query": A, "pos": [P, N], "neg": [M, N]}, "a positive is a negative, too"),
        ({"anchor": A, "positive": "  ", "negative": N}, "the positive is blank"),
        ({"anchor": A, "positive": P, "negative": [3]}, "the negative must be text"),
    ],
)
def test_triplets_that_say_nothing_are_refused_with_their_line(
    tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    good = {"anchor": M, "positive": P} if "anchor" in row else {"query": M, "pos": [P]}
    path = jsonl(tmp_path, [good, row])
    with pytest.raises(InputError, match=f"^[^\n]*1 bad line: 2 [^\n]*{reason}"):
        TrainingSet("pairs", path).read(TrainConfig())


def test_a_label_that_is_missing_in_one_row_is_refused(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"query": A, "document": P, "label": 1},
        {"query": A, "document": N},
    ]
    with pytest.raises(
        InputError, match=r"1 bad line: 2 .*label must be a number from 0 to 1, found nothing"
    ):
        read_ranking(jsonl(tmp_path, rows))


def test_the_same_text_twice_is_counted_where_it_has_a_label(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from sbertkit.training.anchors import by_anchor
    from sbertkit.training.data_forms import PAIRS, TrainingData
    from sbertkit.training.examples import TextTable

    class Spec:
        def __init__(self) -> None:
            self.spec, self.prompts = self, ("", "")

    data = TrainingData(PAIRS, [RankingPair.of(A, A, 1.0), POSITIVE])
    found = by_anchor(data, TextTable(Spec()))  # type: ignore[arg-type]
    assert found.left_out == {"of a text with itself": 1}
