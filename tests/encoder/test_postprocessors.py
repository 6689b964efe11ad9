"""Post-processors, against plain numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from sbertkit.encoder.postprocessors import (
    ACTIVATIONS,
    Dense,
    LayerNorm,
    Normalize,
    build_postprocessor,
)
from sbertkit.errors import InputError

VECTORS = np.array([[3.0, -4.0], [0.5, 0.25]], dtype=np.float32)
WEIGHT = np.array([[1.0, 2.0], [0.0, -1.0], [0.5, 0.5]], dtype=np.float32)
BIAS = np.array([0.1, -0.2, 0.3], dtype=np.float32)
BY_HAND: dict[str, Callable[[Any], Any]] = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
}


def run(module: Any) -> np.ndarray:
    with torch.no_grad():
        result: np.ndarray = module(torch.from_numpy(VECTORS)).numpy()
    return result


def dense(**changes: Any) -> Any:
    config = {"in_features": 2, "out_features": 3, "bias": True, **changes}
    weights = {"linear.weight": torch.from_numpy(WEIGHT), "linear.bias": torch.from_numpy(BIAS)}
    return build_postprocessor("Dense", config, weights)


def test_normalize_gives_unit_length() -> None:
    assert run(Normalize())[0] == pytest.approx([0.6, -0.8])


def test_normalize_leaves_a_zero_vector_finite() -> None:
    assert torch.equal(Normalize()(torch.zeros(1, 3)), torch.zeros(1, 3))


@pytest.mark.parametrize("activation", BY_HAND)
def test_dense_is_a_linear_map_and_its_activation(activation: str) -> None:
    module = dense(activation_function=f"torch.nn.modules.activation.{activation}")
    expected = BY_HAND[activation](VECTORS @ WEIGHT.T + BIAS)
    assert run(module) == pytest.approx(expected, abs=1e-6)
    assert module.out_dim(2) == 3


def test_dense_has_tanh_where_nothing_is_said() -> None:
    assert run(dense()) == pytest.approx(np.tanh(VECTORS @ WEIGHT.T + BIAS), abs=1e-6)


def test_dense_without_bias() -> None:
    config = {"in_features": 2, "out_features": 3, "bias": False}
    module = build_postprocessor("Dense", config, {"linear.weight": torch.from_numpy(WEIGHT)})
    assert run(module) == pytest.approx(np.tanh(VECTORS @ WEIGHT.T), abs=1e-6)
    assert module.config()["bias"] is False  # type: ignore[operator]


def test_layer_norm_has_mean_0_and_variance_1_before_scale_and_shift() -> None:
    weights = {"norm.weight": torch.tensor([2.0, 3.0]), "norm.bias": torch.tensor([0.5, 1.0])}
    module = build_postprocessor("LayerNorm", {"dimension": 2}, weights)
    assert run(module)[0] == pytest.approx([2.0 + 0.5, -3.0 + 1.0], abs=1e-4)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_step_is_built_again_from_what_it_says_of_itself(activation: str) -> None:
    first = Dense(2, 3, activation=activation)
    again = build_postprocessor("Dense", first.config(), first.state_dict())
    assert np.array_equal(run(first), run(again))
    norm = LayerNorm(2)
    assert np.array_equal(
        run(norm), run(build_postprocessor("LayerNorm", norm.config(), norm.state_dict()))
    )


def test_half_precision_weights_compute_in_single() -> None:
    half = {
        "linear.weight": torch.from_numpy(WEIGHT).half(),
        "linear.bias": torch.from_numpy(BIAS).half(),
    }
    module = build_postprocessor("Dense", {"in_features": 2, "out_features": 3}, half)
    assert {tensor.dtype for tensor in module.state_dict().values()} == {torch.float32}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"out_features": 3}, "missing required field `in_features`"),
        ({"in_features": 4, "out_features": 3}, "do not fit"),
        ({"in_features": "two", "out_features": 3}, r"got `str` - at `\$\.in_features`"),
        ({"in_features": 2, "out_features": 3, "use_residual": True}, "residual"),
        (
            {"in_features": 2, "out_features": 3, "activation_function": "torch.nn.PReLU"},
            "activation 'torch.nn.PReLU'",
        ),
        (
            {"in_features": 2, "out_features": 3, "activation_function": "os.system"},
            "activation 'os.system'",
        ),
        (
            {"in_features": 2, "out_features": 3, "module_input_name": "token_embeddings"},
            "'token_embeddings'",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(config: dict[str, Any], message: str) -> None:
    weights = {"linear.weight": torch.from_numpy(WEIGHT), "linear.bias": torch.from_numpy(BIAS)}
    with pytest.raises(InputError, match=message) as no:
        build_postprocessor("Dense", config, weights)
    assert "\n" not in str(no.value)


def test_a_dense_after_a_vector_of_another_size_is_refused_with_both_sizes() -> None:
    with pytest.raises(InputError, match="expects 2 inputs, but the module before it gives 5"):
        dense().out_dim(5)
