"""The manifest: the one file of an index folder that is ever replaced."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sbertkit.data.document_columns import ColumnChoice
from sbertkit.data.streams import reading
from sbertkit.encoder.exports.manifest import EXPORT_FILES
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.encoder.passage_table import PassageTable
from sbertkit.errors import (
    DamagedIndex,
    InputError,
    MissingFile,
    NewerFormat,
    OlderFormat,
    StorageError,
)
from sbertkit.files import read_regular
from sbertkit.index.kinds.base import IndexKind, SearchSettings
from sbertkit.index.kinds.table import KINDS, KindWish
from sbertkit.index.segment import VECTORS_FILE, segment_files
from sbertkit.index.tuning import TriedSettings
from sbertkit.retrieval.document_store import DOCUMENTS_FILE
from sbertkit.retrieval.filters.field_file import FIELDS_FILE
from sbertkit.retrieval.results import Problem
from sbertkit.schema import Count, Digest, Positive, parse_json
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import replace_file

MANIFEST_FILE = "manifest.json"
SEGMENTS_FOLDER = "segments"
ENCODER_FOLDER = "encoder"
TOMBSTONES_FOLDER = "tombstones"
TRAINED_FOLDER = "trained"
RECALL_FOLDER = "recall"
NAMED_FOLDERS = (SEGMENTS_FOLDER, ENCODER_FOLDER, TRAINED_FOLDER, RECALL_FOLDER)
"""What is below them is in folders with names that writers give."""
QUERIES_FILE = "queries.npy"
FORMAT = 2
PASSAGES_FILE = "passages.npy"
_MARK = "sbertkit index"
_SEGMENT_NAME = re.compile(r"[0-9]{6,16}-[0-9a-f]{8}")
_TOMBSTONES_PATH = re.compile(rf"{TOMBSTONES_FOLDER}/[0-9]{{6,16}}\.npy")
_REMEDY = "restore it from a backup or build the index again"


Name = Annotated[str, msgspec.Meta(pattern=rf"\A{_SEGMENT_NAME.pattern}\Z")]
"""The name of the folder of a segment or a bundled encoder."""

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
        optional = f"{folder}/{FIELDS_FILE}"
        if sorted(file.path for file in self.files if file.path != optional) != expected:
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
        if (folder / FIELDS_FILE).exists():
            names.append(FIELDS_FILE)
        files = tuple(SealedFile.of(root, folder / name) for name in names)
        rows = len(passages) if divided else None
        return cls(folder.name, passages.documents, kind, files, passages=rows)

    def reindexed(self, root: Path, folder: Path, kind: str) -> "SegmentEntry":
        """The entry of a segment in `folder` with the same documents and another vector index."""
        known = {Path(file.path).name: file for file in self.files}
        names = sorted(_segment_files(kind, divided=self.passages is not None))
        names += [FIELDS_FILE] if self.has_fields else []
        files = tuple(
            replace(known[name], path=(folder / name).relative_to(root).as_posix())
            if name in DATA_FILES
            else SealedFile.of(root, folder / name)
            for name in names
        )
        return replace(self, id=folder.name, kind=kind, files=files)

    @property
    def has_fields(self) -> bool:
        """Whether it has the file that filters read."""
        return any(Path(file.path).name == FIELDS_FILE for file in self.files)

    @property
    def rows(self) -> int:
        """Number of its vectors, including those of deleted documents."""
        return self.documents if self.passages is None else self.passages

    @property
    def live(self) -> int:
        """Number of documents that are not deleted."""
        return self.documents - self.deleted


DATA_FILES = (DOCUMENTS_FILE, VECTORS_FILE, PASSAGES_FILE, FIELDS_FILE)
"""What a segment has besides its vector index; the last two not always."""


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


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of an index.

    Attributes:
        generation: Counts the commits from 1.
        encoder: The encoder that built it.
        corpus: Absolute path of the corpus, if it was a file or folder.
        kind: Requested kind.
        recall: Requested recall.
        segments: The segments.
        tombstones: The file of deleted documents, if any are deleted.
        exported: The bundled encoder, if any.
        clusters: Requested clusters, for the kinds that have them.
        columns: The columns of the corpus that were chosen, if any were.
        long: What is done with texts that are longer than the encoder's limit.
        factory: Requested factory string, for kind ``factory``.
        memory: Requested bytes in memory at most.
        trained: What the vector index has learnt, if its kind is trained.
        measured: The recall that was measured, if it was.
    """

    generation: Positive
    encoder: EncoderEntry
    corpus: str | None
    kind: str
    recall: Annotated[float, msgspec.Meta(gt=0, le=1)]
    segments: tuple[SegmentEntry, ...]
    tombstones: SealedFile | None
    exported: ExportEntry | None = None
    clusters: Positive | None = None
    columns: ColumnChoice | None = None
    long: LongOptions = TRUNCATE
    factory: str | None = None
    memory: Positive | None = None
    trained: TrainedEntry | None = None
    measured: RecallEntry | None = None

    def __post_init__(self) -> None:
        self.wish  # noqa: B018  # checked
        if len({segment.id for segment in self.segments}) < len(self.segments):
            raise ValueError("duplicate segment")
        if (self.tombstones is not None) != (self.deleted > 0):
            raise ValueError("expected a file of tombstones if and only if documents are deleted")
        if self.tombstones and not _TOMBSTONES_PATH.fullmatch(self.tombstones.path):
            raise ValueError(f"expected a file of tombstones, found {self.tombstones.path!r:.200}")

    @property
    def wish(self) -> KindWish:
        """What was asked of the vector index.

        Raises:
            ValueError: Something that does not go together.
        """
        return KindWish(self.kind, self.recall, self.clusters, self.factory, self.memory)

    def with_wish(self, wish: KindWish) -> "Manifest":
        """The same index, of which something else is asked."""
        return replace(self, **asdict(wish))

    @property
    def settings(self) -> SearchSettings | None:
        """How much of the vector index is searched, if that was tuned."""
        return None if self.measured is None else self.measured.chosen.settings

    @property
    def documents(self) -> int:
        """Number of documents in all segments that are not deleted."""
        return sum(segment.live for segment in self.segments)

    @property
    def deleted(self) -> int:
        """Number of deleted documents whose rows are still stored."""
        return sum(segment.deleted for segment in self.segments)

    @property
    def vectors(self) -> int:
        """Number of vectors in all segments, including those of deleted documents."""
        return sum(segment.rows for segment in self.segments)

    def files(self) -> Iterator[SealedFile]:
        """All files of the index, without the manifest itself."""
        for segment in self.segments:
            yield from segment.files
        for entry in (self.exported, self.trained, self.measured):
            if entry is not None:
                yield from entry.files
        if self.tombstones is not None:
            yield self.tombstones

    def commit(self, root: Path) -> None:
        """Makes this the state of the index folder, in one step."""
        content = {"mark": _MARK, "format": FORMAT, **asdict(self)}
        replace_file(root / MANIFEST_FILE, seal(content))


