"""The scores of many short lists of pairs, such as the candidates of each query, by one run."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sbertkit.arrays import Vectors

if TYPE_CHECKING:
    from sbertkit.reranking.reranker import Pair, PairRun


def grouped_scores(groups: Iterable[Sequence["Pair"]], run: "PairRun") -> Iterator[Vectors]:
    """The scores (n,) of each group of pairs, in order.

    Args:
        groups: Drawn a bounded number ahead, since pairs of several are scored together.
        run: A re-ranker's, see `Reranker.start_run`.
    """
    sizes: deque[int] = deque()

    def pairs() -> Iterator["Pair"]:
        for group in groups:
            sizes.append(len(group))
            yield from group

    scores = np.empty(0, np.float32)
    for chunk in run.vectors(pairs()):
        scores = np.concatenate([scores, chunk[:, 0]])
        while sizes and sizes[0] <= len(scores):
            size = sizes.popleft()
            yield scores[:size]
            scores = scores[size:]
    for _ in sizes:  # groups without a pair, at the end
        yield scores
