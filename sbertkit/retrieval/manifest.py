"""The manifest: the one file of an index folder that is ever replaced."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from sbertkit.data.document_columns import ColumnChoice
from sbertkit.data.streams import reading
from sbertkit.encoder.long_options import TRUNCATE, LongOptions
from sbertkit.errors import (
    DamagedIndex,
    InputError,
    MissingFile,
    NewerFormat,
    OlderFormat,
    StorageError,
)
from sbertkit.files import read_regular
from sbertkit.index.kinds.base import SearchSettings
from sbertkit.index.kinds.table import KindWish
from sbertkit.retrieval.manifest_entries import (
    NAME_PATTERN,
    SEGMENTS_FOLDER,
    EncoderEntry,
    ExportEntry,
    LexicalEntry,
    RecallEntry,
    SegmentEntry,
    TrainedEntry,
)
from sbertkit.retrieval.modes import DENSE, HYBRID
from sbertkit.retrieval.results import Problem
from sbertkit.schema import Positive, parse_json
from sbertkit.sealed import SealedFile, read_sealed, seal
from sbertkit.storage import replace_file

MANIFEST_FILE = "manifest.json"
TOMBSTONES_FOLDER = "tombstones"
FORMAT = 2
_MARK = "sbertkit index"
_TOMBSTONES_PATH = re.compile(rf"{TOMBSTONES_FOLDER}/[0-9]{{6,16}}\.npy")
_REMEDY = "restore it from a backup or build the index again"


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
        lexical: The lexical index, if there is one.
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
    lexical: LexicalEntry | None = None

    def __post_init__(self) -> None:
        self.wish  # noqa: B018  # checked
        if len({segment.id for segment in self.segments}) < len(self.segments):
            raise ValueError("duplicate segment")
        if any(segment.has_words != (self.lexical is not None) for segment in self.segments):
            raise ValueError("expected words in all segments if and only if they are searched")
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

    @property
    def default_mode(self) -> str:
        """The mode of a search for texts that names none."""
        return HYBRID if self.lexical is not None and self.lexical.is_current else DENSE

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
            NAME_PATTERN.fullmatch(folder.name) for folder in segments.iterdir()
        )
