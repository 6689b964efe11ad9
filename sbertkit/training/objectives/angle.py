"""The objective of angles in complex space that are in the order of scores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.training.objectives.cosent import Cosent

if TYPE_CHECKING:
    from torch import Tensor


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Angle(Cosent):
    """CoSENT's loss of a similarity in complex space, whose gradient is large where cosines are 1.

    For all pairs i, j of a batch with scores y_i > y_j:
    ``log(1 + sum over y_i > y_j of exp((s_j - s_i) / t))``. The similarity s of unit vectors
    u = (a, b) and v = (c, d), each divided in two halves: ``|a c + b d + b c - a d|``, the absolute
    sum of real and imaginary part of (a + bi) / (c + di). It is only one of the three parts of the
    paper's loss, as in sentence-transformers' AnglELoss.

    Source: Li & Li 2023, AnglE-optimized Text Embeddings, section 3.4.
    """

    name: ClassVar[str] = "angle"
    summary: ClassVar[str] = (
        "the angles of pairs in complex space learned to be in the order of their scores"
    )
    source: ClassVar[str] = "Li & Li 2023, AnglE-optimized Text Embeddings, section 3.4"

    def similarities(self, first: "Tensor", second: "Tensor") -> "Tensor":
        """The similarity of each pair in complex space, (B,), of vectors (B, dim)."""
        import torch
        from torch.nn import functional

        unit = functional.normalize(torch.stack((first, second)), dim=2)
        unit = functional.pad(unit, (0, unit.shape[2] % 2))
        (a, b), (c, d) = (side.chunk(2, dim=1) for side in unit)
        found: Tensor = (a * c + b * d + b * c - a * d).sum(dim=1).abs()
        return found
