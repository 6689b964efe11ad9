"""Changes to an index: documents added, replaced and deleted; each call is one commit."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder
from sbertkit.data import ReadOptions
from sbertkit.data.document_columns import ColumnChoice
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, UnknownId
from sbertkit.lexical.options import LexicalOptions
from sbertkit.retrieval.change_plan import ChangePlan
from sbertkit.retrieval.corpus import Corpus, CorpusReader, stored_id
from sbertkit.retrieval.encoded_vectors import Encoded, EncodedVectors, encode_new, import_new
from sbertkit.retrieval.filters import parse_filter
from sbertkit.retrieval.fusion_weight import with_weight
from sbertkit.retrieval.imported_vectors import ImportedVectors, own_vectors
from sbertkit.retrieval.lexical_index import (
    Lexical,
    describe_words,
    lexical_options,
    with_words,
)
from sbertkit.retrieval.manifest import read_manifest
from sbertkit.retrieval.manifest_entries import LexicalEntry, SegmentEntry
from sbertkit.retrieval.merge_policy import is_wasteful, tail_to_merge
from sbertkit.retrieval.opening import check_encoder, open_view
from sbertkit.retrieval.results import Changes
from sbertkit.retrieval.segment_writer import NewDocuments, merge_segments
from sbertkit.retrieval.tombstones import write_tombstones
from sbertkit.retrieval.tuning_queries import text_queries
from sbertkit.retrieval.vector_index import CHANGED_SHARE, IndexWork
from sbertkit.retrieval.view import Segment, View
from sbertkit.retrieval.workspace import Workspace, index_lock, new_generation, refuse_links
from sbertkit.storage import caller_errors, storage_errors

logger = logging.getLogger(__name__)

Mask = npt.NDArray[np.bool_]

MODES = ("add", "upsert", "update")
"""``add`` wants new ids, ``upsert`` replaces known ones, ``update`` deletes all others as well."""

_STAGED_FILE = "staged.db"


def change_documents(
    path: str | os.PathLike[str],
    corpus: Corpus,
    encoder: Callable[[View], Encoder],
    *,
    mode: str,
    read: ReadOptions | None = None,
    progress: bool = False,
    known: View | None = None,
) -> Changes:
    """Takes the documents of a corpus into an index, in one commit.

    A document whose text and metadata are the stored ones is left unchanged. Of the others a text,
    or a passage of a long one, is not encoded if a document that is replaced or removed has it.

    Args:
        path: The index folder.
        corpus: As for a build.
        encoder: Gives the encoder for a view of the index; called once all documents have been read
            and accepted, if there are texts to encode.
        mode: One of `MODES`.
        read: How the corpus is read.
        progress: Whether progress is shown on standard error.
        known: An earlier view of the index.

    Raises:
        InputError: A document is refused, or with ``add`` an id is not new.
        ModelMismatch: The encoder is not the one that built the index.
        DamagedIndex: The index is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with _changing(path, known) as (view, workspace):
        reader = CorpusReader(corpus, read or ReadOptions(), view.manifest.columns)
        staged = workspace.new_segment() / _STAGED_FILE
        plan = ChangePlan(view, mode, reader)
        count = reader.stage(staged, plan.new_documents(), progress=progress)
        if count + plan.unchanged == 0 and (mode == "update" or reader.named):
            raise reader.empty_corpus_error()
        if mode != "update" and reader.numbered:
            plan.check_ids()
        if mode == "update":
            plan.delete_missing()
        if None in plan.origins:
            plan.reuse_vectors(staged)
        if mode == "update":
            plan.check_same_corpus(workspace.root)
            if reader.numbered:
                plan.count_by_text(staged)
        changes = plan.changes()
        if not changes:
            return changes

        @cache
        def load() -> Encoder:
            with caller_errors():
                loaded = encoder(view)
            _check(workspace.root, view, loaded)
            return loaded

        def source() -> EncodedVectors:
            return EncodedVectors(load(), view.manifest.long, progress=progress)

        new, encoded = _with_vectors(staged, plan, reader, view, source) if count else (None, 0)
        _commit(workspace, view, plan.masks, new, reader.columns, load)
        return plan.changes(encoded)


