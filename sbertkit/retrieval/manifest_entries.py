"""What a manifest says of the parts of an index: segments, encoder, training, measured recall."""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.encoder.passage_table import PassageTable
from sbertkit.index.kinds.base import IndexKind
from sbertkit.index.kinds.table import KINDS
from sbertkit.index.segment import VECTORS_FILE, segment_files
from sbertkit.index.tuning import TriedSettings
from sbertkit.lexical.analyzer import RULES_VERSION
from sbertkit.lexical.bm25 import Bm25
from sbertkit.lexical.languages import LANGUAGES
from sbertkit.lexical.postings_file import WORDS_FILE
from sbertkit.retrieval.document_store import DOCUMENTS_FILE
from sbertkit.retrieval.filters.field_file import FIELDS_FILE
from sbertkit.retrieval.modes import DEFAULT_WEIGHT
from sbertkit.schema import Count, Digest, Positive
from sbertkit.sealed import SealedFile

SEGMENTS_FOLDER = "segments"
ENCODER_FOLDER = "encoder"
TRAINED_FOLDER = "trained"
RECALL_FOLDER = "recall"
NAMED_FOLDERS = (SEGMENTS_FOLDER, ENCODER_FOLDER, TRAINED_FOLDER, RECALL_FOLDER)
"""What is below them is in folders with names that writers give."""
QUERIES_FILE = "queries.npy"
PASSAGES_FILE = "passages.npy"
NAME_PATTERN = re.compile(r"[0-9]{6,16}-[0-9a-f]{8}")

Name = Annotated[str, msgspec.Meta(pattern=rf"\A{NAME_PATTERN.pattern}\Z")]
"""The name of such a folder."""

