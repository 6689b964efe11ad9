"""What an index gives back: hits, its description, and problems found in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Hit(NamedTuple):
    """A document found by a search.

    Attributes:
        id: The document's id.
        score: The exact cosine of query and document, -1 to 1.
        text: The stored text.
        metadata: The document's further fields.
    """

    id: str
    score: float
    text: str
    metadata: Mapping[str, Any]


class Problem(NamedTuple):
    """Something wrong with an index folder: the file, relative to the folder, and what is wrong."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index holds.

    Attributes:
        documents: Number of documents.
        dim: Size of a vector.
        kind: Kind of its vector index.
        model: Name of the encoder as it was given.
        fingerprint: The encoder's fingerprint.
        generation: How often the index was written.
        bytes: Size of all its files.
        recall: The recall that was asked for.
    """

    documents: int
    dim: int
    kind: str
    model: str
    fingerprint: str
    generation: int
    bytes: int
    recall: float
