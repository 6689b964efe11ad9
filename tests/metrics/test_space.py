import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sbertkit.errors import InputError
from sbertkit.metrics import effective_rank, mean_random_cosine, row_cosines, uniformity

small = hnp.arrays(
    np.float32,
    st.tuples(st.integers(2, 8), st.integers(1, 5)),
    elements=st.floats(-8, 8, width=32),
)


def cosine(first: list[float], second: list[float]) -> float:
    product = math.fsum(a * b for a, b in zip(first, second, strict=True))
    return product / (math.hypot(*first) * math.hypot(*second))


@given(small)
def test_the_mean_over_all_pairs_is_that_of_plain_python(vectors: np.ndarray) -> None:
    rows = [row for row in vectors.tolist() if any(row)]
    cosines = [cosine(first, second) for first, second in combinations(rows, 2)]
    if not cosines:
        assert mean_random_cosine(vectors) is None
        assert uniformity(vectors) is None
        return
    assert mean_random_cosine(vectors) == pytest.approx(math.fsum(cosines) / len(cosines), abs=1e-9)
    potentials = [math.exp(-2 * (2 - 2 * value)) for value in cosines]
    assert uniformity(vectors) == pytest.approx(
        math.log(math.fsum(potentials) / len(potentials)), abs=1e-8
    )


def test_hand_worked_cosines() -> None:
    # pairs: 0, -1, 0
    vectors = np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    assert mean_random_cosine(vectors) == pytest.approx(-1 / 3)


def test_hand_worked_uniformity() -> None:
    # squared distances 2 (twice) and 4
    vectors = np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    expected = math.log((2 * math.exp(-2) + math.exp(-4)) / 3)
    assert uniformity(vectors, t=1.0) == pytest.approx(expected)


def test_one_point_has_cosine_one_and_uniformity_zero() -> None:
    vectors = np.ones((5, 3), dtype=np.float32)
    assert mean_random_cosine(vectors) == pytest.approx(1.0, abs=1e-15)
    assert uniformity(vectors) == pytest.approx(0.0, abs=1e-12)


def test_a_sharp_potential_does_not_underflow() -> None:
    assert uniformity(np.eye(3), t=1000.0) == pytest.approx(-2000.0)


def test_a_sample_of_pairs_is_near_the_mean_over_all() -> None:
    vectors = np.random.default_rng(1).normal(loc=0.3, size=(400, 8))
    everything = mean_random_cosine(vectors)
    sample = mean_random_cosine(vectors, pairs=20_000)
    assert everything is not None
    assert sample == pytest.approx(everything, abs=0.01)
    assert sample != everything
    assert uniformity(vectors, pairs=20_000) == pytest.approx(uniformity(vectors), abs=0.03)


def test_a_sample_never_pairs_a_row_with_itself() -> None:
    assert mean_random_cosine(np.eye(50), pairs=1000) == 0.0


def test_the_same_seed_draws_the_same_pairs() -> None:
    vectors = np.random.default_rng(1).normal(size=(100, 4))
    first, again, other = (mean_random_cosine(vectors, pairs=500, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_rows_of_zeros_are_left_out() -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    assert mean_random_cosine(vectors) == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_the_rows_does_not_matter(scale: float) -> None:
    vectors = np.array([[1.0, 0.0], [1.0, 1.0]], dtype=np.float32) * np.float32(scale)
    assert mean_random_cosine(vectors) == pytest.approx(math.sqrt(0.5))
    assert effective_rank(np.eye(3) * scale) == pytest.approx(3.0)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (0, 0)])
def test_fewer_than_two_rows_are_undefined(shape: tuple[int, int]) -> None:
    assert mean_random_cosine(np.ones(shape)) is None
    assert uniformity(np.ones(shape)) is None


def test_row_cosines_take_the_rows_named() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]], dtype=np.float32)
    left, right = np.array([0, 0, 3, 1]), np.array([1, 3, 3, 2])
    assert row_cosines(vectors, left, right).tolist() == pytest.approx([0.0, 0.6, 1.0, 0.0])


def test_row_cosines_do_not_depend_on_chunks() -> None:
    vectors = np.random.default_rng(2).normal(size=(30, 4)).astype(np.float32)
    left = np.arange(20_000) % 30
    right = np.arange(20_000) // 30 % 30
    whole = row_cosines(vectors, left, right)
    exact = vectors.astype(float) @ vectors.astype(float).T
    norms = np.sqrt(np.diag(exact))
    assert whole == pytest.approx((exact / np.outer(norms, norms))[left, right], abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_orthogonal_rows_of_one_length_have_full_rank(size: int) -> None:
    assert effective_rank(np.eye(size) * 7) == pytest.approx(size)


def test_the_effective_rank_of_hand_worked_singular_values() -> None:
    # values 3 and 1: shares 3/4 and 1/4
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert effective_rank(np.diag([3.0, 1.0, 0.0])) == pytest.approx(math.exp(entropy))


def test_centering_removes_a_common_offset() -> None:
    vectors = np.array([[101.0, 0.0], [99.0, 0.0], [100.0, 1.0], [100.0, -1.0]])
    plain = effective_rank(vectors)
    assert plain is not None
    assert plain < 1.1
    assert effective_rank(vectors, centered=True) == pytest.approx(2.0)


def test_equal_rows_have_rank_one_and_centered_none() -> None:
    vectors = np.tile(np.array([0.1, 0.7, -0.3]), (9, 1))
    assert effective_rank(vectors) == pytest.approx(1.0)
    assert effective_rank(vectors, centered=True) is None


@pytest.mark.parametrize("shape", [(3, 2), (0, 2), (2, 0)])
def test_zeros_have_no_effective_rank(shape: tuple[int, int]) -> None:
    assert effective_rank(np.zeros(shape)) is None


@given(small)
def test_the_effective_rank_is_between_one_and_the_smaller_side(vectors: np.ndarray) -> None:
    rank = effective_rank(vectors)
    if rank is None:
        assert not vectors.any()
    else:
        assert 1 - 1e-9 <= rank <= min(vectors.shape) + 1e-9


@pytest.mark.parametrize("measure", [mean_random_cosine, uniformity, effective_rank])
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0]]), r"row 1 \(2 rows"),
        (np.array([["a", "b"]]), "expected vectors as numbers"),
    ],
)
def test_other_vectors_are_refused(measure: object, vectors: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure(vectors)  # type: ignore[operator]


def test_other_options_are_refused() -> None:
    with pytest.raises(InputError, match="pairs must be at least 1, not 0"):
        mean_random_cosine(np.eye(3), pairs=0)
    with pytest.raises(InputError, match="t must be a finite number above 0, not -1"):
        uniformity(np.eye(3), t=-1)
