"""Description and verification of an index folder, without an encoder."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.streams import reading
from sbertkit.errors import DamagedIndex
from sbertkit.index.tuning import TriedSettings
from sbertkit.lexical.postings_file import WORDS_FILE
from sbertkit.lock import LOCK_FILE
from sbertkit.retrieval.database import PublishedDatabase
from sbertkit.retrieval.filters.field_file import FIELDS_FILE
from sbertkit.retrieval.filters.field_store import ColumnSize, FieldStore
from sbertkit.retrieval.filters.known_fields import FieldInfo, known_fields
from sbertkit.retrieval.journal import (
    JOURNAL_FILE,
    SIDE_FILES,
    is_made,
    leftovers,
    named_by,
)
from sbertkit.retrieval.manifest import (
    MANIFEST_FILE,
    Manifest,
    check_file,
    check_files,
    read_manifest,
)
from sbertkit.retrieval.manifest_entries import SEGMENTS_FOLDER, LexicalEntry
from sbertkit.retrieval.opening import READ_ATTEMPTS, open_generation
from sbertkit.retrieval.results import (
    IndexInfo,
    LexicalInfo,
    MeasuredRecall,
    Problem,
    Tried,
    WeightInfo,
)

_STRAY = "not part of the index: move it away"
_OTHER_STATE = (
    "not named by the manifest, and not left by a killed change: restore the manifest.json that it "
    "belongs to, or move it away"
)


def describe(manifest: Manifest) -> IndexInfo:
    """The description of an index from its manifest."""
    exported = manifest.exported
    kinds = {segment.kind for segment in manifest.segments}
    return IndexInfo(
        documents=manifest.documents,
        dim=manifest.encoder.dim,
        kind="+".join(sorted(kinds)) or manifest.kind,
        model=manifest.encoder.name,
        fingerprint=manifest.encoder.fingerprint,
        generation=manifest.generation,
        bytes=sum(entry.bytes for entry in manifest.files()),
        recall=manifest.recall,
        memory=manifest.memory,
        measured=_measured(manifest),
        segments=len(manifest.segments),
        deleted=manifest.deleted,
        encoder_bytes=0 if exported is None else sum(entry.bytes for entry in exported.files),
        precision=manifest.encoder.precision,
        long=manifest.long.mode,
        overlap=manifest.long.overlap,
        vectors=manifest.vectors,
        lexical=_lexical(manifest),
        default_mode=manifest.default_mode,
    )


def _lexical(manifest: Manifest) -> LexicalInfo | None:
    entry = manifest.lexical
    if entry is None:
        return None
    words = (file for file in manifest.files() if Path(file.path).name == WORDS_FILE)
    size = sum(file.bytes for file in words)
    return LexicalInfo(entry.language, entry.k1, entry.b, size, _weight(entry))


def _weight(entry: LexicalEntry) -> WeightInfo:
    known = entry.weight
    if known is None:
        return WeightInfo(entry.fusion_weight, "default", 0, (), 0)
    source = "given" if known.is_given else "parts of documents"
    return WeightInfo(known.weight, source, known.queries, known.gains, known.changed)


def _measured(manifest: Manifest) -> MeasuredRecall | None:
    entry = manifest.measured
    if entry is None:
        return None
    kind = manifest.wish.choose(manifest.vectors, manifest.encoder.dim)
    return MeasuredRecall(
        recall=entry.chosen.recall,
        bound=entry.chosen.bound,
        chosen=_tried(entry.chosen),
        tried=tuple(map(_tried, entry.tried)),
        queries=entry.queries,
        source=entry.source,
        generation=entry.generation,
        changed=entry.changed,
        index_bytes=kind.memory(manifest.vectors, manifest.encoder.dim),
        width_name=kind.width_name or "",
    )


def _tried(one: TriedSettings) -> Tried:
    settings = one.settings
    return Tried(settings.width, settings.rescored, one.recall, one.bound, one.milliseconds)


def index_info(path: str | os.PathLike[str]) -> IndexInfo:
    """The description of an index folder, from its manifest alone; no encoder is loaded.

    Raises:
        InputError: As `SearchIndex.open`.
    """
    return describe(read_manifest(Path(path_text(path))))


def index_fields(path: str | os.PathLike[str]) -> dict[str, FieldInfo]:
    """The fields that a filter of an index folder may name, those that most documents have first.

    Only the files that filters read are opened, after a check of their hashes.

    Raises:
        DamagedIndex: One of them is missing, truncated or changed.
        InputError: As `SearchIndex.open`.
    """
    root = Path(path_text(path))
    for _ in range(READ_ATTEMPTS):
        manifest = read_manifest(root)
        try:
            stored = sum(segment.documents for segment in manifest.segments)
            return known_fields(stored, _columns(root, manifest))
        except DamagedIndex:
            # A writer may have removed the files meanwhile, after it committed a newer manifest.
            if read_manifest(root) == manifest:
                raise
    raise DamagedIndex(f"{root} was rewritten {READ_ATTEMPTS} times while it was being read")


def _columns(root: Path, manifest: Manifest) -> Iterator[ColumnSize]:
    """The columns of all segments that have any."""
    for segment in manifest.segments:
        for file in segment.files:
            if Path(file.path).name == FIELDS_FILE:
                problem = check_file(root, file, hashed=True)
                if problem is not None:
                    raise DamagedIndex(f"{root / problem.file}: {problem.reason}")
                database = PublishedDatabase(root / file.path)
                with closing(FieldStore(database, segment.documents)) as store:
                    yield from store.sizes()


def verify_index(path: str | os.PathLike[str]) -> tuple[Problem, ...]:
    """What is wrong with an index folder, every file hashed; empty if nothing is.

    Missing, truncated, changed and additional files are reported.

    Raises:
        MissingFile: There is no such folder.
        InputError: It is no index.
        NewerFormat: A newer sbertkit wrote it.
        StorageError: The folder cannot be read.
    """
    root = Path(path_text(path))
    problems: tuple[Problem, ...] = ()
    for _ in range(READ_ATTEMPTS):
        try:
            manifest = read_manifest(root)
            problems = _problems(root, manifest)
            # A writer may have removed the files meanwhile, after it committed a newer manifest.
            if not problems or read_manifest(root) == manifest:
                break
        except DamagedIndex as error:
            return (Problem(MANIFEST_FILE, str(error)),)
    return problems


def unnamed(root: Path, manifest: Manifest) -> list[Problem]:
    """What is in an index folder and belongs neither to it nor to a running change.

    Leftovers of a killed change do no harm; the next writer removes them.
    """
    files = {MANIFEST_FILE, JOURNAL_FILE, LOCK_FILE, *(entry.path for entry in manifest.files())}
    named = named_by(manifest)
    found: list[Problem] = []
    for at, folders, names in os.walk(root):
        here = Path(at).relative_to(root)
        paths = {name: (here / name).as_posix() for name in (*folders, *names)}
        others = {name for name, path in paths.items() if is_made(path) and path not in named}
        links = {name for name in folders if (root / paths[name]).is_symlink()}
        for name in others.union(names, links):
            if paths[name] not in files:
                reason = _OTHER_STATE if name in others else _STRAY
                found.append(Problem(paths[name], reason))
        folders[:] = [name for name in folders if name not in others]
    # Read last, since a writer may have started meanwhile.
    stale = set(leftovers(root))
    return sorted(
        problem
        for problem in found
        if problem.file not in stale
        and not SIDE_FILES.fullmatch(problem.file)
        and os.path.lexists(root / problem.file)
    )


def _problems(root: Path, manifest: Manifest) -> tuple[Problem, ...]:
    problems = [*check_files(root, manifest)]
    with reading(str(root)):
        problems += unnamed(root, manifest)
    if problems:
        return tuple(problems)
    try:
        view = open_generation(root, manifest)
    except (DamagedIndex, OSError) as error:
        return (Problem(SEGMENTS_FOLDER, str(error)),)
    view.close()
    return ()