def read_manifest(root: Path) -> Manifest:
    """The manifest of an index folder.

    Raises:
        MissingFile: There is no such folder.
        InputError: The folder is no sbertkit index.
        DamagedIndex: The manifest is missing, truncated or changed.
        NewerFormat: A newer sbertkit wrote it.
        OlderFormat: An older one did.
        StorageError: It cannot be read.
    """
    return _read(root, FORMAT)


def read_any_manifest(root: Path) -> Manifest:
    """As `read_manifest`, also of an index of the format before this one."""
    try:
        return read_manifest(root)
    except OlderFormat:
        return _read(root, FORMAT - 1)


def is_current(root: Path) -> bool:
    """Whether an index is of the present format; raises as `read_any_manifest`."""
    try:
        read_manifest(root)
    except OlderFormat:
        return False
    return True


def _read(root: Path, version: int) -> Manifest:
    raw = _read_raw(root)
    _check_mark(root, raw)
    try:
        return read_sealed(raw, Manifest, root / MANIFEST_FILE, version=version)
    except NewerFormat as error:
        raise NewerFormat(f"{error}, or build the index again") from error
    except OlderFormat as error:
        raise OlderFormat(f"{error}; upgrade it with: sbertkit upgrade {root}") from error
    except InputError as error:
        raise DamagedIndex(f"{error}; {_REMEDY}") from error


def is_index(root: Path) -> bool:
    """Whether a folder is an sbertkit index, even a damaged, newer or unfinished one.

    Raises:
        StorageError: It cannot be read.
    """
    try:
        _check_mark(root, _read_raw(root))
    except DamagedIndex:
        return True
    except InputError:
        return False
    return True


def check_files(root: Path, manifest: Manifest) -> Iterator[Problem]:
    """What is wrong with the files that a manifest names, all of them hashed."""
    for entry in manifest.files():
        try:
            problem = check_file(root, entry, hashed=True)
        except StorageError as error:
            problem = Problem(entry.path, str(error))
        if problem is not None:
            yield problem


def check_file(root: Path, entry: SealedFile, *, hashed: bool) -> Problem | None:
    """What is wrong with a file of the index, if anything.

    Args:
        root: The index folder.
        entry: What the file should be.
        hashed: Whether the hash is compared, not only the size.

    Raises:
        StorageError: It cannot be read.
    """
    with reading(str(root / entry.path)):
        fault = entry.fault(root, hashed=hashed)
    return None if fault is None else Problem(entry.path, fault)


def _read_raw(root: Path) -> bytes:
    """The manifest's bytes; an index that has lost it is distinguished from other folders."""
    path = root / MANIFEST_FILE
    with reading(str(root)):
        if not root.exists():
            raise MissingFile(f"there is no index at {root}; build one with: sbertkit index CORPUS")
    try:
        with reading(str(path)):
            return read_regular(path)
    except InputError as error:
        lost = isinstance(error, MissingFile)
        if _has_segments(root):
            reason = "a build was not finished, or the file was lost" if lost else str(error)
            raise DamagedIndex(f"{root} has no {MANIFEST_FILE}: {reason}; {_REMEDY}") from error
        raise InputError(
            f"{root} is not an sbertkit index: it has no {MANIFEST_FILE}"
            f"{'' if lost else f' ({error})'}; name the folder of one, or build it with: sbertkit "
            "index CORPUS"
        ) from error


def _check_mark(root: Path, raw: bytes) -> None:
    """Refuses what is not a manifest, by its mark."""
    reason = "its mark was changed"
    try:
        content = parse_json(raw, MANIFEST_FILE)
        if isinstance(content, dict) and content.get("mark") == _MARK:
            return
    except InputError as error:
        reason = str(error)
    if _has_segments(root):
        raise DamagedIndex(f"{root / MANIFEST_FILE} is damaged: {reason}; {_REMEDY}")
    raise InputError(
        f"{root} is not an sbertkit index: its {MANIFEST_FILE} is of another kind; name the folder "
        "of one"
    )


def _has_segments(root: Path) -> bool:
    """Whether there are folders that only sbertkit makes."""
    segments = root / SEGMENTS_FOLDER
    with reading(str(segments)):
        return segments.is_dir() and any(
            _SEGMENT_NAME.fullmatch(folder.name) for folder in segments.iterdir()
        )
