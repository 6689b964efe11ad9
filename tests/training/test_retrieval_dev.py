"""The retrieval dev set: what is read, how it is scored, and runs that have one."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from command_line import Run
from test_train_pairs import ROWS, write
from training_cases import QUICK, write_dev

from sbertkit import Encoder, InputError, TrainConfig, TrainResult, evaluate_retrieval, train_pairs
from sbertkit.training import retrieval_dev
from sbertkit.training.dev_set import DevSet
from sbertkit.training.report.curves import draw_curves
from sbertkit.training.retrieval_dev import RetrievalDevSet, read_dev

pytestmark = pytest.mark.usefixtures("quick")


def collection(folder: Path, splits: tuple[str, ...] = ("train", "dev")) -> Path:
    """A BEIR folder with a document for each anchor, and as many others."""
    (folder / "qrels").mkdir(parents=True)
    documents = [
        {"_id": f"{kind}{number}", "title": "", "text": row[kind]}
        for number, row in enumerate(ROWS)
        for kind in ("positive", "negative")
    ]
    queries = [{"_id": f"q{number}", "text": row["anchor"]} for number, row in enumerate(ROWS)]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for place, split in enumerate(splits):
        judged = range(len(ROWS))[place :: len(splits)]
        lines = [
            f"q{number}\t{kind}{number}\t{grade}\n"
            for number in judged
            for kind, grade in (("positive", 1 + number % 2), ("negative", 0))
        ]
        text = "query-id\tcorpus-id\tscore\n" + "".join(lines)
        (folder / "qrels" / f"{split}.tsv").write_text(text)
    return folder


def test_the_score_is_that_of_the_evaluation(tmp_path: Path, tiny_encoder: Encoder) -> None:
    folder = collection(tmp_path / "set")
    dev = read_dev(folder)
    assert isinstance(dev, RetrievalDevSet)
    assert (dev.pairs.split, len(dev.queries), len(dev.documents)) == ("dev", 4, 16)
    expected = evaluate_retrieval(tiny_encoder, folder, split="dev")
    score = dev.score(tiny_encoder, interval=True)
    assert score.value == pytest.approx(expected.measures["nDCG@10"], abs=1e-6)
    assert score.interval is not None
    assert score.interval.low <= (score.value or 0) <= score.interval.high


def test_a_file_of_judgements_stands_for_its_split(tmp_path: Path) -> None:
    folder = collection(tmp_path / "set", ("train", "test"))
    dev = read_dev(folder / "qrels" / "test.tsv")
    assert dev.pairs.split == "test"
    with pytest.raises(InputError, match="found the splits test, train and no dev; pass the file"):
        read_dev(folder)
    only = collection(tmp_path / "only", ("test",))
    assert read_dev(only).pairs.split == "test"


def test_scored_pairs_are_still_read(tmp_path: Path) -> None:
    assert type(read_dev(write_dev(tmp_path / "dev.tsv"))) is DevSet


def test_the_own_document_of_a_query_is_left_out(tmp_path: Path, tiny_encoder: Encoder) -> None:
    folder = collection(tmp_path / "set")
    with (folder / "corpus.jsonl").open("a") as file:
        for number, row in enumerate(ROWS):
            file.write(json.dumps({"_id": f"q{number}", "title": "", "text": row["anchor"]}) + "\n")
    dev = read_dev(folder)
    expected = evaluate_retrieval(tiny_encoder, folder, split="dev").measures["nDCG@10"]
    assert dev.score(tiny_encoder).value == pytest.approx(expected, abs=1e-6)


def test_large_corpora_are_sampled_with_all_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = collection(tmp_path / "set")
    monkeypatch.setattr(retrieval_dev, "MAX_DOCUMENTS", 10)
    with caplog.at_level(logging.WARNING):
        dev = RetrievalDevSet.read(folder)
    assert len(dev.documents) == 10
    assert "searches 10 of 16 documents" in caplog.text
    assert {pair.second for pair in dev.pairs.pairs} <= set(dev.documents)
    assert RetrievalDevSet.read(folder).sha256 == dev.sha256


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def test_a_run_keeps_the_best_ndcg(base: Path, tmp_path: Path) -> None:
    folder = collection(tmp_path / "set")
    # A random model may look like one that collapsed, which is not what this is about.
    settings = TrainConfig(**QUICK, epochs=8, learning_rate=1e-3, checkpoint_steps=2, guard=False)
    result = train_pairs(base, folder, tmp_path / "out", dev=folder, config=settings)
    assert result.before.spearman is None
    assert result.before.ndcg is not None
    assert result.after.ndcg is not None
    assert result.gain == pytest.approx(result.after.ndcg - result.before.ndcg)
    logged = [row["dev_ndcg"] for row in result.log if "dev_ndcg" in row]
    assert logged[0] == result.before.ndcg
    assert result.after.ndcg == pytest.approx(max(logged[1:]), abs=1e-6)
    assert TrainResult.read(result.folder).after == result.after
    assert "Dev nDCG@10 × 100" in draw_curves(result.log)
    card = (result.folder / "README.md").read_text()
    assert "4 judged pairs, of 4 queries, of `set`, split `dev`" in card
    assert "nDCG@10 × 100 |" in card


def test_training_pairs_in_the_dev_set_are_counted(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = collection(tmp_path / "set")
    data = write(tmp_path / "pairs.jsonl")
    settings = TrainConfig(**QUICK, max_steps=1, drop_overlap=True)
    with caplog.at_level(logging.WARNING):
        result = train_pairs(base, data, tmp_path / "out", dev=folder, config=settings)
    assert result.record["overlapping"] == 4
    assert "4 of 16 training pairs are in the dev set too" in caplog.text


def test_the_command_reports_it(run: Run, base: Path, tmp_path: Path) -> None:
    folder = collection(tmp_path / "set")
    ran: Any = run(
        *("train-pairs", folder, "--base", base, "-o", tmp_path / "out", "--dev", folder),
        *("--max-steps", 2, "--device", "cpu", "--batch-size", 4),
    )
    assert ran.status == 0, ran.err
    assert "dev nDCG@10" in ran.out