def _with_vectors(
    staged: Path,
    plan: ChangePlan,
    reader: CorpusReader,
    view: View,
    source: Callable[[], EncodedVectors],
) -> Encoded:
    """Staged documents with their vectors: stored ones, those of the corpus, or encoded ones."""
    entry = view.manifest.encoder
    if None in plan.origins:
        own = own_vectors(reader, entry, view.manifest.long)
        if own is not None:
            return Encoded(import_new(ImportedVectors(own, entry.dim), staged, view), 0)
    return encode_new(source, staged, plan.origins, view, plan.removed_passages)


def delete_documents(
    path: str | os.PathLike[str],
    ids: Iterable[str | int] | None = None,
    *,
    filter: str | None = None,  # noqa: A002  # what the field calls it
    missing_ok: bool = False,
    known: View | None = None,
) -> Changes:
    """Deletes documents from an index, by their ids or a filter, all or none, in one commit.

    Args:
        path: The index folder.
        ids: Their ids.
        filter: The filter that they match, in place of ids; see `SearchIndex.search`.
        missing_ok: Ignore unknown ids.
        known: An earlier view of the index.

    Raises:
        UnknownId: An id is unknown; nothing is deleted.
        InputError: A duplicate id.
        BadFilter: The filter cannot be read, or names a field that no document has.
        InputTypeError: Not an iterable of str; or both ids and a filter, or neither.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    if (ids is None) == (filter is None):
        raise InputTypeError("delete expects ids or a filter (--filter), one of them")
    if filter is not None:
        parse_filter(filter)  # refused before the index is locked
    wanted = [] if ids is None else _checked_ids(ids, missing_ok=missing_ok)
    with _changing(path, known) as (view, workspace):
        if filter is not None:
            masks = [
                segment.mask() & ~mask
                for segment, mask in zip(view.segments, view.masks(filter), strict=True)
            ]
        else:
            masks = _without(path, view, wanted, missing_ok=missing_ok)
        documents = sum(int(np.count_nonzero(mask)) for mask in masks)
        if documents < len(view):
            _commit(workspace, view, masks)
        return Changes(deleted=len(view) - documents, documents=documents)


def _without(
    path: str | os.PathLike[str], view: View, ids: Sequence[str], *, missing_ok: bool
) -> list[Mask]:
    """Which documents of each segment remain without those of some ids.

    Raises:
        UnknownId: An id is unknown.
    """
    found = view.find(ids)
    unknown = [document_id for document_id in ids if document_id not in found]
    if unknown and not missing_ok:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise UnknownId(
            f"the index {path} has no document with the id {unknown[0]!r}{more}; nothing was "
            "deleted: leave unknown ids out, or pass missing_ok (--missing-ok)"
        )
    masks = [segment.mask() for segment in view.segments]
    for place, stored in found.values():
        masks[place][stored.row] = False
    return masks


def compact_index(
    path: str | os.PathLike[str],
    *,
    lexical: Lexical | None = None,
    known: View | None = None,
) -> Changes:
    """Rewrites all segments of an index as one without the deleted rows, in one commit.

    An index that is compact already is left unchanged.

    Args:
        path: The index folder.
        lexical: Whether it is to have a lexical index, which is then rebuilt; ``None`` keeps
            what it has.
        known: An earlier view of the index.

    Raises:
        InputError: It is no index.
        DamagedIndex: It is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    with _changing(path, known) as (view, workspace):
        compact = len(view.segments) <= 1 and not view.manifest.deleted
        if not compact or lexical is not None:
            kept: list[tuple[SegmentEntry, Segment | None]]
            kept = [(segment.entry, segment) for segment in view.segments]
            if not compact:
                entries = [merge_segments(workspace, view, view.segments)] if len(view) else []
                kept = [(entry, None) for entry in entries]
            _put(workspace, view, kept, IndexWork(renewed=not compact), lexical=lexical)
        return Changes(documents=len(view))


