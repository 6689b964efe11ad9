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
class Changes:
    """What a change did to an index; false where it did nothing.

    Attributes:
        added: New documents.
        changed: Documents that took the place of others.
        deleted: Documents that went.
        unchanged: Documents that were given and left as they are.
        encoded: Texts that went through the encoder.
        documents: Documents that the index has now.
    """

    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    encoded: int = 0
    documents: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did; false where nothing was damaged.

    Attributes:
        mended: What was made anew, and from what.
        lost: What could not be saved.
        kept: What lies in the folder and is not named by the manifest; it was left as it is.
    """

    mended: tuple[Problem, ...] = ()
    lost: tuple[Problem, ...] = ()
    kept: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.mended or self.lost)


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
        segments: Number of its segments; `SearchIndex.compact` makes one of them.
        deleted: Deleted documents that still take room until then.
        encoder_bytes: Size of the encoder that it carries; 0 where queries need the model.
        precision: The precision that its vectors were computed in.
    """

    documents: int
    dim: int
    kind: str
    model: str
    fingerprint: str
    generation: int
    bytes: int
    recall: float
    segments: int
    deleted: int
    encoder_bytes: int
    precision: str
