"""Bringing an index of the format before to the present one, with passages for its long texts."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from sbertkit.data import SourcedDocument
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import LongOptions
from sbertkit.errors import InputError, InputTypeError
from sbertkit.progress import track
from sbertkit.retrieval.document_store import stage_documents
from sbertkit.retrieval.encoded_vectors import EncodedVectors, Origin, digest, encode_new
from sbertkit.retrieval.fusion_weight import with_weight
from sbertkit.retrieval.lexical_index import with_words
from sbertkit.retrieval.manifest import Manifest, is_current
from sbertkit.retrieval.opening import check_encoder, load_encoder, open_generation
from sbertkit.retrieval.results import Changes
from sbertkit.retrieval.segment_writer import duplicate_id, merge_segments
from sbertkit.retrieval.tuning_queries import text_queries
from sbertkit.retrieval.vector_index import IndexWork
from sbertkit.retrieval.view import View
from sbertkit.retrieval.workspace import locked_index, new_generation

_STAGED_FILE = "staged.db"


def upgrade_index(
    path: str | os.PathLike[str],
    long: str | LongOptions | None = None,
    *,
    model: str | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: bool = False,
) -> Changes:
    """Writes an index whose long texts were truncated in the present format, in one commit.

    With passages only the texts that were truncated are encoded, which loads the encoder. An index
    that is as wanted already is left unchanged.

    Args:
        path: The index folder.
        long: ``passages``, or ``truncate`` to leave the vectors as they are; `LongOptions` for
            passages that overlap; ``None`` for passages where texts were truncated.
        model: Where the model is now, if not where the index names it.
        device: Where to run the model.
        trust_remote_code: Run Python code that comes with the model.
        progress: Whether progress is shown on standard error.

    Raises:
        InputError: It is no index, its long texts were not truncated, or the mode is ``mean``.
        InputTypeError: `long` is neither a str nor `LongOptions`.
        ModelMismatch: The encoder is not the one that built the index.
        DamagedIndex: The index is damaged.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    if isinstance(long, str):
        long = LongOptions(long)
    if long is not None and not isinstance(long, LongOptions):
        raise InputTypeError(f"long must be a str or LongOptions, not {long!r}")
    with locked_index(path) as (root, manifest):
        if long is None:
            long = LongOptions() if manifest.long.mode == "truncate" else manifest.long
        _check(root, manifest, long)
        if is_current(root) and manifest.long == long:
            return Changes(unchanged=manifest.documents, documents=manifest.documents)
        with (
            closing(open_generation(root, manifest)) as view,
            new_generation(root) as workspace,
        ):

            @cache
            def load() -> Encoder:
                encoder = load_encoder(
                    root, manifest, model=model, device=device, trust_remote_code=trust_remote_code
                )
                check_encoder(root, manifest.encoder, encoder)
                return encoder

            def source() -> EncodedVectors:
                return EncodedVectors(load(), long, progress=progress)

            upgraded, encoded = manifest, 0
            if long.mode == "passages" and len(view):
                staged = workspace.new_segment() / _STAGED_FILE
                count = _stage(view, staged, progress=progress)
                known = partial(_known, view)
                new, encoded = encode_new(source, staged, [None] * count, view, known)
                segment = merge_segments(workspace, view, (), new)
                segments = with_words(workspace, manifest.lexical, [segment])
                upgraded = replace(manifest, segments=segments, tombstones=None)
            upgraded = replace(upgraded, generation=workspace.generation, long=long)
            work = IndexWork(partial(text_queries, load), renewed=True)
            upgraded = work.settle(workspace, upgraded)
            if encoded:
                upgraded = with_weight(root, upgraded, load, changed=encoded)
            workspace.sync()
            workspace.commit(upgraded)
        return Changes(unchanged=manifest.documents, encoded=encoded, documents=manifest.documents)


def _check(root: Path, manifest: Manifest, long: LongOptions) -> None:
    """Refuses what cannot be done without encoding everything.

    Raises:
        InputError: See `upgrade_index`.
    """
    if manifest.long == long or (manifest.long.mode == "truncate" and long.mode == "passages"):
        return
    overlap = f" and overlap (--overlap) {long.overlap}" if long.overlap else ""
    raise InputError(
        f"{root} has long texts as {manifest.long}; to have them as {long}, build the index again "
        f"with long (--long) {long.mode}{overlap}"
    )


def _stage(view: View, path: Path, *, progress: bool) -> int:
    """Copies all documents to a new database; gives their number."""

    def documents() -> Iterator[SourcedDocument]:
        for segment in view.segments:
            yield from segment.live_documents()

    with track("reading", len(view), shown=progress) as advance:
        return stage_documents(path, documents(), duplicate_id, advance)


def _known(view: View) -> Mapping[bytes, Origin]:
    """Where the vectors of whole texts are stored; of a truncated one, which no passage equals."""
    known = {}
    for place, segment in enumerate(view.segments):
        mask = segment.mask()
        for number, text in enumerate(segment.documents.texts()):
            if mask[number]:
                known[digest(text)] = Origin(place, number)
    return known