@contextmanager
def _changing(path: str | os.PathLike[str], known: View | None) -> Iterator[tuple[View, Workspace]]:
    """Yields the newest state of an index and a workspace for the next one, locked for writing."""
    root = output_folder(path)
    read_manifest(root)  # no lock file where there is no index
    with index_lock(root), storage_errors(root):
        refuse_links(root)
        view = open_view(root, known)
        with new_generation(root) as workspace:
            yield view, workspace


def _check(root: Path, view: View, encoder: Encoder) -> None:
    """Refuses another encoder than the index's, and warns of another precision."""
    entry = view.manifest.encoder
    check_encoder(root, entry, encoder)
    if encoder.precision != entry.precision:
        logger.warning(
            "%s was built in %s, the new vectors are computed in %s",
            root,
            entry.precision,
            encoder.precision,
        )


def _checked_ids(ids: Iterable[str | int], *, missing_ok: bool) -> list[str]:
    if isinstance(ids, str | bytes | Mapping) or not isinstance(ids, Iterable):
        raise InputTypeError(f"expected a list of ids, found {ids!r}; put a single one in []")
    wanted: dict[str, None] = {}
    for document_id in map(stored_id, ids):
        if document_id in wanted and not missing_ok:
            raise InputError(f"duplicate id {document_id!r}; nothing was deleted")
        wanted[document_id] = None
    return list(wanted)


def _commit(
    workspace: Workspace,
    view: View,
    masks: Sequence[Mask],
    new: NewDocuments | None = None,
    columns: ColumnChoice | None = None,
    load: Callable[[], Encoder] | None = None,
) -> None:
    """Commits the next generation: the remaining rows of the segments, and the new ones."""
    remaining = [
        segment.with_mask(mask)
        for segment, mask in zip(view.segments, masks, strict=True)
        if mask.any()
    ]
    added = 0 if new is None else len(new.origins)
    removed = view.row_count - sum(segment.row_count for segment in remaining)
    start = len(remaining)
    if new is not None:
        start = tail_to_merge([segment.row_count for segment in remaining], added)
    kept: list[tuple[SegmentEntry, Segment | None]] = []
    for segment in remaining[:start]:
        if is_wasteful(len(segment.vectors), segment.row_count):
            kept.append((merge_segments(workspace, view, [segment]), None))
        else:
            kept.append((segment.entry, segment))
    if new is not None:
        kept.append((merge_segments(workspace, view, remaining[start:], new), None))
    queries = None if load is None else partial(text_queries, load)
    _put(workspace, view, kept, IndexWork(queries, added + removed), columns, load=load)


def _put(
    workspace: Workspace,
    view: View,
    kept: Sequence[tuple[SegmentEntry, Segment | None]],
    work: IndexWork,
    columns: ColumnChoice | None = None,
    lexical: Lexical | None = None,
    load: Callable[[], Encoder] | None = None,
) -> None:
    """Commits a manifest with these segments, new ones or some of the view with their live rows."""
    words, entries = view.manifest.lexical, [entry for entry, _ in kept]
    if lexical is not None:
        words = _new_words(view, lexical_options(lexical))
        if words is not None:
            entries = [entry.without_words() for entry in entries]
    segments = with_words(workspace, words, entries)
    live = [None if segment is None else segment.live for _, segment in kept]
    workspace.sync()
    tombstones = None
    if any(rows is not None for rows in live):
        tombstones = write_tombstones(workspace.root, workspace.generation, live)
    manifest = replace(
        view.manifest,
        generation=workspace.generation,
        segments=segments,
        lexical=words,
        tombstones=tombstones,
        columns=columns or view.manifest.columns,
    )
    manifest = work.settle(workspace, manifest)
    if work.changed <= CHANGED_SHARE * manifest.vectors and (words is None or words.weight is None):
        load = None  # what could not be measured before cannot be now
    manifest = with_weight(workspace.root, manifest, load, changed=work.changed)
    workspace.sync()
    workspace.commit(manifest)


def _new_words(view: View, options: LexicalOptions | None) -> LexicalEntry | None:
    """The lexical index of a view, made again; the weight of its hybrid search stays."""
    if options is None:
        return None
    entry = describe_words(options, [segment.documents for segment in view.segments])
    known = view.manifest.lexical
    return entry if known is None else replace(entry, weight=known.weight)
