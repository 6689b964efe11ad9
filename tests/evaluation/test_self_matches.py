"""Documents with a query's own id: the query itself, or another text by chance."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sbertkit.evaluation import evaluate_index, evaluate_retrieval
from sbertkit.evaluation.self_matches import is_own_text, other_texts

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

LONG = (
    "what similarity laws must be obeyed when constructing aeroelastic models of heated high speed "
    "aircraft"
)
ABSTRACT = (
    "An experimental study of a wing in a propeller slipstream was made in order to determine the "
    "spanwise distribution of the lift increase due to slipstream at different angles of attack of "
    "the wing and at different free stream to slipstream velocity ratios."
)


@pytest.mark.parametrize(
    ("query", "document"),
    [
        (LONG, LONG),
        (LONG, f"Aeroelastic models. {LONG.capitalize()}?"),
        (LONG, f"{LONG}\n\nI read the paper of 1956 and could not find an answer. " * 3),
        (f"  {LONG.upper()} !", LONG.replace(" ", "  ")),
        (LONG, LONG.replace("aeroelastic", "elastic")),
        (LONG, LONG[:-20]),
        ("goats", "Goats."),
        ("a", "A"),
        ("股市大跌的原因是什么", "股市大跌的原因是什么？今天上证指数下跌。"),
        ("!!", "!!"),
    ],
)
def test_equal_longer_and_edited_texts_are_the_querys_own(query: str, document: str) -> None:
    assert is_own_text(query, document)
    assert is_own_text(document, query)


@pytest.mark.parametrize(
    ("query", "document"),
    [
        (LONG, ABSTRACT),
        (LONG, ""),
        (LONG, "heated wings of aircraft at high speed obey other laws"),
        ("goats", "two sheep climb"),
        ("股市大跌的原因是什么", "奥巴马欲抢占大选先机"),
        ("!!", "??"),
    ],
)
def test_other_texts_are_not(query: str, document: str) -> None:
    assert not is_own_text(query, document)
    assert not is_own_text(document, query)


def test_a_relevant_document_is_an_answer_whatever_its_text() -> None:
    queries = {"1": LONG, "2": LONG, "3": LONG}
    documents = {"1": f"Q: {LONG} A: Mach's.", "2": LONG, "3": ABSTRACT}
    assert other_texts(queries, documents, {"1": {"1": 1}, "2": {"2": 0}}) == {"1", "3"}


TEXTS = {"1": "a kettle sings", "2": ABSTRACT, "3": LONG, "4": "rain on the roof"}
QUERIES = {"1": "rain on a roof", "2": "goats that climb", "3": LONG, "4": "how does rain sound"}
QRELS = {"1": {"4": 1}, "2": {"1": 1}, "3": {"2": 1}, "4": {"4": 1}}
"""The ids 1 and 2 are equal by chance, 3 is the query itself, 4 a question with its answer."""
RUN = {query: dict.fromkeys(TEXTS, 1.0) | {query: 2.0} for query in QUERIES}
"""The document with the query's id is the first hit."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "set"
    (place / "qrels").mkdir(parents=True)
    for name, content in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = (json.dumps({"_id": key, "text": text}) for key, text in content.items())
        (place / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    lines = (f"{query}\t{document}\t1\n" for query, of in QRELS.items() for document in of)
    (place / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return place


def excluded(run: Mapping[str, Mapping[str, float]]) -> set[str]:
    return {query for query, found in run.items() if query not in found}


def test_only_the_query_itself_is_excluded_and_the_rest_is_warned_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = evaluate_retrieval(RUN, folder, measures=["RR"])
    assert excluded(result.run) == {"3"}
    assert (result.exclude_self, result.self_matches, result.same_ids) == (True, 1, 3)
    assert result.per_query["RR"]["4"] == 1.0
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("3 queries each found a document with its own id, but another text or")
    assert "--exclude-self" in line


def test_by_id_alone_all_are_excluded_as_beir_does(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = evaluate_retrieval(RUN, folder, measures=["RR"], exclude_self=True)
    assert excluded(result.run) == set(QUERIES)
    assert (result.exclude_self, result.self_matches, result.same_ids) == (True, 4, 0)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "3 queries each found" in line
    assert "excluded by its id alone" in line


def test_kept_documents_are_warned_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = evaluate_retrieval(RUN, folder, measures=["RR"], exclude_self=False)
    assert excluded(result.run) == set()
    assert (result.exclude_self, result.self_matches, result.same_ids) == (False, 4, 0)
    assert ["BEIR excludes them" in record.getMessage() for record in caplog.records] == [True]


def test_a_collection_whose_ids_are_shared_by_design_is_measured_as_by_beir(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [json.dumps({"_id": key, "title": "a title", "text": QUERIES[key]}) for key in QUERIES]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    lines = "".join(f"{query}\t{(int(query) % 4) + 1}\t1\n" for query in QUERIES)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    by_text = evaluate_retrieval(RUN, folder)
    assert by_text == evaluate_retrieval(RUN, folder, exclude_self=True)
    assert (by_text.self_matches, by_text.same_ids) == (4, 0)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_encoder_and_index_exclude_what_a_run_does(
    folder: Path, tiny_encoder: "Encoder", tmp_path: Path
) -> None:
    from sbertkit.retrieval import SearchIndex

    results = [evaluate_retrieval(tiny_encoder, folder)]
    with SearchIndex.build(folder, tiny_encoder, tmp_path / "index") as index:
        results.append(evaluate_retrieval(index, folder))
        measured = evaluate_index(index, folder, k=4)
    for result in results:
        assert excluded(result.run) == {"3"}
        assert (result.self_matches, result.same_ids) == (1, 3)
    assert measured.recall == 1.0
    assert measured.measures is not None
    assert measured.measures["nDCG@10"].exact == pytest.approx(results[1].measures["nDCG@10"])
