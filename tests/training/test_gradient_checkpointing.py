"""Gradients are the same where activations are computed again, with dropout, in less memory."""

from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from command_line import Run
from test_gradient_cache import batch_of
from test_train_pairs import write
from training_cases import QUICK, contents, interrupted_run, quick_runs, weight_bytes, weights

from sbertkit import Encoder, InputError, TrainConfig, train_pairs
from sbertkit.training.objectives import Contrastive, Objective
from sbertkit.training.run.activations import checkpoint_activations
from sbertkit.training.run.depths import Depths
from sbertkit.training.run.siamese import Siamese

LACKING = {"mpnet", "albert", "xlnet"}
"""Families for which transformers has none."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def gradients(
    base: Path,
    *,
    again: bool,
    caches: bool = False,
    frozen: int | None = None,
    pooling: str = "mean",
) -> tuple[float, dict[str, torch.Tensor], int]:
    """The loss of a batch, all gradients, and the bytes that were kept for them."""
    objective: Objective = Contrastive()
    encoder = Encoder.load(base, device="cpu", pooling=pooling)
    if again:
        checkpoint_activations(encoder)
    encoder.torch.make_trainable()
    network = encoder.torch.network
    if frozen is not None:
        depths = Depths(network.transformer, "base")
        for tensor in network.parameters():
            tensor.requires_grad_(tensor.requires_grad and depths.of(tensor) > frozen)
    batch = batch_of(encoder, objective, 5)
    model = Siamese(network, objective, torch.nn.Identity(), caches=caches).train()
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    torch.manual_seed(3)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(batch)
        total = sum(kept.values())
    loss.backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return loss.item(), found, total


def assert_same(one: Any, other: Any) -> None:
    assert one[0] == pytest.approx(other[0], abs=1e-6)
    assert one[1].keys() == other[1].keys()
    assert any(bool(gradient.any()) for gradient in other[1].values())
    for name, gradient in other[1].items():
        torch.testing.assert_close(one[1][name], gradient, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", sorted(set(tiny_models.ARCHITECTURES) - LACKING))
def test_gradients_of_every_family_are_those_of_all_activations(tmp_path: Path, kind: str) -> None:
    base = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    plain, again = gradients(base, again=False), gradients(base, again=True)
    assert_same(again, plain)
    assert again[2] < plain[2]


@pytest.mark.parametrize("caches", [False, True])
@pytest.mark.parametrize("frozen", [None, 0, 1])
@pytest.mark.parametrize("pooling", ["mean", "first_last"])
def test_they_are_with_frozen_layers_and_mini_batches_too(
    base: Path, caches: bool, frozen: int | None, pooling: str
) -> None:
    more: Any = {"caches": caches, "frozen": frozen, "pooling": pooling}
    assert_same(gradients(base, again=True, **more), gradients(base, again=False, **more))


def test_dropout_makes_a_difference_here(base: Path) -> None:
    encoder = Encoder.load(base, device="cpu")
    batch = batch_of(encoder, Contrastive(), 5)
    model = Siamese(encoder.torch.network, Contrastive(), torch.nn.Identity()).train()
    assert model(batch).item() != model(batch).item()


@pytest.mark.parametrize("kind", sorted(LACKING))
def test_a_family_that_has_none_is_refused_with_one_line(tmp_path: Path, kind: str) -> None:
    base = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    data = write(tmp_path / "pairs.jsonl")
    before = contents(tmp_path)
    settings = TrainConfig(**QUICK, gradient_checkpointing=True)
    with pytest.raises(InputError, match=r"^gradient_checkpointing [^\n]*Model[^\n]*leave it out"):
        train_pairs(base, data, tmp_path / "out", config=settings)
    assert contents(tmp_path) == before


def test_a_run_gives_the_same_weights_and_is_resumed_to_them(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")

    def run(out: str, **more: Any) -> None:
        settings = TrainConfig(
            **{**QUICK, "batch_size": 8}, max_steps=5, checkpoint_steps=1, **more
        )
        with quick_runs():
            train_pairs(base, data, tmp_path / out, config=settings)

    run("plain")
    run("again", gradient_checkpointing=True)
    plain = weights(tmp_path / "plain")
    for name, tensor in weights(tmp_path / "again").items():
        if "key.bias" not in name:  # whose gradient is only rounding, which Adam makes large
            torch.testing.assert_close(tensor, plain[name], atol=1e-5, rtol=1e-4)
    with interrupted_run(3):
        run("other", gradient_checkpointing=True)
    with pytest.raises(InputError, match="gradient_checkpointing was true, is false"):
        run("other", resume=True)
    run("other", gradient_checkpointing=True, resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "again")


def test_the_command_takes_it(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    ran = run(
        *("train-pairs", data, "--base", base, "-o", tmp_path / "out", "--max-steps", 2),
        *("--device", "cpu", "--batch-size", 8, "--mini-batch", 4, "--gradient-checkpointing"),
        *("--freeze-layers", 1),
    )
    assert ran.status == 0, ran.err
    assert "| `gradient_checkpointing` | true |" in (tmp_path / "out" / "README.md").read_text()
