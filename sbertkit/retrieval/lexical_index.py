"""The lexical index of a generation: the words of each segment, written where they are missing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from sbertkit.errors import InputError, InputTypeError
from sbertkit.lexical.analyzer import RULES_VERSION, Analyzer
from sbertkit.lexical.languages import AUTO, detect_language
from sbertkit.lexical.options import LexicalOptions
from sbertkit.lexical.postings_file import WORDS_FILE
from sbertkit.lexical.postings_writer import write_postings
from sbertkit.progress import track
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore
from sbertkit.retrieval.linked_files import link_files
from sbertkit.retrieval.manifest_entries import SEGMENTS_FOLDER, LexicalEntry, SegmentEntry
from sbertkit.retrieval.workspace import Workspace
from sbertkit.storage import storage_errors

Lexical = bool | LexicalOptions
"""Whether there is a lexical index, and how its words are made."""

_SAMPLE = 1_000
"""Documents by which the language is detected."""
_DOCUMENTS_PER_ADVANCE = 1_000


def lexical_options(lexical: Lexical) -> LexicalOptions | None:
    """The options of a lexical index; ``None`` if there is to be none.

    Raises:
        InputTypeError: Neither options nor True or False.
    """
    if isinstance(lexical, LexicalOptions):
        return lexical
    if not isinstance(lexical, bool):
        raise InputTypeError(f"lexical must be True, False or LexicalOptions, not {lexical!r}")
    return LexicalOptions() if lexical else None


def describe_words(options: LexicalOptions, documents: Sequence[DocumentStore]) -> LexicalEntry:
    """What the manifest says of the lexical index of some documents, whose language is detected."""
    language = options.language
    if language == AUTO:
        language = detect_language(_sample(documents))
    return LexicalEntry(language, options.k1, options.b, RULES_VERSION)


def _sample(documents: Sequence[DocumentStore]) -> Iterator[str]:
    """Texts from all stores alike."""
    distance = max(1, sum(map(len, documents)) // _SAMPLE)
    for store in documents:
        for _, text in store.texts_at(range(0, len(store), distance)):
            yield text


def with_words(
    workspace: Workspace,
    lexical: LexicalEntry | None,
    segments: Iterable[SegmentEntry],
    *,
    progress: bool = False,
) -> tuple[SegmentEntry, ...]:
    """Segments with the words of a lexical index, written where they are missing; or without.

    Args:
        workspace: Where they are written.
        lexical: The index; ``None`` for none, without words.
        segments: Those of a generation that is not committed yet.
        progress: Whether progress is shown on standard error.

    Raises:
        StorageError: The disk is full or a permission is missing.
    """
    if lexical is None:
        return tuple(
            _linked(workspace, entry.without_words()) if entry.has_words else entry
            for entry in segments
        )
    analyzer = Analyzer(lexical.language)
    return tuple(
        entry if entry.has_words else _written(workspace, analyzer, entry, progress)
        for entry in segments
    )


def check_words(root: Path, lexical: LexicalEntry | None) -> LexicalEntry:
    """The lexical index of a folder, by words that queries have too.

    Raises:
        InputError: It has none, or one with words by other rules.
    """
    if lexical is not None and lexical.is_current:
        return lexical
    reason = "no lexical index" if lexical is None else "words by the rules of another version"
    raise InputError(
        f"{root} has {reason}; make it from the stored texts, without encoding anything, with "
        f"compact(lexical=True): sbertkit compact {root} --lexical"
    )


def _written(
    workspace: Workspace, analyzer: Analyzer, entry: SegmentEntry, progress: bool
) -> SegmentEntry:
    """The segment with its words; with links to its other files if it is old."""
    if entry.id not in workspace.names:
        entry = _linked(workspace, entry)
    folder = workspace.root / SEGMENTS_FOLDER / entry.id
    with storage_errors(folder), closing(DocumentStore(folder / DOCUMENTS_FILE)) as documents:
        texts = _tracked(documents, progress)
        write_postings(folder / WORDS_FILE, texts, analyzer)
    return entry.with_words(workspace.root)


def _linked(workspace: Workspace, entry: SegmentEntry) -> SegmentEntry:
    """The segment in a new folder, with links to its files."""
    folder = workspace.new_segment()
    names = [Path(file.path).name for file in entry.files]
    link_files(workspace.root / SEGMENTS_FOLDER / entry.id, folder, names)
    return entry.moved(folder.name)


def _tracked(documents: DocumentStore, progress: bool) -> Iterator[str]:
    with track("dividing into words", len(documents), shown=progress) as advance:
        for number, text in enumerate(documents.texts(), 1):
            yield text
            if number % _DOCUMENTS_PER_ADVANCE == 0:
                advance(_DOCUMENTS_PER_ADVANCE)
