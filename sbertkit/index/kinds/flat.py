"""Exhaustive search of the stored vectors."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.index.kinds.base import BYTES_PER_NUMBER, IndexKind

if TYPE_CHECKING:
    from sbertkit.arrays import Vectors


@dataclass(frozen=True, slots=True)
class Flat(IndexKind):
    """Exhaustive search of the stored vectors, which is exact."""

    name: ClassVar[str] = "flat"
    files: ClassVar[tuple[str, ...]] = ()

    def memory(self, count: int, dim: int) -> int:
        """See `IndexKind`; all vectors are read for each query."""
        return count * dim * BYTES_PER_NUMBER

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """See `IndexKind`."""

    def open(self, folder: Path, rows: int, dim: int) -> Any:
        """See `IndexKind`."""
        del folder, rows, dim
