"""A guide: an encoder by whose cosines false negatives are found."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoder
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.torch_runtime import EXPORT_FROM
from sbertkit.metrics import unit_rows
from sbertkit.training.examples import NO_TEXT, Int64, TextTable


@dataclass(frozen=True, slots=True)
class Guide:
    """The vectors that a guide gives to the texts of examples.

    Attributes:
        vectors: Of unit length, (n, dim).
        anchors: Which of them an anchor has, by the number of its text; `NO_TEXT` for other texts.
        others: The same for positives and negatives.
    """

    vectors: Vectors
    anchors: Int64
    others: Int64

    @classmethod
    def of(cls, name: str, texts: Int64, table: TextTable, *, queries: bool) -> "Guide":
        """The vectors of a model; each text is encoded once, twice if it is a query, too.

        Args:
            name: A model folder or a hub name.
            texts: Numbers of anchors and others, (n, columns), see `Examples.texts`.
            table: Their texts.
            queries: Whether anchors are queries, where the guide tells these apart.
        """
        # A job of this size takes an export whoever made it, and a smaller one none: a resumed run
        # has the same vectors.
        job = texts[texts != NO_TEXT]
        large = len(np.unique(job)) >= EXPORT_FROM
        encoder = Encoder.load(name, backend="auto" if large else "torch")
        query, document = encoder.spec.prompts
        found = []
        places = np.full((2, job.max() + 1), NO_TEXT)
        start = 0
        for sides, kind, numbers in _jobs(texts, apart=queries and query != document):
            places[sides, numbers] = np.arange(start, start + len(numbers))
            found.append(encoder.encode(table.texts(numbers), kind=kind))
            start += len(numbers)
        return cls(unit_rows(np.concatenate(found)).astype(np.float32), *places)

    def cosines(self, anchors: Int64, others: Int64) -> Vectors:
        """The cosine of each anchor with each other text, (anchors, others), by their numbers."""
        cosines: Vectors = self.vectors[self.anchors[anchors]] @ self.vectors[self.others[others]].T
        return cosines


def _jobs(texts: Int64, *, apart: bool) -> Iterator[tuple[slice, Kind, Int64]]:
    """What is encoded, and as what: the sides that it serves, its kind, the numbers of texts."""
    if apart:
        others = texts[:, 1:]
        yield slice(0, 1), "query", np.unique(texts[:, 0])
        yield slice(1, 2), "document", np.unique(others[others != NO_TEXT])
    else:
        yield slice(0, 2), "document", np.unique(texts[texts != NO_TEXT])


@lru_cache(maxsize=1)
def guide_fingerprint(name: str) -> str:
    """The fingerprint of the model of that name."""
    return Encoder.load(name).fingerprint
