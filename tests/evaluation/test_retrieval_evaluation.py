"""Runs, encoders and indexes on judged queries."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoded, EncodeReport
from sbertkit.encoder.protocols import Kind
from sbertkit.errors import InputError, InputTypeError, MissingFile
from sbertkit.evaluation import evaluate_retrieval, evaluate_run
from sbertkit.evaluation.text_counts import TextCounts

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

Make = Callable[..., Path]

TEXTS = {
    "d1": "a kettle sings on the stove",
    "d2": "two goats climb the hill",
    "d3": "the stove is cold",
    "d4": "rain on the roof",
    "q-own": "the goats and the kettle",
}
QUERIES = {"q1": "a kettle sings", "q2": "goats climb", "q-own": "the goats and the kettle"}
QRELS = {"q1": {"d1": 2, "d3": 1}, "q2": {"d2": 1}, "q-own": {"d2": 1, "d1": 1}}


class WordEncoder:
    """Counts words: the cosine of two texts is known by hand."""

    def __init__(self, chunk: int = 8_192) -> None:
        self.chunk = chunk
        words = sorted(
            {word for text in [*TEXTS.values(), *QUERIES.values()] for word in text.split()}
        )
        self.place = {word: number for number, word in enumerate(words)}
        self.asked: list[tuple[str, int]] = []

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        vectors = self.encode(texts, kind)
        return Encoded(vectors, EncodeReport(len(vectors), (), 0, (), (), 0, 0.0, 0.0))

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        self.asked.append((kind, len(texts)))
        vectors = np.zeros((len(texts), len(self.place)), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                if word in self.place:
                    vectors[row, self.place[word]] += 1
        return vectors

    def start_run(self, *, kind: Kind = "document") -> "WordRun":
        return WordRun(self, kind)


class WordRun:
    """Its vectors chunk by chunk."""

    def __init__(self, encoder: WordEncoder, kind: Kind) -> None:
        self.encoder = encoder
        self.kind = kind
        self.rows = 0

    def vectors(self, texts: Iterable[str], /, *, progress: bool = False) -> Iterator[Vectors]:
        waiting = iter(texts)
        while chunk := list(islice(waiting, self.encoder.chunk)):
            self.rows += len(chunk)
            yield self.encoder.encode(chunk, self.kind)

    def report(self) -> EncodeReport:
        return EncodeReport(self.rows, (0,), 9, (), (), 0, 0.0, 0.0)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a collection in BEIR's layout."""

    def make(
        texts: Mapping[str, str] = TEXTS,
        queries: Mapping[str, str] = QUERIES,
        qrels: Mapping[str, Mapping[str, int]] = QRELS,
    ) -> Path:
        folder = tmp_path / "set"
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        for name, content in (("corpus", texts), ("queries", queries)):
            rows = (json.dumps({"_id": key, "text": text}) for key, text in content.items())
            (folder / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))
        lines = (
            f"{query}\t{document}\t{grade}\n"
            for query, judged in qrels.items()
            for document, grade in judged.items()
        )
        text = "query-id\tcorpus-id\tscore\n" + "".join(lines)
        (folder / "qrels" / "test.tsv").write_text(text)
        return folder

    return make


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# --- what counts


