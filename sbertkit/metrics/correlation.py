"""Correlation of gold scores and predictions, with a reason where it is undefined."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class Correlation(NamedTuple):
    """A correlation from -1 to 1, or None with the reason why it is undefined."""

    value: float | None
    reason: str | None = None


def pearson(gold: npt.ArrayLike, predicted: npt.ArrayLike) -> Correlation:
    """The product-moment correlation of two columns of numbers, each of shape (n,).

    Raises:
        InputError: The columns differ in length, or hold anything but finite numbers.

    Source: Pearson 1896, Mathematical Contributions to the Theory of Evolution III:
        sum of (x - mean x)(y - mean y), over the root of the product of the two sums of squares.
    """
    gold, predicted = _checked_columns(gold, predicted)
    reason = _why_undefined(gold, predicted)
    return Correlation(None, reason) if reason else _product_moment(gold, predicted)


def spearman(gold: npt.ArrayLike, predicted: npt.ArrayLike) -> Correlation:
    """The rank correlation of two columns of numbers, each of shape (n,); ties share a mean rank.

    Raises:
        InputError: The columns differ in length, or hold anything but finite numbers.

    Source: Spearman 1904, The Proof and Measurement of Association between Two Things:
        the product-moment correlation of the ranks.
    """
    gold, predicted = _checked_columns(gold, predicted)
    reason = _why_undefined(gold, predicted)
    if reason:
        return Correlation(None, reason)
    return _product_moment(
        ranks_of_codes(order_codes(gold)), ranks_of_codes(order_codes(predicted))
    )


def order_codes(values: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """The rank of each value among the distinct ones, from 0 for the smallest; shape (n,).

    Codes keep order and ties, so rank statistics of codes equal those of the values.
    """
    _, codes = np.unique(np.asarray(values), return_inverse=True)
    return codes.astype(np.intp, copy=False)


def ranks_of_codes(codes: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """The ranks, from 1, of values coded by `order_codes`; ties share their mean rank.

    Counting instead of sorting makes it cheap to rank a resample of coded rows. Codes need not be
    consecutive.
    """
    counts = np.bincount(codes)
    ranks: npt.NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return ranks[codes]


def correlate_codes(gold: npt.NDArray[np.intp], predicted: npt.NDArray[np.intp]) -> float | None:
    """The Spearman correlation of two coded columns, or None where a column is constant."""
    if len(gold) < 2 or _is_constant(gold) or _is_constant(predicted):
        return None
    return _product_moment(ranks_of_codes(gold), ranks_of_codes(predicted)).value


def _checked_columns(
    gold: npt.ArrayLike, predicted: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    columns = _checked(gold, "gold scores"), _checked(predicted, "predictions")
    if len(columns[0]) != len(columns[1]):
        raise InputError(
            f"expected one prediction for each gold score, found {len(columns[0])} gold scores "
            f"and {len(columns[1])} predictions"
        )
    return columns


def _checked(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name}: expected one column of numbers, found {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected numbers, found values of type {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name}: expected one dimension, found the shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InputError(
            f"{name}: expected finite numbers, found {array[bad[0]]} at position {bad[0]} "
            f"({bad.size} in all); leave such pairs out"
        )
    return array.astype(np.float64)


def _why_undefined(gold: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64]) -> str | None:
    if len(gold) < 2:
        return "fewer than 2 pairs"
    if _is_constant(gold):
        return "constant gold scores"
    # Cosines of equal vectors may differ in the last bits; their ranks would be noise.
    scale = float(np.abs(predicted).max()) or 1.0
    if float(np.ptp(predicted / scale)) <= _ROUNDING:
        return "constant predictions"
    return None


def _is_constant(column: npt.NDArray[np.float64] | npt.NDArray[np.intp]) -> bool:
    return bool(column.min() == column.max())


def _product_moment(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> Correlation:
    first, second = _centered_unit(first), _centered_unit(second)
    return Correlation(float(np.clip(first @ second, -1.0, 1.0)))


def _centered_unit(column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # Squares of very large or small numbers leave the range of float64: scale twice.
    scaled = column / np.abs(column).max()
    centered = scaled - scaled.mean()
    centered /= np.abs(centered).max()
    unit: npt.NDArray[np.float64] = centered / np.sqrt(centered @ centered)
    return unit
