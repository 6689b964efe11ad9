"""Results of an index: hits, its description, changes and problems."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self


class Passage(NamedTuple):
    """A part of a stored text, or the whole of it.

    Attributes:
        text: Its text.
        start: The character of the stored text that it begins at.
        end: The character before which it ends; ``stored[start:end] == text``.
    """

    text: str
    start: int
    end: int


class Stage(NamedTuple):
    """What one stage of a search found for a hit.

    Attributes:
        score: Its score there.
        rank: Its rank there, from 1.
    """

    score: float
    rank: int


class _Found(NamedTuple):
    id: str
    score: float
    text: str
    metadata: Mapping[str, Any]


class Hit(_Found):
    """A document found by a search: a named tuple of four, which also knows the passage.

    Attributes:
        id: The document's id.
        score: The exact cosine of the query and the passage, -1 to 1; in mode ``lexical`` BM25 over
            the whole index; in mode ``hybrid`` what `Fusion` makes of both; of a re-ranked search,
            the re-ranker's score before its activation.
        text: The stored text of the document.
        metadata: The document's metadata.
        passage: The passage of the document that is nearest to the query; the whole text where it
            has one vector.
        plan: How it was searched for, if the search was asked to explain; else ``None``.
        stages: What each stage of such a search found: ``dense`` or ``lexical``, ``rerank``; else
            empty.
        matched: The words of the query that the text has, as they stand there, of such a search of
            an index with words; else empty. `SearchIndex.matcher` says where they are.
    """

    passage: Passage
    plan: str | None
    stages: Mapping[str, Stage]
    matched: tuple[str, ...]

    def __new__(
        cls,
        id: str,  # noqa: A002  # the name of the field
        score: float,
        text: str,
        metadata: Mapping[str, Any],
        passage: Passage | None = None,
    ) -> Self:
        """A hit of a passage; by default of the whole text."""
        hit = super().__new__(cls, id, score, text, metadata)
        hit.passage = passage or Passage(text, 0, len(text))
        hit.plan = None
        hit.stages = {}
        hit.matched = ()
        return hit

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override]  # whose others are private
        return cls(*iterable)

    def _replace(self, **fields: Any) -> Self:
        beside = {name: fields.pop(name, getattr(self, name)) for name in self.__annotations__}
        hit = super()._replace(**fields)
        vars(hit).update(beside)
        return hit

    def __eq__(self, other: object) -> bool:
        same = not isinstance(other, Hit) or self.passage == other.passage
        return same and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Problem(NamedTuple):
    """Something wrong with an index folder: the file, relative to the folder, and what is wrong."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change did to an index; false if it did nothing.

    Attributes:
        added: New documents.
        changed: Documents that replaced stored ones.
        deleted: Deleted documents.
        unchanged: Documents that were given and are stored already.
        moved: Documents whose id, the number of their line, is another one now.
        encoded: Texts that were encoded, each passage of a long one counted.
        documents: Documents in the index now.
    """

    added: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    moved: int = 0
    encoded: int = 0
    documents: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted or self.moved)

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON can hold it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did; false if nothing was damaged.

    Attributes:
        repaired: What was rebuilt, and from what.
        lost: What could not be recovered.
        kept: What is in the folder and not named by the manifest; it was left unchanged.
    """

    repaired: tuple[Problem, ...] = ()
    lost: tuple[Problem, ...] = ()
    kept: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.repaired or self.lost)

    def to_dict(self) -> dict[str, Any]:
        """The repair as JSON can hold it."""
        return {name: [one._asdict() for one in getattr(self, name)] for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Tried:
    """Settings of a search that were tried, and what was measured with them.

    Attributes:
        width: What `MeasuredRecall.width_name` says.
        rescored: Candidates that are scored again from the stored vectors, for 10 hits.
        recall: Mean recall@10 against exhaustive search.
        bound: Lower bound of that mean at 95 % confidence, the lowest of all groups of queries.
        milliseconds: Per query in a batch; ``None`` if it was not measured.
    """

    width: int
    rescored: int
    recall: float
    bound: float
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class MeasuredRecall:
    """The recall that an index was measured to have, and how.

    Attributes:
        recall: Mean recall@10 against exhaustive search.
        bound: Its lower bound at 95 % confidence.
        chosen: The settings that searches use.
        tried: All settings that were tried, the narrowest first.
        queries: Number of queries.
        source: Where they came from.
        generation: When it was measured.
        changed: Vectors added or removed since.
        index_bytes: What a search has in memory besides the stored vectors, about.
        width_name: What the width of settings is: ``probes`` of clusters, or ``ef_search``.
    """

    recall: float
    bound: float
    chosen: Tried
    tried: tuple[Tried, ...]
    queries: int
    source: str
    generation: int
    changed: int
    index_bytes: int
    width_name: str


@dataclass(frozen=True, slots=True)
class WeightInfo:
    """What vectors count in a hybrid search, and how that is known.

    Attributes:
        value: The weight, 0 to 1; words count the rest.
        source: ``parts of documents``, ``given`` or ``default``.
        queries: Number of parts of documents that it was measured with.
        gains: Mean nDCG@10 of these by weights of equal distance from 0 to 1.
        changed: Vectors added or removed since.
    """

    value: float
    source: str
    queries: int
    gains: tuple[float, ...]
    changed: int


@dataclass(frozen=True, slots=True)
class LexicalInfo:
    """How documents are searched by their words.

    Attributes:
        language: The language that their words are of.
        k1: Parameter of BM25.
        b: Parameter of BM25.
        bytes: Size of the files of words.
        weight: What vectors count in a hybrid search.
    """

    language: str
    k1: float
    b: float
    bytes: int
    weight: WeightInfo


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The description of an index.

    Attributes:
        documents: Number of documents.
        dim: Size of a vector.
        kind: Kind of its vector index.
        model: Name of the encoder, as it was given.
        fingerprint: The encoder's fingerprint.
        generation: How often the index was written.
        bytes: Size of all its files.
        recall: The requested recall.
        memory: The requested bytes in memory at most; ``None`` for any.
        measured: The recall that was measured; ``None`` if the search is exhaustive, or it was not.
        segments: Number of its segments; `SearchIndex.compact` merges them.
        deleted: Deleted documents that occupy disk space until then.
        encoder_bytes: Size of the bundled encoder; 0 if queries need the model.
        precision: The precision that its vectors were computed in.
        long: What was done with texts longer than the encoder's limit: ``passages``, ``truncate``
            or ``mean``.
        overlap: Tokens that a passage has of the one before.
        vectors: Number of vectors, a document having one for each passage; those of deleted
            documents are counted.
        lexical: How documents are searched by their words; ``None`` if they cannot be.
        default_mode: See `SearchIndex.default_mode`.
    """

    documents: int
    dim: int
    kind: str
    model: str
    fingerprint: str
    generation: int
    bytes: int
    recall: float
    memory: int | None
    measured: MeasuredRecall | None
    segments: int
    deleted: int
    encoder_bytes: int
    precision: str
    long: str
    overlap: int
    vectors: int
    lexical: LexicalInfo | None
    default_mode: str

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON can hold it."""
        return asdict(self)
