"""Tasks of mteb, made from local files, with an encoder of ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation import evaluate_mteb, evaluate_retrieval, evaluate_sts
from sbertkit.evaluation.mteb_tasks import _Adapter

pytest.importorskip("mteb")

from mteb.abstasks import AbsTaskRetrieval, AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

PAIRS = [
    (5.0, "two goats climb", "two goats climb the hill"),
    (2.5, "a kettle sings", "the kettle is cold"),
    (0.0, "rain on the roof", "goats"),
    (1.0, "a goat", "rain falls on the hill"),
    (4.0, "the stove is hot", "a hot stove"),
]
TEXTS = {"d1": "a kettle sings", "d2": "two goats climb", "d3": "rain on the roof", "d4": "stoves"}
QUERIES = {"q1": "a singing kettle", "q2": "goats"}
QRELS = {"q1": "d1", "q2": "d2"}


def metadata(name: str, kind: str, folder: Path, score: str) -> Any:
    return TaskMetadata(
        name=name,
        description="Made here.",
        dataset={"path": str(folder), "revision": "none"},
        type=kind,
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score=score,
    )


@pytest.fixture
def sts_task(tmp_path: Path) -> Any:
    """An STS task whose data is a local file; the rest is mteb's."""
    folder = tmp_path / "sts"
    folder.mkdir()
    rows = ({"score": s, "sentence1": a, "sentence2": b} for s, a, b in PAIRS)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    class LocalSts(AbsTaskSTS):
        pass

    LocalSts.metadata = metadata("LocalSTS", "STS", folder, "cosine_spearman")
    return LocalSts()


@pytest.fixture
def retrieval_task(tmp_path: Path) -> Any:
    import datasets

    class LocalRetrieval(AbsTaskRetrieval):
        def load_data(self, *_: Any, **__: Any) -> None:
            def table(content: dict[str, str]) -> Any:
                return datasets.Dataset.from_list(
                    [{"id": key, "text": text, "title": ""} for key, text in content.items()]
                )

            split = {
                "corpus": table(TEXTS),
                "queries": table(QUERIES).remove_columns("title"),
                "relevant_docs": {query: {document: 1} for query, document in QRELS.items()},
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    LocalRetrieval.metadata = metadata("LocalRetrieval", "Retrieval", tmp_path, "ndcg_at_10")
    return LocalRetrieval()


def test_an_sts_task_gives_what_our_evaluator_gives(
    tiny_encoder: Encoder, sts_task: Any, tmp_path: Path
) -> None:
    result = evaluate_mteb(tiny_encoder, [sts_task], tmp_path / "results")
    assert result.scores == {"LocalSTS": pytest.approx(evaluate_sts(tiny_encoder, PAIRS).spearman)}
    assert result.measures == {"LocalSTS": "cosine_spearman"}
    assert not result.failed
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_retrieval_task_gives_what_our_evaluator_gives(
    tiny_encoder: Encoder, retrieval_task: Any, tmp_path: Path
) -> None:
    result = evaluate_mteb(tiny_encoder, [retrieval_task], tmp_path / "results")
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, content in (("corpus", TEXTS), ("queries", QUERIES)):
        lines = (json.dumps({"_id": key, "text": text}) for key, text in content.items())
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    judged = "".join(f"{query}\t{document}\t1\n" for query, document in QRELS.items())
    (folder / "qrels/test.tsv").write_text(judged)
    ours = evaluate_retrieval(tiny_encoder, folder).measures["nDCG@10"]
    assert result.scores["LocalRetrieval"] == pytest.approx(ours, abs=1e-5)


def test_a_task_that_was_run_is_not_run_again(
    tiny_encoder: Encoder, sts_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = evaluate_mteb(tiny_encoder, [sts_task], tmp_path / "results")
    monkeypatch.setattr(_Adapter, "encode", lambda *_, **__: pytest.fail("encoded again"))
    again = evaluate_mteb(tiny_encoder, [sts_task], tmp_path / "results")
    assert again.scores == pytest.approx(first.scores)


def test_a_task_that_fails_is_reported(
    tiny_encoder: Encoder, sts_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sts_task, "load_data", lambda *_, **__: [][0])
    with pytest.raises(InputError, match="no task gave a score; LocalSTS: ") as refusal:
        evaluate_mteb(tiny_encoder, [sts_task], tmp_path / "results")
    assert "\n" not in str(refusal.value)


def test_unknown_tasks_are_refused(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no task 'STSBenchmrk' in mteb: .*STSBenchmark"):
        evaluate_mteb(tiny_encoder, ["STSBenchmrk"], tmp_path)
    with pytest.raises(InputError, match="found none"):
        evaluate_mteb(tiny_encoder, [], tmp_path)
    with pytest.raises(InputTypeError, match="must be a list"):
        evaluate_mteb(tiny_encoder, "STSBenchmark", tmp_path)
