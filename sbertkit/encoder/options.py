"""What a caller asks of an encoder."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sbertkit.encoder.backends import BACKEND_CHOICES, BACKENDS, PRECISIONS
from sbertkit.encoder.pooling import check_pooling
from sbertkit.encoder.prompts import Prompts
from sbertkit.errors import InputError, InputTypeError


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The arguments of `Encoder.load`, kept so that an index can load its encoder again.

    Attributes:
        task: ``embed`` for an encoder of texts; ``rerank`` for one that scores pairs of them, of
            which pooling, normalize, dim and prompts are as the model declares.
    """

    model: str
    pooling: str | None = None
    normalize: bool | None = None
    max_tokens: int | None = None
    dim: int | None = None
    prompts: Prompts | None = None
    backend: str = "auto"
    precision: str = "fp32"
    device: str = "auto"
    revision: str | None = None
    task: Literal["embed", "rerank"] = "embed"

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("backend", self.backend, BACKEND_CHOICES),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        if self.backend != "auto" and self.precision != "auto":
            possible = BACKENDS[self.backend].precisions
            if self.precision not in possible:
                raise InputError(
                    f"backend {self.backend} computes in {', '.join(possible[:-1])} or "
                    f"{possible[-1]}, not in {self.precision}; choose another backend (auto) or "
                    "precision"
                )
        if self.pooling is not None:
            check_pooling(self.pooling)
        normalize: object = self.normalize
        if normalize is not None and not isinstance(normalize, bool):
            raise InputTypeError(f"normalize must be True, False or None, not {normalize!r}")

    def declared(self) -> dict[str, Any]:
        """What decides the vectors, as JSON can hold it; device and backend are left out."""
        content = asdict(self)
        for key in ("backend", "device", "precision", "task"):
            del content[key]
        content["prompts"] = None if self.prompts is None else self.prompts._asdict()
        return content
