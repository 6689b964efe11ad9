"""What happens to a text's vector after pooling: the modules that plain sentence-transformers runs.

A further one (whitening, centering and their like) is a `Dense` with Identity or one more entry of
`POSTPROCESSORS`; nothing else has to know of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from sbertkit.errors import InputError
from sbertkit.schema import Positive, as_record

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "Sigmoid": nn.Sigmoid,
    "SiLU": nn.SiLU,
}


_EMBEDDING = "sentence_embedding"
SCORES = "scores"
"""What a module of a cross-encoder gives in place of vectors."""


class PostProcessor(Protocol):
    """A module that maps vectors (B, dim_in) to (B, dim_out) and can describe itself."""

    st_name: str

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

    st_name = "Normalize"

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

    st_name = "Dense"

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


class Truncate(nn.Module):
    """Leaves out all but the first numbers; saved as the `Dense` that does the same.

    Args:
        in_features: Size of the vectors.
        out_features: Size of a result.
    """

    st_name = "Dense"

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features

    @classmethod
    def replacing(cls, dense: Dense) -> "Truncate | None":
        """What does the same as a linear map, if that only selects the first numbers."""
        before, after = dense.linear.in_features, dense.linear.out_features
        if after >= before or dense.linear.bias is not None or dense.activation_name != "Identity":
            return None
        selects = torch.equal(dense.linear.weight, torch.eye(after, before))
        return cls(before, after) if selects else None

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (B, out_features)."""
        return vectors[:, : self.out_features]

    def out_dim(self, dim: int) -> int:
        """See `Dense`."""
        return self.dense(torch.device("meta")).out_dim(dim)

    def config(self) -> dict[str, Any]:
        """See `Dense`."""
        return self.dense(torch.device("meta")).config()

    def dense(self, device: torch.device | None = None) -> Dense:
        """The linear map that does the same."""
        with device or torch.device("cpu"):
            dense = Dense(self.in_features, self.out_features, bias=False, activation="Identity")
        nn.init.eye_(dense.linear.weight)
        return dense


class LayerNorm(nn.Module):
    """Layer normalization over the vector, with learned scale and shift."""

    st_name = "LayerNorm"

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


@dataclass(frozen=True, slots=True)
class _DenseConfig:
    in_features: Positive
    out_features: Positive
    bias: bool = True
    activation_function: str = "torch.nn.modules.activation.Tanh"
    use_residual: bool | None = None


@dataclass(frozen=True, slots=True)
class _LayerNormConfig:
    dimension: Positive


@dataclass(frozen=True, slots=True)
class _NormalizeConfig:
    pass


@dataclass(frozen=True, slots=True)
class _Ports:
    """What a module of sentence-transformers works on, where its settings say so."""

    module_input_name: str | None = None
    module_output_name: str | None = None


def _dense(config: _DenseConfig, where: object) -> Dense:
    name = config.activation_function
    activation = name.rsplit(".", 1)[-1]
    if not name.startswith("torch.nn.") or activation not in ACTIVATIONS:
        raise InputError(
            f"{where}: activation {name[:100]!r} is not supported; expected one of "
            f"{', '.join(sorted(ACTIVATIONS))} of torch.nn"
        )
    if config.use_residual:
        raise InputError(f"{where}: a residual connection is not supported")
    return Dense(config.in_features, config.out_features, bias=config.bias, activation=activation)


class _Kind(NamedTuple):
    config: type[Any]
    build: Callable[[Any, object], nn.Module]


POSTPROCESSORS: dict[str, _Kind] = {
    "Dense": _Kind(_DenseConfig, _dense),
    "LayerNorm": _Kind(_LayerNormConfig, lambda config, _: LayerNorm(config.dimension)),
    "Normalize": _Kind(_NormalizeConfig, lambda _config, _: Normalize()),
}
"""Settings and builders of the post-processors by their sentence-transformers class name."""


def build_postprocessor(
    name: str,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    where: object = "config.json",
) -> nn.Module:
    """The post-processor of that class name with its weights in float32.

    Args:
        name: A key of `POSTPROCESSORS`.
        config: Its settings.
        weights: Its weights.
        where: The file of its settings, for messages.

    Raises:
        InputError: The settings or weights do not fit.
    """
    ports = as_record(config, _Ports, where)
    for port, known in (
        (ports.module_input_name, (_EMBEDDING,)),
        (ports.module_output_name, (_EMBEDDING, SCORES)),
    ):
        if port is not None and port not in known:
            raise InputError(
                f"{where}: a module that works on {port[:100]!r} is not supported; expected "
                "'sentence_embedding'"
            )
    kind = POSTPROCESSORS[name]
    settings = as_record(config, kind.config, where)
    try:
        # Without memory of its own, which the settings might ask far too much of.
        with torch.device("meta"):
            module = kind.build(settings, where)
        tensors = {key: value.to(torch.float32, copy=True) for key, value in weights.items()}
        module.load_state_dict(tensors, assign=True)
        if isinstance(module, Dense) and (truncate := Truncate.replacing(module)) is not None:
            return truncate
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"the weights of the model's {name} module do not fit its settings in {where}: {reason}"
        ) from error
    return module
