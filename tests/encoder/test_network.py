"""The network: what reaches a vector, and that nothing else does."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_models
import torch

from sbertkit.encoder import Encoder


def used_parameters(encoder: Encoder) -> set[str]:
    ids = torch.tensor([[2, 5, 3]])
    return set(encoder.torch.network.used_parameters(ids, torch.ones_like(ids), None))


def test_all_weights_but_the_pooler_reach_the_vector(tiny_encoder: Encoder) -> None:
    every = {name for name, _ in tiny_encoder.torch.network.named_parameters()}
    assert every - used_parameters(tiny_encoder) == {
        "transformer.pooler.dense.weight",
        "transformer.pooler.dense.bias",
    }


def test_the_weights_of_the_postprocessors_reach_it_too(tiny_copy: Callable[..., Path]) -> None:
    encoder = Encoder.load(tiny_models.declare(tiny_copy(), "Dense", "LayerNorm"))
    expected = {
        "postprocessors.0.linear.weight",
        "postprocessors.0.linear.bias",
        "postprocessors.1.norm.weight",
    }
    assert expected <= used_parameters(encoder)


def test_first_last_of_one_layer_of_two_reaches_both(tiny_bert: Path) -> None:
    found = used_parameters(Encoder.load(tiny_bert, pooling="first_last"))
    assert any(name.startswith("transformer.encoder.layer.1.") for name in found)


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_nothing_is_left_to_be_trained_or_in_training_mode(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean")
    assert not any(parameter.requires_grad for parameter in encoder.torch.network.parameters())
    assert not encoder.torch.network.transformer.training
    assert {parameter.dtype for parameter in encoder.torch.network.parameters()} == {torch.float32}


def test_the_size_of_a_vector_follows_the_steps(tiny_copy: Callable[..., Path]) -> None:
    encoder = Encoder.load(tiny_models.declare(tiny_copy(), "Dense", "Dense", "Normalize"))
    assert encoder.dim == tiny_models.HIDDEN // 4
    assert encoder.encode(["a"]).shape == (1, tiny_models.HIDDEN // 4)
