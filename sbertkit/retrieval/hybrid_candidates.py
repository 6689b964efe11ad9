"""What vectors and words find for a query, each with its exact score by both."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.index.segment import Rows
from sbertkit.lexical.query import LexicalQuery
from sbertkit.retrieval.fusion import BothScores
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.view import Found, View, Wanted


class Candidates(NamedTuple):
    """Documents that one of the legs found.

    Attributes:
        numbers: Their numbers through all segments, ascending, (n,).
        rows: The best vector of each, (n,).
        scores: By both legs, exact; the greatest of them are those of all documents.
        unseen: The most that any other document has, (1,) each.
    """

    numbers: Rows
    rows: Rows
    scores: BothScores
    unseen: BothScores


def hybrid_candidates(
    leg: LexicalLeg,
    view: View,
    queries: Sequence[LexicalQuery],
    vectors: Vectors,
    wanted: Wanted,
) -> Iterator[Candidates]:
    """The candidates of each query; vectors are searched for all of them at once.

    Args:
        leg: The search by words.
        view: Whose documents may be found.
        queries: The queries.
        vectors: Their vectors, unit rows (q, dim).
        wanted: How the vectors are searched; its `k` is how many each leg finds.
    """
    found = view.nearest(vectors, wanted)
    for place, (query, near) in enumerate(zip(queries, found, strict=True)):
        yield _candidates(leg, view, query, vectors[place : place + 1], near, wanted.k)


def _candidates(
    leg: LexicalLeg,
    view: View,
    query: LexicalQuery,
    vector: Vectors,
    near: Sequence[Found],
    depth: int,
) -> Candidates:
    worded = leg.best(query, depth, view)
    rows = {view.number_of(one.row): one for one in near}
    # Not np.setdiff1d, which loads NumPy's masked arrays: they cost a first search 20 ms.
    missing = sorted(set(worded.numbers.tolist()).difference(rows))
    rows |= view.best_rows(vector, np.array(missing, np.int64))
    numbers = np.array(sorted(rows), np.int64)
    dense = np.array([rows[number].score for number in numbers.tolist()])
    ends = (
        near[-1].score if len(near) == depth else -1.0,
        float(worded.scores[-1]) if len(worded.scores) == depth else 0.0,
    )
    return Candidates(
        numbers,
        np.array([rows[number].row for number in numbers.tolist()], np.int64),
        BothScores(dense, leg.scores(query, numbers)),
        BothScores(*(np.array([end]) for end in ends)),
    )
