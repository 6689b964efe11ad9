"""Ranking data: what rows of each form give, and what is refused."""

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tiny_rerankers import write_collection

from sbertkit.data.ranking import RankingPair, RankingSet, read_ranking
from sbertkit.errors import InputError, InputTypeError, MissingFile


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def labels(found: RankingSet) -> list[tuple[str, str, float]]:
    return [(one.query, one.document, one.label) for one in found.pairs]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"query": "q", "document": "d", "label": 1}, [("q", "d", 1.0)]),
        ({"question": "q", "passage": "d", "score": 0.25}, [("q", "d", 0.25)]),
        ({"anchor": "q", "text": "d", "relevance": "0.5"}, [("q", "d", 0.5)]),
        ({"query": "q", "document": "d", "label": True}, [("q", "d", 1.0)]),
        ({"anchor": "q", "positive": "p", "negative": "n"}, [("q", "p", 1.0), ("q", "n", 0.0)]),
        (
            {"query": "q", "pos": ["p", "r"], "neg": ["n", "m"]},
            [("q", "p", 1.0), ("q", "r", 1.0), ("q", "n", 0.0), ("q", "m", 0.0)],
        ),
        ({"query": "q", "positive": "p"}, [("q", "p", 1.0)]),
        ({"query": "q", "positive": "p", "negative": None}, [("q", "p", 1.0)]),
        ({"query": "q\ud800", "positive": "p"}, [("q\ufffd", "p", 1.0)]),
    ],
)
def test_each_form_of_a_row_gives_its_pairs(
    tmp_path: Path, row: dict[str, Any], expected: list[tuple[str, str, float]]
) -> None:
    more = {"query": "z", "document": "z", "label": 1}
    found = read_ranking([write(tmp_path / "a.jsonl", row), write(tmp_path / "b.jsonl", more)])
    assert labels(found)[:-1] == expected
    assert [one.rows for one in found.sources] == [len(expected), 1]
    assert [one.group for one in found.pairs] == [int(label < 0.5) for *_, label in labels(found)]


def test_tables_of_other_formats_are_read_alike(tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_text('query,document,label\n"a, b",c,1\nd,e,0\n')
    tsv = tmp_path / "a.tsv.gz"
    tsv.write_bytes(gzip.compress(b"query\tpositive\tnegative\nq\tp\tn\n"))
    found = read_ranking([csv, tsv])
    assert labels(found) == [("a, b", "c", 1), ("d", "e", 0), ("q", "p", 1), ("q", "n", 0)]


def test_lists_in_parquet_are_read(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"query": ["q"], "positives": [["p"]], "negatives": [["n", "m"]]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert labels(read_ranking(tmp_path / "a.parquet")) == [
        ("q", "p", 1),
        ("q", "n", 0),
        ("q", "m", 0),
    ]


def test_judged_documents_of_a_collection_are_pairs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_collection(
        tmp_path / "beir",
        {"d1": "one", "d2": "two", "d3": "three"},
        {"q1": "first", "q2": "second"},
        {"q1": {"d1": 2, "d2": 0, "gone": 1}, "q2": {"d3": 1}},
    )
    with pytest.raises(InputError, match="no split 'train'"):
        read_ranking(folder)
    with caplog.at_level(logging.WARNING):
        found = read_ranking(folder, split="test")
    assert labels(found) == [("first", "one", 1), ("first", "two", 0), ("second", "three", 1)]
    assert found.sources[0].skipped == 1
    assert "1 judged pairs without a text left out" in caplog.text
    before = found.sources[0].sha256
    qrels = folder / "qrels" / "test.tsv"
    qrels.write_text(qrels.read_text() + "q2\td1\t0\n")
    assert read_ranking(folder, split="test").sources[0].sha256 != before


def test_duplicates_are_left_out_and_contradictions_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    row = {"query": "q", "document": "d", "label": 1}
    with caplog.at_level(logging.WARNING):
        found = read_ranking(write(tmp_path / "a.jsonl", row, row, {**row, "label": 0}))
    assert labels(found) == [("q", "d", 1), ("q", "d", 0)]
    assert "1 duplicate pairs left out" in caplog.text
    assert "1 pairs of query and document have more than one label" in caplog.text


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"query": " ", "document": "d", "label": 1}, "line 1 (the query is blank)"),
        ({"query": "q", "document": "d", "label": None}, "from 0 to 1, found nothing"),
        ({"query": "q", "document": "d", "label": 2}, "from 0 to 1, found 2"),
        ({"query": "q", "document": "d", "label": "high"}, "from 0 to 1, found high"),
        ({"query": "q", "document": "d", "label": [1]}, "from 0 to 1, found"),
        ({"query": "q", "document": 3, "label": 1}, "the document must be text, found int"),
        ({"query": "q", "positive": ["p", 3]}, "the positive must be text, found int"),
        ({"query": "q", "positive": "p", "negative": [""]}, "the negative is blank"),
        ({"query": "q"}, "neither document and label nor positive"),
        ({"document": "d", "label": 1}, "no field 'query'"),
    ],
)
def test_bad_rows_are_refused_by_line(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        read_ranking(write(tmp_path / "a.jsonl", row))
    assert reason.replace("line 1 ", "1 ") in str(refused.value)
    assert "a.jsonl" in str(refused.value)


def test_data_without_a_relevant_document_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"query": "q", "document": "d", "label": 0})
    with pytest.raises(InputError, match="expected at least one relevant document"):
        read_ranking(path)
    with pytest.raises(InputError, match="an empty list"):
        read_ranking([])
    with pytest.raises(MissingFile):
        read_ranking(tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match="unknown format"):
        read_ranking(write(tmp_path / "a.docx", {}))


def test_pairs_made_by_hand_are_checked() -> None:
    good = RankingPair.of("q", "d", 1.0)
    assert RankingSet((good,)).pairs == (good,)
    with pytest.raises(InputTypeError, match="pair 1: expected a RankingPair"):
        RankingSet((good, ("q", "d", 1)))  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="pair 0: expected a RankingPair of two texts"):
        RankingSet((RankingPair("q", None, 0, 1.0),))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="label from 0 to 1"):
        RankingSet((RankingPair("q", "d", 0, 7.0),))
    with pytest.raises(InputError, match=r"RankingPair\.of"):
        RankingSet((RankingPair("q", "d", 1, 1.0),))
