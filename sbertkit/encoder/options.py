"""What a caller asks of an encoder."""

from dataclasses import asdict, dataclass
from typing import Any

from sbertkit.encoder.prompts import Prompts
from sbertkit.errors import InputError, InputTypeError

POOLINGS = ("cls", "mean", "max", "eos", "mean_sqrt_len", "weighted_mean", "first_last")
BACKENDS = ("auto", "torch", "onnx", "openvino")
PRECISIONS = ("fp32", "bf16", "fp16", "int8", "auto")


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The arguments of `Encoder.load`, kept so that an index can load its encoder again."""

    model: str
    pooling: str | None = None
    normalize: bool | None = None
    max_tokens: int | None = None
    prompts: Prompts | None = None
    backend: str = "auto"
    precision: str = "fp32"
    device: str = "auto"
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise InputError(f"backend must be one of {', '.join(BACKENDS)}, not {self.backend!r}")
        if self.precision not in PRECISIONS:
            raise InputError(
                f"precision must be one of {', '.join(PRECISIONS)}, not {self.precision!r}"
            )
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise InputError(
                f"unknown pooling {self.pooling!r}; expected one of {', '.join(sorted(POOLINGS))}"
            )
        normalize: object = self.normalize
        if normalize is not None and not isinstance(normalize, bool):
            raise InputTypeError(f"normalize must be True, False or None, not {normalize!r}")

    def declared(self) -> dict[str, Any]:
        """What decides the vectors, as JSON can hold it; device and backend are left out."""
        content = asdict(self)
        for key in ("backend", "device", "precision"):
            del content[key]
        content["prompts"] = None if self.prompts is None else self.prompts._asdict()
        return content
