"""How similar random pairs of vectors are.

In an anisotropic space the vectors lie in a narrow cone: random pairs have a high cosine, and the
uniformity is near 0.
"""

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError
from sbertkit.metrics.cosine import checked_vectors, row_cosines


def mean_random_cosine(
    vectors: npt.ArrayLike, *, pairs: int = 100_000, seed: int = 0
) -> float | None:
    """The mean cosine, from -1 to 1, of two distinct rows drawn at random.

    Rows of zeros have no direction and are left out. With fewer than 2 rows left: None.

    Args:
        vectors: Shape (n, dim).
        pairs: Maximum number of pairs. If there are more, so many are drawn with replacement;
            else all are taken, and the mean is exact.
        seed: Seed of the draw.

    Raises:
        InputError: Vectors that are not finite numbers of shape (n, dim), or `pairs` below 1.

    Source: Ethayarajh 2019, How Contextual are Contextualized Word Representations?, section 4.1.
    """
    cosines = _random_cosines(vectors, pairs, seed)
    return None if cosines is None else float(cosines.mean())


def uniformity(
    vectors: npt.ArrayLike, *, t: float = 2.0, pairs: int = 100_000, seed: int = 0
) -> float | None:
    """The log of the mean Gaussian potential of two distinct rows: at most 0; lower is more even.

    Rows are scaled to length 1 first; rows of zeros are left out. With fewer than 2 rows
    left: None. Pairs are taken as in ``mean_random_cosine``.

    Args:
        vectors: Shape (n, dim).
        t: Sharpness of the potential, above 0; values for different ``t`` do not compare.
        pairs: Maximum number of pairs.
        seed: Seed of the draw.

    Raises:
        InputError: As ``mean_random_cosine``, or ``t`` is not above 0.

    Source: Wang & Isola 2020, Understanding Contrastive Representation Learning through Alignment
        and Uniformity on the Hypersphere, section 4.1.2: log E exp(-t |x - y|^2).
    """
    if not 0 < t < np.inf:
        raise InputError(f"t must be a finite number above 0, not {t}")
    cosines = _random_cosines(vectors, pairs, seed)
    if cosines is None:
        return None
    exponents = -t * (2.0 - 2.0 * cosines)  # |x - y|^2 = 2 - 2 cos for unit rows
    largest = exponents.max()  # factored out, so that a large t cannot give log(0)
    return float(largest + np.log(np.exp(exponents - largest).mean()))


def _random_cosines(
    vectors: npt.ArrayLike, pairs: int, seed: int
) -> npt.NDArray[np.float64] | None:
    if pairs < 1:
        raise InputError(f"pairs must be at least 1, not {pairs}")
    array = checked_vectors(vectors)
    rows = np.flatnonzero(array.any(axis=1))
    if len(rows) < 2:
        return None
    left, right = _distinct_pairs(len(rows), pairs, seed)
    return row_cosines(array, rows[left], rows[right])


def _distinct_pairs(
    rows: int, pairs: int, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    if rows * (rows - 1) // 2 <= pairs:
        return np.triu_indices(rows, 1)
    generator = np.random.default_rng(seed)
    left = generator.integers(rows, size=pairs, dtype=np.intp)
    right = generator.integers(rows - 1, size=pairs, dtype=np.intp)
    return left, right + (right >= left)  # never the row itself
