"""Normalized discounted cumulative gain of ranked lists."""

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


def ndcg(found: npt.ArrayLike, ideal: npt.ArrayLike) -> Float64:
    """The nDCG of each query, (n,), from 0 to 1; 0 where nothing is relevant.

    The gain of a document is its grade, as in trec_eval, discounted by ``log2(rank + 1)``.

    Args:
        found: Grades of the documents in the order of the system, (n, k).
        ideal: The highest grades of the judged documents in descending order, (n, k), with zeros
            where there are fewer.

    Source: Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques, section
        2.2.
    """
    gains, best = np.asarray(found, np.float64), np.asarray(ideal, np.float64)
    discounts = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    sums, limits = gains @ discounts, best @ discounts
    return np.divide(sums, limits, out=np.zeros(len(sums)), where=limits > 0)
