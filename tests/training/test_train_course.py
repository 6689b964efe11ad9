"""The course of whole runs: dev scores, best weights, overlap, the guard, a head that goes on."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from training_cases import Job, Row, contents, quick_runs, rows, weights, write_dev, write_nli

from sbertkit import TrainResult, classify_pairs
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, TrainingStopped
from sbertkit.training.dev_set import DevScore, DevSet
from sbertkit.training.heads import read_head
from sbertkit.training.objectives import Softmax
from sbertkit.training.run.monitor import Monitor
from sbertkit.training.run.siamese import Siamese

OBJECTIVES = ("softmax", "contrastive")
LABELS = ("entailment", "neutral", "contradiction")


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_runs():
        yield


@pytest.fixture
def job(tiny_bert: Path, tmp_path: Path) -> Job:
    """A run of softmax over few rows with a dev set."""
    (tmp_path / "models").mkdir()
    return Job(
        tiny_bert,
        write_nli(tmp_path / "pairs.jsonl", rows(8)),
        tmp_path / "models" / "out",
        dev=write_dev(tmp_path / "dev.tsv"),
        settings={"checkpoint_steps": 1, "max_steps": 6},
    )


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]


def dev_scores(result: TrainResult) -> list[float | None]:
    return [row["dev_spearman"] for row in result.log[1:] if "dev_spearman" in row]


class Scripted:
    """Dev scores as they are told, and the weights that each was given for."""

    def __init__(self, scores: Sequence[float | None]) -> None:
        self.left = list(scores)
        self.weights: list[torch.Tensor] = []

    def score(self, encoder: Encoder, *, interval: bool = False) -> DevScore:
        first = next(iter(encoder.torch.network.parameters()))
        self.weights.append(first.detach().clone())
        return DevScore(self.left.pop(0), None)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    def script(*scores: float | None) -> Scripted:
        made = Scripted(scores)
        monkeypatch.setattr(DevSet, "score", lambda _, *given, **more: made.score(*given, **more))
        return made

    return script


def first_weights(folder: Path) -> torch.Tensor:
    encoder = Encoder.load(folder, device="cpu")
    return next(iter(encoder.torch.network.parameters())).detach()


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 6),
        ((0.6, 0.5, 0.4, 0.3, 0.2, 0.1), 1),
        ((0.1, 0.9, 0.3, 0.2, 0.8, 0.1), 2),
        ((0.5, 0.5, 0.5, 0.5, 0.5, 0.5), 1),
        ((-0.9, -0.1, -0.3, -0.2, -0.8, -0.5), 2),
        ((None, 0.2, None, 0.3, None, None), 4),  # an undefined score is never the best
    ],
)
def test_the_weights_of_the_best_dev_score_become_the_model(
    job: Job, scripted: Callable[..., Scripted], scores: tuple[float | None, ...], best: int
) -> None:
    script = scripted(-1.0, *scores, 1.0)
    result = job.run()
    assert (result.steps, result.record["best_step"]) == (6, best)
    assert dev_scores(result) == list(scores)
    assert torch.equal(first_weights(job.output), script.weights[best])
    # What is said of the model is said of these weights.
    assert torch.equal(script.weights[-1], script.weights[best])
    assert len(script.weights) == 8


def test_without_a_defined_dev_score_the_last_weights_become_the_model(
    job: Job, scripted: Callable[..., Scripted]
) -> None:
    script = scripted(*[None] * 8)
    result = job.run()
    assert dev_scores(result) == [None] * 6
    assert result.record["best_step"] is None
    assert (result.before.spearman, result.after.spearman, result.gain) == (None, None, None)
    assert torch.equal(first_weights(job.output), script.weights[6])


@pytest.mark.parametrize(
    ("patience", "steps", "best"), [(1, 2, 1), (2, 5, 3), (3, 6, 3), (9, 6, 3)]
)
def test_patience_ends_a_run_that_gets_no_better(
    job: Job, scripted: Callable[..., Scripted], patience: int, steps: int, best: int
) -> None:
    script = scripted(-1.0, 0.5, 0.4, 0.6, 0.3, 0.2, 0.1, 0.0)
    result = job.run(patience=patience)
    assert (result.steps, result.record["best_step"]) == (steps, best)
    assert torch.equal(first_weights(job.output), script.weights[best])


def test_a_real_dev_score_is_that_of_the_saved_model(job: Job) -> None:
    result = job.run(learning_rate=1e-3, guard=False)
    assert job.dev is not None
    dev = DevSet.read(job.dev)
    again = dev.score(Encoder.load(job.output, device="cpu"), interval=True)
    assert again.value == pytest.approx(result.after.spearman, abs=1e-6)
    base = Encoder.load(job.base, pooling="mean", device="cpu")
    assert dev.score(base).value == pytest.approx(result.before.spearman, abs=1e-6)
    defined = [score for score in dev_scores(result) if score is not None]
    assert result.after.spearman == pytest.approx(max(defined), abs=1e-6)
    assert result.gain == pytest.approx(max(defined) - (result.before.spearman or 0.0), abs=1e-6)


def test_a_model_that_got_worse_is_saved_and_said_to_be(
    job: Job, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    # The base's own cosines as gold scores: it can only lose.
    encoder = Encoder.load(job.base, pooling="mean", device="cpu")
    texts = [f"{word} {number}" for number, word in enumerate(("he", "an owl", "tea", "x") * 4)]
    vectors = encoder.encode(texts)
    gold = (vectors[:8] * vectors[8:]).sum(axis=1)
    dev = tmp_path / "own.tsv"
    lines = zip(gold, texts[:8], texts[8:], strict=True)
    dev.write_text("".join(f"{score:.9f}\t{a}\t{b}\n" for score, a, b in lines))
    result = job._replace(dev=dev).run(learning_rate=0.01, guard=False, checkpoint_steps=100)
    assert result.before.spearman == pytest.approx(1.0)
    assert result.gain is not None
    assert result.gain < 0
    assert [text.split(":")[0] for text in said(caplog)] == [
        "the trained encoder is worse than its base on the dev set"
    ]
    assert Encoder.load(job.output, device="cpu").dim == 32


def test_without_a_dev_set_there_is_neither_score_nor_best(job: Job) -> None:
    result = job._replace(dev=None).run()
    assert dev_scores(result) == []
    assert (result.gain, result.record["dev"], result.record["best_step"]) == (None, None, None)
    assert result.after.random_cosine is not None


def test_pairs_that_are_in_the_dev_set_are_counted_or_left_out(
    job: Job, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = rows(8)
    # Three pairs: one as it is, one the other way round, one in other letters.
    same, turned, loud = made[0], made[4], made[8]
    overlap: list[Row] = [
        same,
        (turned[0], turned[2], turned[1]),
        (loud[0], loud[1].upper(), loud[2].upper()),
    ]
    job = job._replace(dev=write_dev(tmp_path / "overlap.tsv", [*overlap, ("neutral", "q", "r")]))
    result = job.run()
    assert (result.record["examples"], result.record["overlapping"]) == (24, 0)
    (line,) = said(caplog)
    assert line.startswith("3 of 24 training pairs are in the dev set too (")
    assert line.endswith("leave them out with drop_overlap (--drop-overlap)")
    caplog.clear()
    job = job._replace(output=job.output.with_name("other"))
    result = job.run(drop_overlap=True)
    assert (result.record["examples"], result.record["overlapping"]) == (21, 3)
    assert [text.rsplit(":")[-1] for text in said(caplog)] == [" left out"]
    assert "Rows left out because they are in the dev set: 3" in (
        job.output / "README.md"
    ).read_text(encoding="utf-8")


def test_nothing_to_train_on_beside_the_dev_set_is_refused(job: Job, tmp_path: Path) -> None:
    job = job._replace(dev=write_dev(tmp_path / "all.tsv", rows(8)))
    with pytest.raises(InputError, match="every training pair is in the dev set"):
        job.run(drop_overlap=True)
    assert contents(job.output.parent) == {}


def stopped(job: Job, **settings: Any) -> tuple[str, Path | None]:
    """Why the guard stopped a run, and the model that it kept."""
    with pytest.raises(TrainingStopped, match=r"^[^\n]+$") as caught:
        job.run(**settings)
    message = str(caught.value)
    assert not job.output.exists()
    kept = re.search(r"; the last good checkpoint is (.*/model)$", message)
    if kept is None:
        assert message.endswith("; no checkpoint had been made yet")
        assert contents(job.output.parent) == {}
        return message, None
    return message, Path(kept[1])


def assert_good(model: Path) -> None:
    """A whole model: all is finite, texts differ."""
    assert all(tensor.isfinite().all() for tensor in weights(model).values())
    vectors = Encoder.load(model, device="cpu").encode(["he runs", "a long sleep", "x"])
    assert float(vectors.std(axis=0).max()) > 1e-3


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_rate_beyond_all_bounds_ends_the_run(job: Job, objective: str, guard: bool) -> None:
    job = job._replace(objective=objective, dev=None)
    message, model = stopped(job, learning_rate=1e30, checkpoint_steps=100, guard=guard)
    assert re.match(r"training stopped: [^;]* no longer (a )?finite", message)
    assert "lower the learning rate" in message
    assert model is None


@pytest.mark.parametrize("guard", [True, False])
def test_a_loss_that_is_not_finite_ends_the_run(
    job: Job, monkeypatch: pytest.MonkeyPatch, guard: bool
) -> None:
    forward = Siamese.forward
    calls = iter(range(100))

    def spoiled(self: Siamese, batch: dict[str, Any]) -> torch.Tensor:
        return forward(self, batch) * (math.inf if next(calls) == 3 else 1.0)

    monkeypatch.setattr(Siamese, "forward", spoiled)
    message, model = stopped(job, guard=guard)
    assert message.startswith("training stopped: the loss is no longer a finite number at step 4;")
    assert model is not None
    assert model.parent.name == "step-00000003"
    assert_good(model)


@pytest.mark.parametrize("dev", [True, False])
def test_a_weight_that_is_not_finite_ends_the_run_before_it_is_kept(
    job: Job, monkeypatch: pytest.MonkeyPatch, dev: bool
) -> None:
    assess = Monitor._assess

    def spoil(self: Monitor, step: int, *more: Any) -> None:
        if step == 3:
            with torch.no_grad():
                next(iter(self._tracked.encoder.torch.network.parameters()))[:] = math.nan
        assess(self, step, *more)

    monkeypatch.setattr(Monitor, "_assess", spoil)
    message, model = stopped(job if dev else job._replace(dev=None))
    assert message.startswith("training stopped: the encoder's vectors are no longer finite;")
    assert model is not None
    assert model.parent.name == "step-00000002"
    assert_good(model)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_space_that_collapses_ends_the_run(job: Job, tmp_path: Path, objective: str) -> None:
    data = write_nli(tmp_path / "many.jsonl", rows(48))
    job = job._replace(objective=objective, data=data, dev=None)
    message, model = stopped(job, max_steps=40, checkpoint_steps=2, learning_rate=0.1, warmup=0.5)
    assert re.match(r"training stopped: collapse: .* mean cosine of 0\.9", message)
    assert model is not None
    assert_good(model)
    kept = sorted(path.name for path in model.parents[1].iterdir())
    assert kept[-1] == model.parent.name
    # It goes on with resume to the same end, and does not begin anew unasked.
    with pytest.raises(TrainingStopped, match="collapse"):
        job.run(max_steps=40, checkpoint_steps=2, learning_rate=0.1, warmup=0.5, resume=True)
    with pytest.raises(InputError, match="an unfinished run is at"):
        job.run()


def swapped(premises: int) -> list[Row]:
    """Contradictions that differ from the premise by a letter, entailments about other things."""
    made = rows(premises)
    entailments = [("entailment", row[1], row[2]) for row in made if row[0] == "contradiction"]
    contradictions = [("contradiction", row[1], row[1][:-1]) for row in made[::3]]
    return [*entailments, *contradictions, *made[2::3]]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_swapped_labels_are_seen_before_the_first_step(
    job: Job, tmp_path: Path, objective: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = write_nli(tmp_path / "swapped.jsonl", swapped(48))
    job = job._replace(objective=objective, data=data)
    with pytest.raises(TrainingStopped, match=r"^stopped before training: label order: [^\n]*$"):
        job.run()
    assert contents(job.output.parent) == {}
    # The user may know better, and few pairs prove nothing.
    assert job.run(guard=False).steps == 6
    job = job._replace(output=job.output.with_name("few"))
    assert job._replace(data=write_nli(tmp_path / "few.jsonl", swapped(12))).run().steps == 6
    assert [line for line in said(caplog) if "order" in line] == []


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_healthy_run_says_nothing(
    job: Job,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    objective: str,
) -> None:
    data = write_nli(tmp_path / "many.jsonl", rows(48))
    healthy = job._replace(data=data, objective=objective, dev=None)
    assert healthy.run(max_steps=20, checkpoint_steps=5, learning_rate=2e-4).steps == 20
    assert said(caplog) == []
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def easy(premises: int) -> list[Row]:
    """Labels that the hypothesis alone gives away."""
    told = {"entailment": "yes so it is", "neutral": "maybe", "contradiction": "no no never!!"}
    return [(label, premise, told[label]) for label, premise, _ in rows(premises)]


def test_an_easy_task_is_learned_and_the_head_goes_on(
    job: Job, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = easy(16)
    data = write_nli(tmp_path / "easy.jsonl", pairs)
    settings = {"learning_rate": 1e-3, "epochs": 8, "max_steps": None, "guard": False}
    job = job._replace(data=data, dev=None, settings={"checkpoint_steps": 100})
    first = job.run(**settings)
    found = classify_pairs(job.output, [(premise, hypothesis) for _, premise, hypothesis in pairs])
    right = sum(pair.label == row[0] for pair, row in zip(found, pairs, strict=True))
    assert right > 0.9 * len(pairs)
    assert all(sum(pair.probabilities.values()) == pytest.approx(1) for pair in found)
    losses = [row["loss"] for row in first.log if "loss" in row]
    assert losses[0] > math.log(3) / 2
    assert losses[-1] < 0.5
    # Another run from there begins where this one ended, and not at chance.
    again = job._replace(base=job.output, output=job.output.with_name("again"), pooling=None)
    with caplog.at_level(logging.INFO, logger="sbertkit"):
        second = again.run(max_steps=1, warmup=0.0, learning_rate=1e-12)
    assert "continuing from the head" in caplog.text
    assert next(row["loss"] for row in second.log if "loss" in row) < 0.5
    kept, head = read_head(job.output), read_head(again.output)
    assert kept is not None
    assert head is not None
    weights_before, weights_after = (one.module.state_dict()["weight"] for one in (kept, head))
    assert torch.allclose(weights_before, weights_after, atol=1e-9)


def test_a_head_with_other_features_is_a_new_one(job: Job) -> None:
    job.run()
    other = job._replace(base=job.output, output=job.output.with_name("other"), pooling=None)
    features = ("u", "v", "abs_diff", "product")
    assert other.run(features=features).steps == 6
    head = read_head(other.output)
    assert head is not None
    assert head.objective == Softmax(features)
    assert classify_pairs(other.output, [("a", "b")])[0].label in LABELS
    third = job._replace(base=job.output, output=job.output.with_name("third"), pooling=None)
    third = third._replace(objective="contrastive")
    third.run()
    assert not (third.output / "head").exists()
    with pytest.raises(InputError, match="no classification head"):
        classify_pairs(third.output, [("a", "b")])


def test_the_log_tells_the_whole_course(job: Job) -> None:
    result = job.run()
    steps = [row["step"] for row in result.log]
    assert steps == sorted(steps)
    for name in ("loss", "dev_spearman", "random_cosine", "effective_rank", "entailment"):
        logged = [row["step"] for row in result.log if name in row]
        assert logged == [*([] if name == "loss" else [0]), 1, 2, 3, 4, 5, 6]
    assert tiny_models.read_json(job.output / "sbertkit.json")["lineage"]["best_step"] in range(
        1, 7
    )


CODE = """
from transformers import BertConfig, BertModel
class Config(BertConfig):
    model_type = "mine"
class Model(BertModel):
    config_class = Config
"""


def test_a_base_with_code_of_its_own_goes_back_to_its_best_weights(
    job: Job,
    tmp_path: Path,
    tiny_copy: Callable[..., Path],
    scripted: Callable[..., Scripted],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = str(tmp_path / "modules")  # and not in the user's own cache
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", place)
    monkeypatch.syspath_prepend(place)
    base = tiny_copy()
    (base / "code.py").write_text(CODE)
    classes = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
    tiny_models.edit_json(base / "config.json", model_type="mine", auto_map=classes)
    scripted(-1.0, 0.1, 0.6, 0.5, 0.4, 0.3, 0.2, 0.6)
    result = job._replace(base=base).run(trust_remote_code=True)
    assert result.record["best_step"] == 2
