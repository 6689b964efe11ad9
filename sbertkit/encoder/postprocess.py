"""What happens to a text's vector after pooling: the modules that plain sentence-transformers runs.

A further step (whitening, centering and their like) is a `Dense` with Identity or one more entry of
`STEPS`; nothing else has to know of it.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sbertkit.errors import InputError

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "Sigmoid": nn.Sigmoid,
    "SiLU": nn.SiLU,
}


class Step(Protocol):
    """A module that maps vectors (B, dim_in) to (B, dim_out) and can describe itself."""

    published_name: str

    def __call__(self, vectors: Tensor) -> Tensor:
        """Vectors (B, dim_out)."""
        ...

    def out_dim(self, dim: int) -> int:
        """The size of a result for inputs of size `dim`."""
        ...

    def config(self) -> dict[str, Any]:
        """The settings that sentence-transformers needs to build the module again."""
        ...


class Normalize(nn.Module):
    """Scales each vector to unit length."""

    published_name = "Normalize"

    def forward(self, vectors: Tensor) -> Tensor:
        """Unit vectors (B, dim)."""
        return nn.functional.normalize(vectors, p=2, dim=-1)

    def out_dim(self, dim: int) -> int:
        """The size it was."""
        return dim

    def config(self) -> dict[str, Any]:
        """No settings."""
        return {}


class Dense(nn.Module):
    """A linear map and an activation."""

    published_name = "Dense"

    def __init__(
        self, in_features: int, out_features: int, *, bias: bool = True, activation: str = "Tanh"
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (B, out_features)."""
        result: Tensor = self.activation(self.linear(vectors))
        return result

    def out_dim(self, dim: int) -> int:
        """The map's output size.

        Raises:
            InputError: The map wants inputs of another size.
        """
        if dim != self.linear.in_features:
            raise InputError(
                f"the model's Dense module expects {self.linear.in_features} inputs, but the "
                f"module before it gives {dim}; the model folder does not fit together"
            )
        return self.linear.out_features

    def config(self) -> dict[str, Any]:
        """Sizes, bias and activation."""
        activation = ACTIVATIONS[self.activation_name]
        return {
            "in_features": self.linear.in_features,
            "out_features": self.linear.out_features,
            "bias": self.linear.bias is not None,
            "activation_function": f"{activation.__module__}.{activation.__name__}",
        }


class LayerNorm(nn.Module):
    """Layer normalization over the vector, with learned scale and shift."""

    published_name = "LayerNorm"

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dimension)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (B, dimension)."""
        result: Tensor = self.norm(vectors)
        return result

    def out_dim(self, dim: int) -> int:
        """The size it was."""
        return dim

    def config(self) -> dict[str, Any]:
        """The vector size."""
        return {"dimension": self.norm.normalized_shape[0]}


def _dense(config: Mapping[str, Any]) -> Dense:
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    activation = name.rsplit(".", 1)[-1]
    if not name.startswith("torch.nn.") or activation not in ACTIVATIONS:
        raise InputError(
            f"the model's Dense module has the activation {name!r}; supported are "
            f"{', '.join(sorted(ACTIVATIONS))} of torch.nn"
        )
    if config.get("use_residual"):
        raise InputError("the model's Dense module has a residual connection: not supported")
    return Dense(
        int(config["in_features"]),
        int(config["out_features"]),
        bias=bool(config.get("bias", True)),
        activation=activation,
    )


STEPS: dict[str, Any] = {
    "Dense": _dense,
    "LayerNorm": lambda config: LayerNorm(int(config["dimension"])),
    "Normalize": lambda _: Normalize(),
}
"""Builders of the steps by their sentence-transformers class name."""


def build_step(name: str, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
    """The step of that class name with its weights in float32.

    Raises:
        InputError: The settings or weights do not fit.
    """
    for key, expected in (
        ("module_input_name", "sentence_embedding"),
        ("module_output_name", "sentence_embedding"),
    ):
        if config.get(key, expected) not in (expected, None):
            raise InputError(
                f"the model's {name} module works on {config[key]!r}; only {expected!r} is "
                "supported"
            )
    try:
        step: nn.Module = STEPS[name](config)
        step.load_state_dict({key: value.to(torch.float32) for key, value in weights.items()})
    except KeyError as error:
        raise InputError(f"the model's {name} module lacks the setting {error}") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"a setting of the model's {name} module is wrong: {error}") from error
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"the weights of the model's {name} module do not fit: {reason}"
        ) from error
    return step
