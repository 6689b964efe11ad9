"""Cached gradients equal those of the whole batch, with dropout, in less memory."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from command_line import Run
from test_train_pairs import ROWS, pairs, write
from training_cases import QUICK, quick_runs, rows, weight_bytes, weights, write_nli

from sbertkit import Encoder, TrainConfig, train_nli, train_pairs
from sbertkit.data.nli import NliPair
from sbertkit.training.batches import Collator
from sbertkit.training.data_forms import NLI, TrainingData
from sbertkit.training.examples import TextTable
from sbertkit.training.objectives import Contrastive, Objective, Softmax, Triplet
from sbertkit.training.run.siamese import Siamese
from sbertkit.training.run.trainer import SiameseTrainer

OBJECTIVES: list[Objective] = [Contrastive(), Triplet(margin=1.0), Softmax()]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def data_for(objective: Objective) -> TrainingData:
    if isinstance(objective, Softmax):
        return TrainingData(
            NLI, [NliPair(r["anchor"], r["positive"], n % 3) for n, r in enumerate(ROWS)]
        )
    return pairs(
        *((row["anchor"], row["positive"], 1.0) for row in ROWS),
        *((row["anchor"], row["negative"], 0.0) for row in ROWS),
    )


def batch_of(encoder: Encoder, objective: Objective, mini_batch: int) -> dict[str, Any]:
    table = TextTable(encoder)
    examples = objective.examples(data_for(objective), table)
    table.tokenize()
    collator = Collator(examples, table, encoder.spec.collator, objective, mini_batch=mini_batch)
    return collator(list(range(len(examples))))


def gradients(
    base: Path,
    objective: Objective,
    mini_batch: int,
    context: AbstractContextManager[Any],
    *,
    caches: bool,
    scale: float = 1.0,
) -> tuple[float, dict[str, torch.Tensor], torch.Tensor]:
    """The loss of a batch, all gradients, and what the generator gives next."""
    encoder = Encoder.load(base, device="cpu")
    torch.manual_seed(2)
    head = objective.make_head(encoder.dim)
    encoder.torch.make_trainable()
    model = Siamese(
        encoder.torch.network.train(), objective, head, sizes=None, caches=caches
    ).train()
    batch = batch_of(encoder, objective, mini_batch)
    torch.manual_seed(3)
    with context:
        loss = model(batch)
    (scale * loss).backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return loss.item(), found, torch.rand(3)


@pytest.mark.parametrize("mini_batch", [1, 5, 8, 100])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.name)
def test_gradients_are_those_of_the_whole_batch_with_the_same_dropout(
    base: Path, objective: Objective, mini_batch: int
) -> None:
    plain = gradients(base, objective, mini_batch, nullcontext(), caches=False)
    cached = gradients(base, objective, mini_batch, nullcontext(), caches=True)
    assert cached[0] == pytest.approx(plain[0], abs=1e-7)
    assert cached[1].keys() == plain[1].keys()
    assert any(bool(gradient.any()) for gradient in plain[1].values())
    for name, gradient in plain[1].items():
        torch.testing.assert_close(cached[1][name], gradient, atol=1e-6, rtol=1e-5)
    assert torch.equal(cached[2], plain[2])  # the next batch has the same dropout, too


def test_dropout_makes_a_difference_here(base: Path) -> None:
    assert (
        gradients(base, Contrastive(), 5, nullcontext(), caches=True)[0]
        != gradients(base, Contrastive(), 8, nullcontext(), caches=True)[0]
    )


def test_gradients_are_scaled_as_the_loss_is(base: Path) -> None:
    one = gradients(base, Contrastive(), 5, nullcontext(), caches=True)[1]
    half = gradients(base, Contrastive(), 5, nullcontext(), caches=True, scale=0.5)[1]
    for name, gradient in one.items():
        torch.testing.assert_close(half[name] * 2, gradient, atol=1e-6, rtol=1e-5)


def test_gradients_under_autocast_are_those_of_the_whole_batch(base: Path) -> None:
    made = [
        gradients(
            base, Contrastive(), 5, torch.autocast("cpu", dtype=torch.bfloat16), caches=caches
        )
        for caches in (False, True)
    ]
    assert made[0][0] == pytest.approx(made[1][0], abs=1e-6)
    for name, gradient in made[0][1].items():
        assert made[1][1][name].dtype == gradient.dtype
        difference = float((made[1][1][name] - gradient).norm())
        assert difference <= 1e-2 * float(gradient.norm()) + 1e-6


def test_what_is_kept_for_the_gradient_is_small(base: Path) -> None:
    kept = {}
    for caches in (False, True):
        total = 0

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.numel() * tensor.element_size()
            return tensor

        encoder = Encoder.load(base, device="cpu")
        encoder.torch.make_trainable()
        objective = Contrastive()
        model = Siamese(encoder.torch.network, objective, torch.nn.Identity(), caches=caches)
        batch = batch_of(encoder, objective, 2)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            model(batch)
        kept[caches] = total
    assert kept[True] < 0.2 * kept[False]


def test_without_gradients_there_is_nothing_to_replay(base: Path) -> None:
    encoder = Encoder.load(base, device="cpu")
    objective = Contrastive()
    model = Siamese(encoder.torch.network, objective, torch.nn.Identity(), caches=True).eval()
    with torch.inference_mode():
        assert not model(batch_of(encoder, objective, 3)).requires_grad


def test_a_run_is_resumed_to_the_same_weights(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "pairs.jsonl")

    def run(out: str, **more: Any) -> None:
        settings = TrainConfig(
            **{**QUICK, "batch_size": 8}, max_steps=6, checkpoint_steps=1, mini_batch=3, **more
        )
        with quick_runs():
            train_pairs(base, data, tmp_path / out, config=settings)

    run("whole")
    save = SiameseTrainer._save_checkpoint

    def stop(self: SiameseTrainer, model: Any, trial: Any) -> None:
        save(self, model, trial)
        if self.state.global_step == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SiameseTrainer, "_save_checkpoint", stop)
        with pytest.raises(KeyboardInterrupt):
            run("other")
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


def test_a_head_is_trained_too_and_steps_are_those_of_the_whole_batch(
    base: Path, tmp_path: Path
) -> None:
    """Without dropout, groups of other sizes change nothing."""
    still = tiny_models.bert(tmp_path / "still")
    tiny_models.edit_json(
        still / "config.json", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    data = write_nli(tmp_path / "pairs.jsonl", rows(6))
    for name, mini_batch in (("plain", None), ("cached", 3)):
        settings = TrainConfig(
            **{**QUICK, "batch_size": 9}, max_steps=4, mini_batch=mini_batch, guard=False
        )
        with quick_runs():
            train_nli(still, data, tmp_path / name, objective="softmax", config=settings)
    plain, cached = weights(tmp_path / "plain"), weights(tmp_path / "cached")
    start = weights(still)
    for name, tensor in plain.items():
        if "key.bias" in name:  # whose gradient is only rounding, which Adam makes large
            continue
        torch.testing.assert_close(cached[name], tensor, atol=1e-5, rtol=1e-4)
    assert any(not torch.equal(start[name], plain[name]) for name in start)
    assert any(name.startswith("head") for name in plain)


def test_the_command_takes_it(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    ran = run(
        *("train-pairs", data, "--base", base, "-o", tmp_path / "out", "--max-steps", 2),
        *("--device", "cpu", "--batch-size", 8, "--mini-batch", 4, "--matryoshka", "8,4"),
    )
    assert ran.status == 0, ran.err
