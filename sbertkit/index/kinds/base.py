"""What a kind of vector index is: its settings, how it is written, opened and searched."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Protocol, Self

import msgspec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sbertkit.arrays import Vectors
    from sbertkit.index.live_rows import LiveRows

Setting = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]

INDEX_FILE = "index.faiss"

BYTES_PER_NUMBER = 4
"""Of the stored vectors."""

_ANY_ROWS = 1_000
"""A setting up to this may exceed the number of vectors."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How much of an index a query looks at.

    Attributes:
        width: Clusters that are probed, or candidates that the walk through a graph keeps
            (``efSearch``); what of both, the kind says.
        rescored: Candidates that are scored again from the stored vectors, for 10 hits.
    """

    width: Setting
    rescored: Setting


class Candidates(NamedTuple):
    """Rows that may be the nearest, in no order; a row may be there twice.

    Attributes:
        scores: Approximate inner products (q, c) float32.
        rows: Numbers of the rows (q, c); -1 where there is none.
        floor: Of each query (q,), the score below which live rows were not looked for; ``None``:
            they were for all.
    """

    scores: "npt.NDArray[np.float32]"
    rows: "npt.NDArray[np.int64]"
    floor: "npt.NDArray[np.float32] | None" = None


class Searcher(Protocol):
    """The opened vector index of one segment or of several."""

    def search(
        self, queries: "Vectors", width: int, count: int, live: "LiveRows | None"
    ) -> Candidates:
        """Candidates among the rows of the index.

        Args:
            queries: Unit rows (q, dim) float32.
            width: See `SearchSettings`.
            count: How many candidates per query.
            live: Which rows of the index are to be found; ``None`` for all.
        """
        ...


class Part(NamedTuple):
    """What a kind has opened of a segment: its content, and the number of rows."""

    content: Any
    rows: int


@dataclass(frozen=True, slots=True)
class IndexKind:
    """A kind of vector index; the fields of its dataclass are its settings.

    What it finds are candidates only: they are scored again from the stored vectors, so that every
    kind gives the same exact scores. One that is `trained` shares what it has learnt from a sample
    of the vectors among all segments of an index.

    Attributes:
        name: Its name.
        files: What it writes in the folder of a segment; nothing if the stored vectors are
            searched.
        width_name: What the width of a search is called; ``None`` if it has none.
        trained: Whether it is trained for the index as a whole.
    """

    name: ClassVar[str]
    files: ClassVar[tuple[str, ...]] = (INDEX_FILE,)
    width_name: ClassVar[str | None] = None
    trained: ClassVar[bool] = False

    @classmethod
    def settings(cls) -> set[str]:
        """The names of its settings."""
        return {field.name for field in fields(cls)}

    @classmethod
    def for_count(cls, count: int, clusters: int | None = None) -> Self:
        """The settings for a segment of so many vectors, and clusters if the kind has them.

        Not for a kind that is trained, whose settings are those of the index.
        """
        del count, clusters
        return cls()

    def check(self, rows: int) -> None:
        """Refuses settings that no segment of so many vectors is written with.

        Raises:
            ValueError: One is too large, and would take memory.
        """
        limit = max(rows, _ANY_ROWS)
        for name, value in asdict(self).items():
            if isinstance(value, int) and value > limit:
                raise ValueError(f"expected {name} up to {limit}, found {value}")

    def check_for(self, count: int, dim: int) -> None:
        """Refuses settings that make no index of so many vectors of this size; most make one.

        Raises:
            InputError: They make none.
        """

    def memory(self, count: int, dim: int) -> int:
        """Bytes that a search of so many vectors of this size has in memory, about."""
        raise NotImplementedError

    def train(self, vectors: "Vectors") -> dict[str, "Vectors"]:
        """Arrays that all segments of an index share, by name; for a kind that is trained.

        Args:
            vectors: A sample (n, dim), at random.
        """
        raise NotImplementedError

    def learnt_shapes(self, dim: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays that `train` gives, by name."""
        del dim
        return {}

    @property
    def training_rows(self) -> int:
        """How many vectors `train` is given at most."""
        return 0

    def write(self, vectors: "Vectors", folder: Path, learnt: dict[str, "Vectors"]) -> None:
        """Writes its files over the vectors of a segment.

        Args:
            vectors: Unit rows (n, dim), memory-mapped.
            folder: The folder of the segment.
            learnt: What `train` gave.

        Raises:
            StorageError: They cannot be written.
        """
        raise NotImplementedError

    def open(self, folder: Path, rows: int, dim: int) -> Any:
        """What is searched of a segment, its files' hashes having been checked.

        Raises:
            DamagedIndex: They are not what the kind is written as.
        """
        raise NotImplementedError

    def searchers(
        self, parts: Sequence[Part], dim: int, learnt: dict[str, "Vectors"]
    ) -> list[tuple[Searcher, int]]:
        """What searches consecutive segments of this kind, and how many of them each covers."""
        del dim, learnt
        return [(self.searcher(part), 1) for part in parts]

    def searcher(self, part: Part) -> Searcher:
        """What searches one segment; for a kind whose segments are searched one by one."""
        raise NotImplementedError

    def width_for(self, width: int, count: int) -> int:
        """The width with which so many candidates can be found, from the one that was tuned."""
        del count
        return width

    def widths(self, rows: int) -> list[int]:
        """The widths that tuning tries, ascending; the last finds whatever can be found."""
        raise NotImplementedError


def training_rows(vectors: "Vectors", count: int) -> "Vectors":
    """At most `count` of the vectors, the same ones every time."""
    import numpy as np

    if len(vectors) <= count:
        return np.ascontiguousarray(vectors)
    rows = np.random.default_rng(0).choice(len(vectors), size=count, replace=False)
    return np.ascontiguousarray(vectors[np.sort(rows)])


def doubling(start: int, limit: int) -> list[int]:
    """Widths up to a limit, and the limit, each at most 1.5 times the one before."""
    widths, width = [], start
    while width < limit:
        widths.append(width)
        width = max(width + 1, width * 5 // 4 if width > 8 else width + 2)
    return [*widths, limit]