def test_self_matches_are_excluded_or_kept_with_a_warning(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    run = {"q-own": {"q-own": 1.0, "d2": 0.9}}
    qrels = {"q-own": {"d2": 1}}
    out = evaluate_run(run, qrels, exclude_self=True)
    kept = evaluate_run(run, qrels)
    assert (out.measures["RR@10"], out.measures["nDCG@10"], out.exclude_self) == (1.0, 1.0, True)
    assert kept.measures["RR@10"] == 0.5
    assert kept.measures["nDCG@10"] == pytest.approx(0.63093, abs=1e-5)
    assert (out.self_matches, kept.self_matches, kept.exclude_self) == (1, 1, False)
    (line,) = warnings(caplog)
    assert "1 quer" in line
    assert "own id" in line


def test_a_query_gets_the_full_depth_without_its_own_document(make: Make) -> None:
    result = evaluate_retrieval(WordEncoder(), make(), depth=2, measures=["RR@2"])
    assert [len(found) for found in result.run.values()] == [2, 2, 2]
    assert "q-own" not in result.run["q-own"]
    kept = evaluate_retrieval(WordEncoder(), make(), depth=2, measures=["RR@2"], exclude_self=False)
    assert next(iter(kept.run["q-own"])) == "q-own" or "q-own" in kept.run["q-own"]


def test_missing_queries_and_documents_are_counted(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make(
        {"d1": "one", "d2": "two"},
        {"q1": "one", "q2": "nothing", "q3": "irrelevant", "q4": "unjudged"},
        {"q1": {"d2": 1, "d9": 1}, "q2": {"d1": 1}, "q3": {"d1": 0}},
    )
    run = {"q1": {"d2": 2.0, "d1": 1.0}, "q3": {"d1": 1.0}, "q4": {"d1": 1.0}}
    result = evaluate_retrieval(run, folder, measures=["R@10", "RR@10", "AP"])
    assert result.queries == 2
    assert result.measures == {"R@10": 0.25, "RR@10": 0.5, "AP": 0.25}
    assert result.per_query["R@10"] == {"q1": 0.5, "q2": 0.0}
    assert result.left_out == ("q3", "q4")
    assert result.without_hits == ("q2",)
    assert result.missing == ("d9",)
    assert [line.partition(":")[0] for line in warnings(caplog)] == [
        "1 judged document not in the corpus, or blank (d9)",
        "2 queries left out (q3, q4)",
    ]


def test_a_run_alone_knows_no_corpus_but_the_same_queries() -> None:
    qrels = {"q1": {"d2": 1, "d9": 1}, "q2": {"d1": 1}, "q3": {"d1": 0}}
    result = evaluate_run({"q1": {"d2": 1.0}, "q4": {"d1": 1.0}}, qrels, measures=["AP"])
    assert (result.queries, result.left_out, result.missing) == (2, ("q3", "q4"), ())


def test_one_undefined_interval_is_none_and_the_result_strict_json() -> None:
    result = evaluate_run({"q": {"d": 1.0}}, {"q": {"d": 1}})
    content = result.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["measures"]["nDCG@10"] == 1.0
    assert "run" not in content


def test_intervals_hold_the_mean() -> None:
    random = np.random.default_rng(0)
    qrels = {f"q{number}": {"good": 1} for number in range(60)}
    run = {query: {"good": float(random.random()), "bad": 0.5} for query in qrels}
    result = evaluate_run(run, qrels, measures=["RR@10"])
    interval = result.intervals["RR@10"]
    assert interval is not None
    assert interval.low < result.measures["RR@10"] < interval.high


@pytest.mark.parametrize(
    ("run", "qrels", "reason"),
    [
        ({"a": {"d": 1.0}}, {"q": {"d": 1}}, "none of the 1 queries of the run is judged"),
        ({1: {"d": 1.0}}, {"01": {"d": 1}}, "'1'.*'01'.*equal as text"),
        ({"q": {"d": 1.0}}, {"q": {"d": 0}}, "no query has a relevant document"),
        ({}, {"q": {"d": 1}}, "found no query"),
    ],
)
def test_what_cannot_be_measured_is_refused(run: Any, qrels: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        evaluate_run(run, qrels)


def test_an_unknown_measure_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown measure"):
        evaluate_run(tmp_path / "no.trec", tmp_path / "no.tsv", measures=["nDCGG@10"])


# --- encoders


def test_an_encoder_finds_what_is_nearest(make: Make) -> None:
    encoder = WordEncoder()
    result = evaluate_retrieval(encoder, make())
    assert encoder.asked == [("query", 3), ("document", 5)]
    # q1: kettle, sings and a are in d1; of its other words none is anywhere else.
    assert max(result.run["q1"], key=lambda document: result.run["q1"][document]) == "d1"
    assert result.run["q1"]["d1"] == pytest.approx(3 / np.sqrt(3 * 6))
    assert result.measures["Success@10"] == 1.0
    assert (result.queries, result.left_out, result.missing) == (3, (), ())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_corpus_in_chunks_gives_the_same(make: Make, size: int) -> None:
    whole = evaluate_retrieval(WordEncoder(), make())
    encoder = WordEncoder(chunk=size)
    parts = evaluate_retrieval(encoder, make())
    assert parts.measures == whole.measures
    for query, found in whole.run.items():
        assert parts.run[query] == pytest.approx(found, abs=1e-6)
    assert next(count for kind, count in encoder.asked if kind == "document") == size


def test_queries_and_documents_that_were_truncated_are_counted(make: Make) -> None:
    result = evaluate_retrieval(WordEncoder(), make())
    assert result.encoded == TextCounts(texts=3 + 5, truncated=1, tokens_lost=9)
    assert result.to_dict()["encoded"]["truncated"] == 1
    assert evaluate_retrieval({"q1": {"d1": 1.0}}, make()).encoded is None


def test_a_text_without_a_known_word_is_near_to_nothing(make: Make) -> None:
    folder = make({**TEXTS, "odd": "zzz"})
    assert evaluate_retrieval(WordEncoder(), folder).run["q1"]["odd"] == 0.0


def test_a_duplicate_id_in_the_corpus_is_refused_with_both_lines(make: Make) -> None:
    folder = make()
    path = folder / "corpus.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    with pytest.raises(InputError, match="'d2' is in lines 2 and 6"):
        evaluate_retrieval(WordEncoder(), folder)


def test_a_judged_query_without_a_text_counts_as_nothing_found(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make(qrels={**QRELS, "lost": {"d1": 1}})
    result = evaluate_retrieval(WordEncoder(), folder)
    assert (result.queries, result.without_hits) == (4, ("lost",))
    assert warnings(caplog) == ["1 judged query without a text (lost)"]


def test_blank_documents_are_reported_and_left_out(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    result = evaluate_retrieval(WordEncoder(), make({**TEXTS, "blank": " "}))
    assert "blank" not in result.run["q1"]
    assert warnings(caplog) == ["1 blank (blank): left out"]


def test_a_judged_document_that_is_blank_is_reported(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make({**TEXTS, "blank": " "}, qrels={"q1": {"blank": 1}})
    result = evaluate_retrieval(WordEncoder(), folder)
    assert result.missing == ("blank",)
    assert "1 judged document not in the corpus, or blank (blank)" in warnings(caplog)


def test_titles_are_joined_as_beir_does(make: Make) -> None:
    folder = make()
    row = {"_id": "d5", "title": "a kettle", "text": "sings"}
    with (folder / "corpus.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    result = evaluate_retrieval(WordEncoder(), folder)
    assert result.run["q1"]["d5"] == pytest.approx(1.0)


@pytest.mark.parametrize("system", [None, 3, object()])
def test_something_else_than_a_system_is_a_wrong_type(make: Make, system: Any) -> None:
    with pytest.raises(InputTypeError, match="Encoder, a SearchIndex or a run"):
        evaluate_retrieval(system, make())


@pytest.mark.parametrize("depth", [0, -1])
def test_a_depth_below_one_is_refused(make: Make, depth: int) -> None:
    with pytest.raises(InputError, match="depth"):
        evaluate_retrieval(WordEncoder(), make(), depth=depth)


def test_a_depth_below_the_cutoff_of_a_measure_is_refused(make: Make) -> None:
    with pytest.raises(InputError, match=r"depth.*100"):
        evaluate_retrieval(WordEncoder(), make(), depth=50, measures=["R@100"])


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        evaluate_retrieval(WordEncoder(), tmp_path / "nowhere")


# --- with real parts


def test_a_built_index_gives_what_exact_search_gives(
    make: Make, tiny_encoder: "Encoder", tmp_path: Path
) -> None:
    from sbertkit.retrieval import SearchIndex

    folder = make()
    exact = evaluate_retrieval(tiny_encoder, folder)
    with SearchIndex.build(folder, tiny_encoder, tmp_path / "index") as index:
        searched = evaluate_retrieval(index, folder)
    assert searched.measures == exact.measures
    assert searched.missing == exact.missing
    for query, found in exact.run.items():
        assert searched.run[query] == pytest.approx(found, abs=1e-5)


def test_the_measures_are_those_of_sentence_transformers(bundled_encoder: "Encoder") -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    from sbertkit.encoder.resolve import resolve_model

    documents = {f"d{number}": text for number, text in enumerate(GLOSSES)}
    queries = {f"q{number}": text for number, text in enumerate(DESCRIPTIONS)}
    # Relevant: the gloss meant, and the one after it, which makes the values differ from 0 and 1.
    relevant = {
        query: {f"d{number}", f"d{(number + 3) % len(GLOSSES)}"}
        for number, query in enumerate(queries)
    }
    model = SentenceTransformer(str(resolve_model("all-MiniLM-L6-v2")), device="cpu")
    evaluator = InformationRetrievalEvaluator(
        queries,
        documents,
        relevant,
        mrr_at_k=[10],
        ndcg_at_k=[10],
        accuracy_at_k=[1, 10],
        precision_recall_at_k=[3],
        map_at_k=[100],
        show_progress_bar=False,
        write_csv=False,
    )
    theirs = evaluator(model)
    run = {
        query: dict(zip(documents, row, strict=True))
        for query, row in zip(
            queries,
            bundled_encoder.similarity(list(queries.values()), list(documents.values())).tolist(),
            strict=True,
        )
    }
    qrels = {query: dict.fromkeys(found, 1) for query, found in relevant.items()}
    names = {
        "nDCG@10": "cosine_ndcg@10",
        "RR@10": "cosine_mrr@10",
        "AP@100": "cosine_map@100",
        "Success@1": "cosine_accuracy@1",
        "P@3": "cosine_precision@3",
        "R@3": "cosine_recall@3",
    }
    ours = evaluate_run(run, qrels, measures=list(names)).measures
    for name, published in names.items():
        assert ours[name] == pytest.approx(theirs[published], abs=1e-6), name


GLOSSES = (
    "a device that boils water",
    "an animal with horns that gives milk",
    "water falling in drops from clouds",
    "the upper covering of a building",
    "a person who bakes bread",
    "a machine for travelling in the air",
    "a book in which words are explained",
    "a round object thrown in games",
    "the season in which leaves fall",
    "a place where ships load and unload",
    "a doctor for teeth",
    "frozen water",
)
DESCRIPTIONS = (
    "kettle",
    "goat",
    "rain",
    "roof",
    "baker",
    "aeroplane",
    "dictionary",
    "ball",
    "autumn",
    "harbour",
    "dentist",
    "ice",
)


def test_a_collection_is_found_by_its_name(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = {"q1": {"d1": 1.0}}
    with pytest.raises(InputError, match="sbertkit data get cisi"):
        evaluate_retrieval(run, "cisi")
    folder = make()
    (tmp_path / "retrieval").mkdir()
    folder.rename(tmp_path / "retrieval" / "cisi")
    named = evaluate_retrieval(run, "cisi")
    assert named == evaluate_retrieval(run, tmp_path / "retrieval" / "cisi")
    with pytest.raises(MissingFile, match="nosuch"):
        evaluate_retrieval(run, "nosuch")
