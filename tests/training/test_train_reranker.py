"""Training re-rankers: data, mining, objectives, checkpoints, and what comes out."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from sentence_transformers import CrossEncoder
from tiny_rerankers import cross_encoder
from training_cases import QUICK, interrupted_run, weight_bytes

from sbertkit import (
    BinaryCrossEntropy,
    Encoder,
    InputError,
    InputTypeError,
    MarginMse,
    Mining,
    RankingPair,
    RankingSet,
    Reranker,
    SearchIndex,
    TrainConfig,
    TrainingStopped,
    train_reranker,
)
from sbertkit.training.mining import mine_negatives

WORDS = ("cat", "dog", "food", "music", "rain", "field", "child", "city")
PAIRS = [
    RankingPair.of(f"where is the {one}", f"the {two} is here now", float(two == WORDS[0]))
    for one in WORDS
    for two in WORDS[:5]
]
DATA = RankingSet(tuple(PAIRS))


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder without a head."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "learning_rate": 1e-3, **more})


def write(path: Path, pairs: list[RankingPair]) -> Path:
    rows = ({"query": one.query, "document": one.document, "label": one.label} for one in pairs)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_trained_model_scores_relevant_documents_higher_here_and_in_the_library(
    base: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "pairs.jsonl", PAIRS)
    result = train_reranker(base, data, tmp_path / "out", dev=data, config=config(epochs=30))
    assert result.after.spearman is not None
    assert result.before.spearman is not None
    assert result.after.spearman > max(0.5, result.before.spearman)
    assert result.after.label_cosines["relevant"] > result.after.label_cosines["other"] + 1
    reranker = Reranker.load(tmp_path / "out")
    pairs = [pair[:2] for pair in PAIRS]
    expected = CrossEncoder(str(tmp_path / "out")).predict(pairs)
    np.testing.assert_allclose(reranker.score(pairs), expected, atol=1e-5)
    record = json.loads((tmp_path / "out" / "sbertkit.json").read_text())["lineage"]
    assert (record["task"], record["objective"], record["base"]) == ("rerank", "bce", "base")
    assert record["counts"] == {"relevant": 8, "other": 32}
    assert record["data"][0]["source"] == "pairs.jsonl"
    assert len(record["data"][0]["sha256"]) == 64
    card = (tmp_path / "out" / "README.md").read_text()
    assert "# Re-ranker from `base`" in card
    assert "CrossEncoder(" in card
    assert "Mean score, `relevant`" in card
    for word in ("Isotropy", "SentenceTransformer", "cosine"):
        assert word not in card


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "albert", "modernbert"])
def test_bases_of_other_families_get_a_head(tmp_path: Path, kind: str) -> None:
    plain = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    train_reranker(plain, DATA, tmp_path / "out", config=config(max_steps=2, max_tokens=30))
    reranker = Reranker.load(tmp_path / "out")
    assert reranker.max_tokens == 30
    pairs = [pair[:2] for pair in PAIRS]
    expected = CrossEncoder(str(tmp_path / "out")).predict(pairs)
    np.testing.assert_allclose(reranker.score(pairs), expected, atol=1e-5)


def test_a_sentence_encoder_and_a_cross_encoder_may_be_the_base(tmp_path: Path) -> None:
    sentence = tiny_models.declare(tiny_models.bert(tmp_path / "sentence"), "Normalize")
    trained = cross_encoder(tmp_path / "trained")
    known = Reranker.load(trained).score([("a", "b")], activated=False)
    for path, rate in ((sentence, 1e-3), (trained, 1e-30)):
        out = tmp_path / f"out-{path.name}"
        train_reranker(path, DATA, out, config=config(max_steps=1, learning_rate=rate))
        found = Reranker.load(out).score([("a", "b")], activated=False)
    np.testing.assert_allclose(found, known, atol=1e-5)  # it began from its own head


def test_margins_of_a_teacher_are_learned(base: Path, tmp_path: Path) -> None:
    teacher = cross_encoder(tmp_path / "teacher")
    objective = MarginMse(teacher=str(teacher))
    result = train_reranker(
        base,
        DATA,
        tmp_path / "out",
        objective=objective,
        config=config(epochs=30, learning_rate=2e-3, guard=False),
    )
    assert result.record["settings"]["teacher"] == "teacher"
    fingerprint = Reranker.load(teacher).fingerprint
    assert result.record["settings"]["teacher_fingerprint"] == fingerprint
    losses = [row["loss"] for row in result.log if row.get("loss") is not None]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])


def test_losses_are_those_of_their_formulas() -> None:
    scores = torch.tensor([[2.0], [-1.0], [0.5]])
    batch = {"columns": torch.tensor([[0], [1], [2]]), "targets": torch.tensor([1.0, 0.0, 0.25])}
    loss = BinaryCrossEntropy(positive_weight=3.0).loss(scores, batch, torch.nn.Identity())
    sigmoid = 1 / (1 + np.exp(-np.array([2.0, -1.0, 0.5])))
    labels = np.array([1.0, 0.0, 0.25])
    each = -(3 * labels * np.log(sigmoid) + (1 - labels) * np.log(1 - sigmoid))
    assert float(loss) == pytest.approx(each.mean(), rel=1e-5)
    batch = {"columns": torch.tensor([[0, 1], [2, 1]]), "targets": torch.tensor([2.0, 2.0])}
    loss = MarginMse(teacher="x").loss(scores, batch, torch.nn.Identity())
    assert float(loss) == pytest.approx(((3 - 2) ** 2 + (1.5 - 2) ** 2) / 2)


def test_an_interrupted_run_is_resumed_to_the_same_weights(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl", PAIRS)
    settings = {"max_steps": 8, "checkpoint_steps": 2}
    train_reranker(base, data, tmp_path / "whole", config=config(**settings))
    with interrupted_run(5):
        train_reranker(base, data, tmp_path / "other", config=config(**settings))
    assert not (tmp_path / "other").exists()
    with pytest.raises(InputError):  # other data
        train_reranker(base, DATA, tmp_path / "other", config=config(**settings, resume=True))
    train_reranker(base, data, tmp_path / "other", config=config(**settings, resume=True))
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


# --- mining


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """An index of the documents and of others."""
    texts = dict.fromkeys([pair.document for pair in PAIRS] + [f"nothing {n}" for n in range(40)])
    corpus = [(str(number), text) for number, text in enumerate(texts)]
    return SearchIndex.build(corpus, tiny_encoder, tmp_path_factory.mktemp("index") / "index")


def test_mined_negatives_are_found_by_the_index_and_never_known(index: SearchIndex) -> None:
    positives = [pair for pair in PAIRS if pair.label]
    mining = Mining(negatives=3, mine_depth=6)
    found = mine_negatives(positives, index, mining, TrainConfig(seed=1))
    assert found[: len(positives)] == positives
    mined = found[len(positives) :]
    assert len(mined) == 3 * len(positives)
    for pair in mined:
        assert (pair.label, pair.group) == (0.0, 1)
        texts = [hit.text for hit in index.search(pair.query, 7, mode="dense")]
        assert pair.document in texts
        assert (pair.query, pair.document) not in {one[:2] for one in positives}
    assert mine_negatives(positives, index, mining, TrainConfig(seed=1)) == found
    assert mine_negatives(positives, index, mining, TrainConfig(seed=2)) != found


def test_an_index_without_other_documents_gives_no_negatives(
    tiny_encoder: Encoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [RankingPair.of("q", "one", 1.0), RankingPair.of("q", "two", 0.0)]
    corpus = [("1", "one"), ("2", "two")]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "index") as index:
        with pytest.raises(InputError, match="no negatives can be mined"):
            mine_negatives(pairs, index, Mining(), TrainConfig(seed=1))
        with caplog.at_level(logging.WARNING):
            assert len(mine_negatives(pairs[:1], index, Mining(), TrainConfig(seed=1))) == 2
        assert "1 of 1 queries have fewer negatives than wanted" in caplog.text
    with pytest.raises(InputTypeError, match="mine must be a SearchIndex, found str"):
        mine_negatives(pairs, "index", Mining(), TrainConfig(seed=1))  # type: ignore[arg-type]


def test_a_run_with_mined_negatives_says_so_in_its_counts(
    base: Path, index: SearchIndex, tmp_path: Path
) -> None:
    data = RankingSet(tuple(pair for pair in PAIRS if pair.label))
    with pytest.raises(InputError, match=r"negatives.*--mine"):
        train_reranker(base, data, tmp_path / "out", config=config(max_steps=2))
    assert not (tmp_path / "out.run").exists()
    result = train_reranker(
        base, data, tmp_path / "out", mine=index, mining=Mining(2), config=config(max_steps=2)
    )
    assert result.record["counts"] == {"relevant": 8, "other": 16}


# --- refusals


def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for more, reason in (
        ({"objective": "softmax"}, "objective must be one of bce, margin-mse"),
        ({"objective": "margin-mse"}, "needs a teacher"),
        ({"config": config(normalize=True)}, "normalize is not for pairs of query"),
        ({"config": config(patience=1)}, "pass dev"),
    ):
        with pytest.raises(InputError, match=reason):
            train_reranker(base, DATA, out, **more)  # type: ignore[arg-type]
    one = tmp_path / "one.jsonl"
    with pytest.raises(InputError, match="as dev set, found 8 pairs of one kind"):
        train_reranker(base, DATA, out, dev=write(one, [p for p in PAIRS if p.label]))
    alone = RankingSet(tuple(pair for pair in PAIRS if pair.label))
    teacher = str(cross_encoder(tmp_path / "teacher"))
    with pytest.raises(InputError, match="queries with a relevant document and another"):
        train_reranker(base, alone, out, objective=MarginMse(teacher=teacher))
    with pytest.raises(InputError, match="no cross-encoder"):
        train_reranker(base, DATA, out, objective=MarginMse(teacher=str(base)))
    assert not out.exists()
    assert not (tmp_path / "out.run").exists()


def test_scores_that_are_not_finite_stop_a_run(base: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingStopped, match="finite"):
        train_reranker(base, DATA, tmp_path / "out", config=config(learning_rate=1e20, epochs=9))


# --- the command


def test_the_command_trains_mines_and_reports(
    run: Run, base: Path, index: SearchIndex, tmp_path: Path
) -> None:
    data = write(tmp_path / "pairs.jsonl", PAIRS)
    mined = ("--mine", index.path, "--negatives", 2, "--mine-depth", 10)
    options = ("--max-steps", 3, "--batch-size", 4, "--device", "cpu", "--dev", data)
    ran = run("train-reranker", data, "--base", base, "-o", tmp_path / "out", *mined, *options)
    assert ran.status == 0
    assert "score by label" in ran.out
    assert "cosine" not in ran.out
    assert Reranker.load(tmp_path / "out").score([("a", "b")]).shape == (1,)
    again = run("train-reranker", data, "--base", base, "-o", tmp_path / "out", *options)
    assert again.status == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--negatives", 2), "--negatives needs --mine"),
        (("--mine-depth", 2), "--mine-depth needs --mine"),
        (("--require-gain",), "--require-gain needs --dev"),
        (("--teacher", "x"), "--teacher needs --objective margin-mse"),
        (("--positive-weight", 2, "--objective", "margin-mse"), "needs --objective bce"),
    ],
)
def test_options_without_effect_are_refused(
    run: Run, options: tuple[object, ...], message: str
) -> None:
    ran = run("train-reranker", "pairs.jsonl", "--base", "b", "-o", "out", *options)
    assert ran.status == 2
    assert message in ran.err
