"""Trying a kind of index on a sample, before a whole corpus is encoded for it."""

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.index.kinds.base import IndexKind, SearchSettings
from sbertkit.index.kinds.factory import Factory
from sbertkit.index.kinds.ivfpq import IvfPq, finest
from sbertkit.index.segment import VECTORS_FILE, VectorSegment, unit_chunk, write_vectors
from sbertkit.index.tuning import MAX_RESCORED, MIN_QUERIES, MIN_RESCORED, RecallTuner
from sbertkit.index.vector_search import VectorSearch
from sbertkit.metrics.cosine import unit_rows
from sbertkit.retrieval.document_store import DocumentStore
from sbertkit.retrieval.tuning_queries import parts_of

_SHARE = MAX_RESCORED // MIN_RESCORED
"""In a sample of a part as small, as many candidates are as large a part as in the whole."""
_MIN_SAMPLE = 1_000
_MAX_SAMPLE = 5_000


def check_on_sample(kind: IndexKind, recall: float, encoder: Encoder, database: Path) -> None:
    """Refuses a kind that finds too few of the nearest even among a sample of the documents.

    Only kinds that may never reach a recall are tried: those of small codes, and of factories. The
    sample is searched as widely as can be, and as large a part of it scored again as of the whole.

    Args:
        kind: The kind, with its settings.
        recall: The recall that is asked for.
        encoder: The encoder.
        database: The staged documents.

    Raises:
        InputError: See above.
    """
    coarse = isinstance(kind, IvfPq) and kind.numbers_per_code > finest(encoder.dim)
    if not coarse and not isinstance(kind, Factory):
        return
    with closing(DocumentStore(database)) as documents:
        count = min(len(documents) // _SHARE, _MAX_SAMPLE)
        if count < _MIN_SAMPLE:
            return
        rows = sorted(Random(0).sample(range(len(documents)), count))  # noqa: S311  # no secret
        texts = [text for _, text in documents.texts_at(rows)]
    groups = parts_of(texts)
    size = min(map(len, groups))
    if size < MIN_QUERIES:
        return
    vectors = unit_chunk(encoder.encode(texts))
    parts = [part for group in groups for part in group[:size]]
    queries = unit_rows(encoder.encode(parts, kind="query"))
    with tempfile.TemporaryDirectory() as folder:
        search = _searched(kind, vectors, Path(folder))
        if search is None:
            return
        tuner = RecallTuner(search, np.ascontiguousarray(queries, np.float32), len(groups), None)
        best = tuner.measure(SearchSettings(search.widths[-1], MIN_RESCORED))
    if best.bound < recall:
        raise InputError(
            f"recall {recall:g} is out of reach: among a sample of {count:,} documents kind "
            f"{kind.name!r} finds {best.recall:.4f} of the nearest at best; nothing was encoded: "
            "ask for a lower recall, for more memory (--memory), or for another kind"
        )


def _searched(kind: IndexKind, vectors: np.ndarray, folder: Path) -> VectorSearch | None:
    """The search over a sample, if it is large enough for the kind."""
    if isinstance(kind, IvfPq):
        sized = IvfPq.choices(len(vectors), vectors.shape[1], None)[0]
        kind = replace(kind, clusters=sized.clusters)
    try:
        kind.check_for(*vectors.shape)
    except InputError:
        return None
    learnt = kind.train(vectors) if kind.trained else {}
    write_vectors(folder / VECTORS_FILE, [vectors], vectors.shape[1])
    VectorSegment.write(folder, kind, learnt)
    return VectorSearch([VectorSegment.open(folder, *vectors.shape)], learnt)