Dim = Annotated[int, msgspec.Meta(ge=1, le=2**20)]


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment.

    Attributes:
        id: The name of its folder.
        documents: Number of its documents, including deleted ones.
        kind: Kind of its vector index.
        files: Its files.
        deleted: How many of its documents are deleted.
        passages: Number of its vectors; ``None`` if each document is one passage.
    """

    id: Name
    documents: Positive
    kind: str
    files: tuple[SealedFile, ...]
    deleted: Count = 0
    passages: Positive | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind[:50]!r}")
        if self.deleted >= self.documents:
            raise ValueError(f"{self.deleted} of {self.documents} documents are deleted")
        folder = f"{SEGMENTS_FOLDER}/{self.id}"
        if self.passages is not None and self.passages <= self.documents:
            raise ValueError(f"{self.passages} passages of {self.documents} documents")
        names = _segment_files(self.kind, divided=self.passages is not None)
        expected = sorted(f"{folder}/{name}" for name in names)
        optional = {f"{folder}/{name}" for name in _OPTIONAL_FILES}
        if sorted(file.path for file in self.files if file.path not in optional) != expected:
            raise ValueError(f"expected the files {', '.join(expected)}")
        # Checked before memory is allocated for so many rows.
        sizes = {file.path: file.bytes for file in self.files}
        if self.rows * 4 > sizes[f"{folder}/{VECTORS_FILE}"]:
            raise ValueError(f"{VECTORS_FILE} does not hold {self.rows} vectors")

    @classmethod
    def of(cls, root: Path, folder: Path, passages: PassageTable, kind: str) -> "SegmentEntry":
        """The entry of a segment whose files are all written."""
        divided = passages.rows is not None
        names = sorted(_segment_files(kind, divided=divided))
        names += [name for name in _OPTIONAL_FILES if (folder / name).exists()]
        files = tuple(SealedFile.of(root, folder / name) for name in names)
        rows = len(passages) if divided else None
        return cls(folder.name, passages.documents, kind, files, passages=rows)

    def reindexed(self, root: Path, folder: Path, kind: str) -> "SegmentEntry":
        """The entry of a segment in `folder` with the same documents and another vector index."""
        known = {Path(file.path).name: file for file in self.files}
        names = sorted(_segment_files(kind, divided=self.passages is not None))
        names += [name for name in _OPTIONAL_FILES if name in known]
        files = tuple(
            replace(known[name], path=(folder / name).relative_to(root).as_posix())
            if name in DATA_FILES
            else SealedFile.of(root, folder / name)
            for name in names
        )
        return replace(self, id=folder.name, kind=kind, files=files)

    def moved(self, name: str) -> "SegmentEntry":
        """The entry of a segment with the same files in another folder."""
        folder = f"{SEGMENTS_FOLDER}/{name}"
        files = (replace(file, path=f"{folder}/{Path(file.path).name}") for file in self.files)
        return replace(self, id=name, files=tuple(files))

    def with_words(self, root: Path) -> "SegmentEntry":
        """The entry with the file of words, which is written."""
        words = SealedFile.of(root, root / SEGMENTS_FOLDER / self.id / WORDS_FILE)
        return replace(self, files=(*self.files, words))

    def without_words(self) -> "SegmentEntry":
        """The entry without the file of words."""
        files = (file for file in self.files if Path(file.path).name != WORDS_FILE)
        return replace(self, files=tuple(files))

    @property
    def has_fields(self) -> bool:
        """Whether it has the file that filters read."""
        return any(Path(file.path).name == FIELDS_FILE for file in self.files)

    @property
    def has_words(self) -> bool:
        """Whether it has the file of words."""
        return any(Path(file.path).name == WORDS_FILE for file in self.files)

    @property
    def rows(self) -> int:
        """Number of its vectors, including those of deleted documents."""
        return self.documents if self.passages is None else self.passages

    @property
    def live(self) -> int:
        """Number of documents that are not deleted."""
        return self.documents - self.deleted


_OPTIONAL_FILES = (FIELDS_FILE, WORDS_FILE)
DATA_FILES = (DOCUMENTS_FILE, VECTORS_FILE, PASSAGES_FILE, *_OPTIONAL_FILES)
"""What a segment has besides its vector index; the last three not always."""


def _segment_files(kind: str, *, divided: bool) -> tuple[str, ...]:
    passages = (PASSAGES_FILE,) if divided else ()
    return (DOCUMENTS_FILE, *passages, *segment_files(kind))


@dataclass(frozen=True, slots=True)
class ExportEntry:
    """The bundled encoder: its id, which is the name of its folder, and its files."""

    id: Name
    files: tuple[SealedFile, ...]

    def __post_init__(self) -> None:
        expected = sorted(f"{ENCODER_FOLDER}/{self.id}/{name}" for name in EXPORT_FILES)
        if sorted(file.path for file in self.files) != expected:
            raise ValueError(f"expected the files {', '.join(expected)}")


@dataclass(frozen=True, slots=True)
class TrainedEntry:
    """What the vector index has learnt for all segments.

    Attributes:
        id: The name of its folder.
        name: The kind of index.
        parameters: Its settings.
        files: The arrays.
        rows: Number of vectors of the index when it was trained.
    """

    id: Name
    name: str
    parameters: dict[str, Any]
    files: tuple[SealedFile, ...]
    rows: Positive

    def __post_init__(self) -> None:
        folder = f"{TRAINED_FOLDER}/{self.id}"
        expected = [f"{folder}/{name}.npy" for name in sorted(self.kind.learnt_shapes(1))]
        if not expected or sorted(file.path for file in self.files) != expected:
            raise ValueError(f"expected the files {', '.join(expected) or 'of a trained kind'}")

    @classmethod
    def of(
        cls, name: str, kind: IndexKind, files: tuple[SealedFile, ...], rows: int
    ) -> "TrainedEntry":
        """The entry of a folder of that name, whose files are all written."""
        return cls(name, kind.name, asdict(kind), files, rows)

    @property
    def kind(self) -> IndexKind:
        """The kind, with its settings.

        Raises:
            ValueError: There is no such kind, or it has other settings.
        """
        kind = KINDS.get(self.name)
        if kind is None or not kind.trained:
            raise ValueError(f"expected a kind that is trained, found {self.name[:50]!r}")
        if self.parameters.keys() != kind.settings():
            raise ValueError(f"expected the parameters {', '.join(sorted(kind.settings()))}")
        return msgspec.convert(self.parameters, kind)


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """The recall that was measured, and how it is reached.

    Attributes:
        id: The name of the folder of the vectors of the queries.
        files: That file.
        source: Where the queries came from: the name of a file, or ``parts of documents``.
        groups: How many groups of as many queries there are, each of which must reach the target.
        queries: Number of queries.
        chosen: The settings, and what was measured with them.
        tried: All settings that were tried.
        generation: When it was measured.
        rows: Number of vectors then.
        changed: Vectors added or removed since.
    """

    id: Name
    files: tuple[SealedFile, ...]
    source: str
    groups: Positive
    queries: Positive
    chosen: TriedSettings
    tried: tuple[TriedSettings, ...]
    generation: Positive
    rows: Positive
    changed: Count = 0

    def __post_init__(self) -> None:
        expected = [f"{RECALL_FOLDER}/{self.id}/{QUERIES_FILE}"]
        if [file.path for file in self.files] != expected:
            raise ValueError(f"expected the file {expected[0]}")


@dataclass(frozen=True, slots=True)
class WeightEntry:
    """The weight of vectors in a hybrid search.

    Attributes:
        weight: The weight, 0 to 1.
        queries: Number of parts of documents that it was measured with; 0 if it was given.
        gains: What was measured by weights of equal distance from 0 to 1: mean nDCG@10.
        rows: Number of vectors then.
        changed: Vectors added or removed since.
    """

    weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    queries: Count = 0
    gains: tuple[float, ...] = ()
    rows: Count = 0
    changed: Count = 0

    @property
    def is_given(self) -> bool:
        """Whether it was given, and not measured."""
        return not self.queries


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """The lexical index, whose files are those of words in all segments.

    Attributes:
        language: The language that the words are of.
        k1: Parameter of BM25.
        b: Parameter of BM25.
        rules: Version of the rules by which the words were made.
        weight: The weight of vectors in a hybrid search; ``None`` for the default.
    """

    language: str
    k1: float
    b: float
    rules: Positive
    weight: WeightEntry | None = None

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"unknown language {self.language[:50]!r}")
        self.bm25  # noqa: B018  # checked

    @property
    def is_current(self) -> bool:
        """Whether its words are made by the present rules, as those of queries are."""
        return self.rules == RULES_VERSION

    @property
    def fusion_weight(self) -> float:
        """The weight of vectors in a hybrid search."""
        return DEFAULT_WEIGHT if self.weight is None else self.weight.weight

    @property
    def bm25(self) -> Bm25:
        """The parameters of scores.

        Raises:
            ValueError: One is out of range.
        """
        return Bm25(self.k1, self.b)


@dataclass(frozen=True, slots=True)
class DeclaredOptions:
    """Further arguments of `Encoder.load` that affect the vectors."""

    pooling: str | None = None
    normalize: bool | None = None
    max_tokens: Positive | None = None
    dim: Dim | None = None
    prompts: dict[str, str] | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class EncoderEntry:
    """The encoder that built the index.

    Attributes:
        name: The model as it was given.
        relative: Its path relative to the index folder, if it is a folder.
        options: How it was loaded.
        fingerprint: Its fingerprint.
        dim: Size of its vectors.
        precision: The precision that built the index.
    """

    name: str
    relative: str | None
    options: DeclaredOptions
    fingerprint: Digest
    dim: Dim
    precision: str
