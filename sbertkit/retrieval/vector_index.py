"""The vector index of a new generation: its kind, what it learns, and its measured recall.

Segments are written with their vectors alone. Before the commit the kind is chosen for the whole
index, trained if it must be, written where a segment lacks it, and tuned to the recall.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.errors import InputError
from sbertkit.index.kinds.base import IndexKind
from sbertkit.index.kinds.factory import Factory
from sbertkit.index.kinds.flat import Flat
from sbertkit.index.npy_files import map_array, write_array
from sbertkit.index.segment import VectorSegment, map_vectors
from sbertkit.index.tuning import MIN_QUERIES, RecallTuner, TunedSettings
from sbertkit.retrieval.linked_files import link_files
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import (
    DATA_FILES,
    QUERIES_FILE,
    RECALL_FOLDER,
    SEGMENTS_FOLDER,
    RecallEntry,
    SegmentEntry,
    TrainedEntry,
)
from sbertkit.retrieval.opening import open_generation
from sbertkit.retrieval.trained_files import Learnt, read_learnt, write_learnt
from sbertkit.retrieval.view import View
from sbertkit.retrieval.workspace import Workspace
from sbertkit.sealed import SealedFile
from sbertkit.storage import storage_errors

logger = logging.getLogger(__name__)

_NO_QUERIES = (
    f"the recall cannot be measured: the documents do not have {MIN_QUERIES} different parts to "
    "take as queries; searches compare all vectors until some are given with: sbertkit tune "
    "--queries"
)

_FEW_VECTORS = 1_000
"""As fast as these are compared, nobody needs to hear that all of them are."""

OUTGROWN = 4
"""Times as many vectors as it was trained for, at which an index is trained again."""

CHANGED_SHARE = 0.1
"""Share of the vectors that may change until the recall is measured again."""


class TuningQueries(NamedTuple):
    """Queries to tune with.

    Attributes:
        vectors: Unit rows (q, dim) float32.
        source: Where they come from.
        groups: How many groups of as many there are.
    """

    vectors: Vectors
    source: str
    groups: int


QuerySource = Callable[[View], TuningQueries | None]
"""Gives the queries for an index; ``None`` if it has no texts to make some of."""


@dataclass(frozen=True, slots=True)
class IndexWork:
    """What is to be done to the vector index of a generation.

    Attributes:
        queries: Gives queries where none are stored, or instead of those; ``None``: none are had.
        changed: Vectors that the generation adds or removes.
        renewed: Whether to train again and write all of it.
        tuned: Whether to measure the recall even if little has changed.
        required: Whether a recall that cannot be reached is an error, and no warning.
    """

    queries: QuerySource | None = None
    changed: int = 0
    renewed: bool = False
    tuned: bool = False
    required: bool = False

    def settle(self, workspace: Workspace, manifest: Manifest) -> Manifest:
        """Writes what the vector index of a manifest, not yet committed, lacks.

        Returns:
            The manifest that names it.

        Raises:
            InputError: The memory is too small, or the recall cannot be reached where it is
                required, or not be measured where the index is tuned.
            StorageError: The disk is full or a permission is missing.
        """
        if not manifest.segments:
            return replace(manifest, trained=None, measured=None)
        chosen = manifest.wish.choose(manifest.vectors, manifest.encoder.dim)
        if self.tuned:
            chosen.check_for(manifest.vectors, manifest.encoder.dim)
        before = manifest.trained
        manifest, learnt = self._trained(workspace, manifest, chosen)
        work = self
        if manifest.trained not in (None, before):  # the codes are of what was learnt before
            work = replace(self, renewed=True)
        return work._with_index(workspace, manifest, chosen, learnt)

    def _with_index(
        self, workspace: Workspace, manifest: Manifest, chosen: IndexKind, learnt: Learnt
    ) -> Manifest:
        """The manifest with an index of the chosen kind over all segments, and its recall."""
        most = max(entry.rows for entry in manifest.segments)
        segments = tuple(
            self._indexed(
                workspace,
                entry,
                _kind_of(manifest, chosen, entry),
                learnt,
                required=self.required and entry.rows == most,
            )
            for entry in manifest.segments
        )
        manifest = replace(manifest, segments=segments)
        if chosen.width_name is None:
            return replace(manifest, measured=None)
        return self._measured(workspace, manifest)

    def _trained(
        self, workspace: Workspace, manifest: Manifest, chosen: IndexKind
    ) -> tuple[Manifest, Learnt]:
        """The manifest with what its kind has learnt, which is learnt now if need be."""
        if not chosen.trained:
            return replace(manifest, trained=None), {}
        known, dim = manifest.trained, manifest.encoder.dim
        if known is not None and not self.renewed and _is_fit(known, chosen, manifest.vectors):
            return manifest, read_learnt(workspace.root, known, dim)
        learnt = chosen.train(_sample(workspace.root, manifest, chosen.training_rows))
        entry = write_learnt(workspace, chosen, learnt, manifest.vectors)
        return replace(manifest, trained=entry), learnt

    def _indexed(
        self,
        workspace: Workspace,
        entry: SegmentEntry,
        kind: IndexKind,
        learnt: Learnt,
        *,
        required: bool,
    ) -> SegmentEntry:
        """The segment with an index of a kind; with links to its other files if it is old.

        One that is too small for a factory, unless that is required, is flat.
        """
        folder = workspace.root / SEGMENTS_FOLDER / entry.id
        is_old = entry.id not in workspace.names
        if entry.kind == kind.name and not (self.renewed and kind.files):
            known = VectorSegment.kind_at(folder, entry.rows)
            if known == kind or not kind.trained:
                return entry
        may_be_flat = isinstance(kind, Factory) and not required
        asked = self.required or self.renewed
        if may_be_flat and is_old and entry.kind == Flat.name and not asked:
            return entry
        if is_old:
            folder = _linked(workspace, folder)
        try:
            VectorSegment.write(folder, kind, learnt)
        except InputError as error:
            if not may_be_flat:
                raise
            if entry.rows > _FEW_VECTORS:
                logger.warning("%s; they are compared one by one", error)
            kind = Flat()
            VectorSegment.write(folder, kind, learnt)
        return entry.reindexed(workspace.root, folder, kind.name)

    def _measured(self, workspace: Workspace, manifest: Manifest) -> Manifest:
        """The manifest with the recall of the index, measured again if much has changed."""
        known = manifest.measured
        changed = self.changed + (0 if known is None else known.changed)
        asked = self.tuned or self.renewed
        if known is not None and not asked and changed <= CHANGED_SHARE * known.rows:
            return replace(manifest, measured=replace(known, changed=changed))
        with closing(open_generation(workspace.root, manifest)) as view:
            if not len(view):
                return replace(manifest, measured=None)
            queries = self._queries(workspace.root, manifest, view)
            if queries is None:
                if self.queries is not None and len(view.vectors) > _FEW_VECTORS:
                    if self.tuned:
                        raise InputError(_NO_QUERIES)
                    logger.warning(_NO_QUERIES)
                return manifest
            tuned = _tuned(view, queries, manifest.recall)
        self._check(manifest, tuned, queries)
        return replace(manifest, measured=_written(workspace, manifest, queries, tuned))

    def _queries(self, root: Path, manifest: Manifest, view: View) -> TuningQueries | None:
        """The stored queries, or new ones."""
        known = manifest.measured
        if known is not None and (self.queries is None or not self.tuned):
            path = root / known.files[0].path
            stored = map_array(path, "<f4", (known.queries, manifest.encoder.dim))
            return TuningQueries(np.array(stored), known.source, known.groups)
        return None if self.queries is None else self.queries(view)

    def _check(self, manifest: Manifest, tuned: TunedSettings, queries: TuningQueries) -> None:
        """Refuses, or warns of, a recall that is not reached."""
        one = tuned.chosen
        if one.bound >= manifest.recall:
            return
        missed = (
            f"recall {manifest.recall:g} is not reached: at best {one.recall:.4f} (at least "
            f"{one.bound:.4f} at 95 % confidence on {len(queries.vectors)} queries of "
            f"{queries.source})"
        )
        if one.milliseconds is not None:
            missed += f", at {one.milliseconds:.2f} ms a query"
        if self.required:
            raise InputError(
                f"{missed}; ask for a lower recall, for more memory (--memory), or for another kind"
            )
        logger.warning("%s; tune another kind or recall with: sbertkit tune", missed)


def _is_fit(known: TrainedEntry, chosen: IndexKind, vectors: int) -> bool:
    """Whether what was learnt still serves an index of so many vectors."""
    grown = vectors > OUTGROWN * known.rows
    fresh = replace(known.kind, clusters=chosen.clusters)  # type: ignore[attr-defined, call-arg]
    return not grown and fresh == chosen


def _kind_of(manifest: Manifest, chosen: IndexKind, entry: SegmentEntry) -> IndexKind:
    """The kind for a segment of an index for which a kind was chosen."""
    if manifest.trained is not None:
        return manifest.trained.kind
    if manifest.factory is not None:
        return chosen
    return type(chosen).for_count(entry.rows, manifest.wish.clusters_for(entry.rows))


def _sample(root: Path, manifest: Manifest, count: int) -> Vectors:
    """At most so many vectors of an index, drawn from all segments alike, the same every time."""
    generator = np.random.default_rng(0)
    share = min(1.0, count / manifest.vectors)
    drawn = []
    for entry in manifest.segments:
        folder = root / SEGMENTS_FOLDER / entry.id
        vectors, _ = map_vectors(folder, entry.rows, manifest.encoder.dim)
        wanted = max(1, round(share * entry.rows))
        rows = np.sort(generator.choice(entry.rows, wanted, replace=False))
        drawn.append(np.array(vectors[rows]))
    return drawn[0] if len(drawn) == 1 else np.concatenate(drawn)


def _linked(workspace: Workspace, old: Path) -> Path:
    """The folder of a new segment with the documents and vectors of an old one."""
    folder = workspace.new_segment()
    link_files(old, folder, DATA_FILES)
    return folder


def _tuned(view: View, queries: TuningQueries, target: float) -> TunedSettings:
    return RecallTuner(view.vectors, queries.vectors, queries.groups, view.live).tune(target)


def _written(
    workspace: Workspace, manifest: Manifest, queries: TuningQueries, tuned: TunedSettings
) -> RecallEntry:
    """Writes the queries; gives the entry for the manifest."""
    folder = workspace.root / RECALL_FOLDER / workspace.new_name()
    folder.mkdir(parents=True)
    path = folder / QUERIES_FILE
    with storage_errors(folder):
        write_array(path, queries.vectors)
    return RecallEntry(
        id=folder.name,
        files=(SealedFile.of(workspace.root, path),),
        source=queries.source,
        groups=queries.groups,
        queries=len(queries.vectors),
        chosen=tuned.chosen,
        tried=tuned.tried,
        generation=workspace.generation,
        rows=manifest.vectors,
    )
