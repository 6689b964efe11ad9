"""The weight of vectors in the hybrid search of an index, measured without labels.

One half of a document is a query. The other half is a document that is not in the index and is to
be found among all others, the halved one left out. The weight that finds them best is moved towards
the default, since halves of a text are more alike than queries and what answers them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.data.pseudo_pairs import halves
from sbertkit.encoder import Encoder
from sbertkit.encoder.long_options import LongOptions
from sbertkit.lexical.bm25 import Numbers
from sbertkit.metrics.cosine import unit_rows
from sbertkit.retrieval.fusion import BothScores, Fusion
from sbertkit.retrieval.hybrid_candidates import Candidates, hybrid_candidates
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import WeightEntry
from sbertkit.retrieval.modes import DEFAULT_WEIGHT
from sbertkit.retrieval.opening import open_generation
from sbertkit.retrieval.sampled_texts import sampled_texts
from sbertkit.retrieval.vector_index import CHANGED_SHARE
from sbertkit.retrieval.view import View, Wanted

WEIGHTS = tuple(round(0.05 * step, 2) for step in range(21))
"""The weights that are tried."""

_MAX_QUERIES = 200
_MIN_QUERIES = 40
_MIN_FOUND = 20
"""Queries that find their rest with some weight. Halves of very short texts have too little in
common, and nothing follows from the few that are found."""
_DOCUMENTS_PER_QUERY = 8
"""So that of a small index, too, little is encoded in relation to the whole."""
_DEPTH = 100
"""Documents that each leg finds."""
_CUTOFF = 10
"""Of nDCG."""
_SHARE = 0.7
"""Of the distance from the default to the best weight, what is gone."""


class _Halves(NamedTuple):
    """A document in two.

    Attributes:
        number: Its number through all segments.
        query: One half.
        rest: The other.
    """

    number: int
    query: str
    rest: str


def with_weight(
    root: Path,
    manifest: Manifest,
    load: Callable[[], Encoder] | None,
    *,
    changed: int = 0,
) -> Manifest:
    """A manifest, not yet committed, with the weight of its hybrid search.

    A weight that was given is kept. Others are measured if there is none, or if more than a tenth
    of the vectors have changed since.

    Args:
        root: The index folder, in which all files are written.
        manifest: The manifest.
        load: Gives the encoder; ``None`` leaves the weight as it is.
        changed: Vectors that were added or removed.

    Raises:
        DamagedIndex: A file is missing, truncated or changed.
    """
    lexical = manifest.lexical
    if lexical is None or not lexical.is_current:
        return manifest
    known = lexical.weight
    if known is not None:
        known = replace(known, changed=known.changed + changed)
        manifest = replace(manifest, lexical=replace(lexical, weight=known))
        if known.is_given or known.changed <= CHANGED_SHARE * known.rows:
            return manifest
    if load is None or _query_count(manifest.documents) < _MIN_QUERIES:
        return manifest
    with closing(open_generation(root, manifest)) as view:
        measured = _measured(root, view, load)
    return replace(manifest, lexical=replace(lexical, weight=measured or known))


def _query_count(documents: int) -> int:
    return min(_MAX_QUERIES, documents // _DOCUMENTS_PER_QUERY)


def _measured(root: Path, view: View, load: Callable[[], Encoder]) -> WeightEntry | None:
    """The weight for a view; ``None`` if too few of its documents have halves that are found."""
    count = _query_count(len(view))
    drawn = [one for text in sampled_texts(view, 2 * count) if (one := _halved(*text))]
    Random(0).shuffle(drawn)  # noqa: S311  # they come by segment
    drawn = drawn[:count]
    if len(drawn) < _MIN_QUERIES:
        return None
    encoder, leg = load(), LexicalLeg(root, view)
    run = encoder.start_run(kind="query")
    encoded = list(run.vectors([one.query for one in drawn], warn=False))
    vectors = np.ascontiguousarray(unit_rows(np.concatenate(encoded)), np.float32)
    queries = leg.plain([one.query for one in drawn])
    rests = _cosines(encoder, vectors, [one.rest for one in drawn], view.manifest.long)
    found = hybrid_candidates(leg, view, queries, vectors, Wanted(_DEPTH))
    by_query = np.stack(
        [
            _gains(candidates, one.number, (cosine, leg.score_beside(query, one.rest)))
            for one, query, cosine, candidates in zip(drawn, queries, rests, found, strict=True)
        ]
    )
    if np.count_nonzero(by_query.any(axis=1)) < _MIN_FOUND:
        return None
    gains = by_query.mean(axis=0)
    return WeightEntry(
        chosen_weight(gains),
        queries=len(drawn),
        gains=tuple(gains.round(4).tolist()),
        rows=view.manifest.vectors,
    )


def chosen_weight(gains: Numbers) -> float:
    """The weight for what was measured with each of `WEIGHTS`, (w,).

    Of the best the one nearest to the default, from which it keeps but a share of its distance.
    """
    best = np.array(WEIGHTS)[gains >= gains.max() - 1e-9]
    nearest = best[np.abs(best - DEFAULT_WEIGHT).argmin()]
    return round(float(DEFAULT_WEIGHT + _SHARE * (nearest - DEFAULT_WEIGHT)), 3)


def _halved(number: int, text: str) -> _Halves | None:
    """A document in two, either of which is the query; ``None`` for a short text."""
    pair = halves(text)
    if pair is None:
        return None
    swapped = Random(number).random() < 0.5  # noqa: S311  # no secret
    return _Halves(number, *(reversed(pair) if swapped else pair))


def _cosines(
    encoder: Encoder, queries: Vectors, texts: Sequence[str], long: LongOptions
) -> Iterator[float]:
    """The cosine of each query and its text, of a long one by its best passage."""
    rows = iter(queries)
    for vectors, counts in _encoded(encoder, texts, long):
        start = 0
        for count in counts:
            yield float((unit_rows(vectors[start : start + count]) @ next(rows)).max())
            start += count


def _encoded(
    encoder: Encoder, texts: Sequence[str], long: LongOptions
) -> Iterator[tuple[Vectors, Sequence[int]]]:
    """Vectors (n, dim) of documents, and how many each has."""
    run = encoder.start_run()
    if long.mode == "truncate":
        for vectors in run.vectors(texts, warn=False):
            yield vectors, [1] * len(vectors)
        return
    from sbertkit.encoder.divided_texts import TextDivider

    divider = TextDivider(encoder.spec, long.overlap)
    passages = run.vectors(divider.passages(texts), warn=False)
    yield from divider.vectors(passages, mean=long.mode == "mean")


def _gains(candidates: Candidates, halved: int, rest: tuple[float, float]) -> Numbers:
    """What each weight gains by the rank of a rest among candidates, (w,): its nDCG@10."""
    others = candidates.numbers != halved
    scores = BothScores(
        *(np.append(one[others], own) for one, own in zip(candidates.scores, rest, strict=True))
    )
    gains = []
    for weight in WEIGHTS:
        fused = Fusion(weight=weight).combined(scores, scores.greatest)
        better, equal = (fused > fused[-1]).sum(), (fused == fused[-1]).sum() - 1
        rank = 1 + better + equal / 2
        gains.append(1 / np.log2(1 + rank) if rank <= _CUTOFF else 0.0)
    return np.array(gains)
