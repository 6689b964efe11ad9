"""The kinds by name, and which one `auto` stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sbertkit.arguments import whole_number
from sbertkit.errors import InputError, InputTypeError
from sbertkit.index.kinds import AUTO_FLAT_LIMIT, NAMES
from sbertkit.index.kinds.base import IndexKind
from sbertkit.index.kinds.factory import Factory
from sbertkit.index.kinds.flat import Flat
from sbertkit.index.kinds.hnsw import Hnsw
from sbertkit.index.kinds.ivf import POINTS_PER_CLUSTER, Ivf
from sbertkit.index.kinds.ivfpq import IvfPq

KINDS: dict[str, type[IndexKind]] = {kind.name: kind for kind in (Flat, Hnsw, Ivf, IvfPq, Factory)}

EXACT = 1.0
"""The recall that only exhaustive search has for sure."""


@dataclass(frozen=True, slots=True)
class KindWish:
    """What was asked of the vector index.

    Attributes:
        kind: Name of a kind, or ``auto``.
        recall: The recall@10 that a search is to reach.
        clusters: Number of clusters, for kinds that have them.
        factory: The factory string, for kind ``factory``.
        memory: Bytes that a search may have in memory, without the encoder; ``None`` for any.
    """

    kind: str = "auto"
    recall: float = 0.95
    clusters: int | None = None
    factory: str | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        """Refuses what is wrong for any number of vectors.

        Raises:
            InputError: An unknown kind, clusters or a factory string for a kind that has none, or
                a recall or memory that nothing has.
            InputTypeError: A value of the wrong type.
        """
        if not isinstance(self.kind, str):
            raise InputTypeError(f"kind must be a str, not {self.kind!r}")
        if self.kind not in (*NAMES, "auto"):
            raise InputError(f"unknown kind {self.kind!r}; expected auto, {', '.join(NAMES)}")
        if (self.kind == Factory.name) != (self.factory is not None):
            raise InputError(
                "kind 'factory' needs a factory string, and no other kind takes one; give both "
                "(--kind factory --factory STRING)"
            )
        if self.factory is not None and not 0 < len(self.factory) <= _MAX_FACTORY:
            raise InputError(f"expected a factory string of 1 to {_MAX_FACTORY} characters")
        self._check_clusters()
        self._check_recall()
        if self.memory is not None:
            whole_number("memory", self.memory)

    def _check_clusters(self) -> None:
        if self.clusters is None:
            return
        whole_number("clusters", self.clusters)
        clustered = [name for name, kind in KINDS.items() if "clusters" in kind.settings()]
        if self.kind not in ("auto", *clustered):
            better = " or ".join(map(repr, clustered))
            raise InputError(
                f"kind {self.kind!r} has no clusters; leave them out or choose kind {better}"
            )

    def _check_recall(self) -> None:
        if isinstance(self.recall, bool) or not isinstance(self.recall, int | float):
            raise InputTypeError(f"recall must be a number, not {self.recall!r}")
        if not 0 < self.recall <= 1:
            raise InputError(f"recall must be above 0 and at most 1, not {self.recall}")
        if self.recall == EXACT and self.kind not in ("auto", Flat.name):
            raise InputError(
                f"recall 1.0 is that of exact search, which kind {self.kind!r} is not; choose kind "
                "'flat' or 'auto', or a recall below 1, such as 0.99"
            )

    def check_for(self, count: int) -> None:
        """Refuses more clusters than so many vectors.

        Raises:
            InputError: They are more.
        """
        if self.clusters is not None and self.clusters > count:
            works = max(1, count // POINTS_PER_CLUSTER)
            raise InputError(
                f"{self.clusters} clusters were asked for, but there are only {count} documents; "
                f"choose at most {count}, for instance {works}"
            )

    def clusters_for(self, count: int) -> int | None:
        """The clusters that were asked for; ``None`` for the default, also with fewer vectors."""
        return None if self.clusters is None or self.clusters > count else self.clusters

    def choose(self, count: int, dim: int) -> IndexKind:
        """The kind for an index of so many vectors of this size, with its settings.

        An index that has got fewer vectors than clusters were asked for has the default number.

        Raises:
            InputError: No kind that was asked for is as small as the memory.
        """
        usable = self._usable(count, dim)
        for kind in usable:
            if self.memory is None or kind.memory(count, dim) <= self.memory:
                return kind
        from rich.filesize import decimal

        smallest = min(usable, key=lambda kind: kind.memory(count, dim))
        raise InputError(
            f"{decimal(self.memory or 0)} of memory were given, but the smallest index of "
            f"{count:,} vectors of size {dim} by kind {self.kind!r} with recall {self.recall:g} is "
            f"{smallest.name} with {decimal(smallest.memory(count, dim))}; allow that"
        )

    def _usable(self, count: int, dim: int) -> Sequence[IndexKind]:
        """The kinds that were asked for, the best for so many vectors first."""
        clusters = self.clusters_for(count)
        if self.factory is not None:
            return [Factory(self.factory)]
        if self.kind not in ("auto", IvfPq.name):
            return [KINDS[self.kind].for_count(count, clusters)]
        if self.recall == EXACT:
            return [Flat()]
        coded = IvfPq.choices(count, dim, clusters)
        is_small = self.kind == "auto" and self.clusters is None and count <= AUTO_FLAT_LIMIT
        return [Flat(), *coded] if is_small else coded


_MAX_FACTORY = 200
