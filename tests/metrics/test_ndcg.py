"""nDCG against trec_eval's."""

import ir_measures
import numpy as np
import numpy.typing as npt
import pytest
from ir_measures import nDCG

from sbertkit.metrics import ndcg

DEPTH = 10


def test_it_is_that_of_trec_eval() -> None:
    random = np.random.default_rng(1)
    found: list[npt.NDArray[np.int64]] = []
    ideal: list[npt.NDArray[np.int64]] = []
    expected = []
    for _ in range(40):
        grades = random.integers(0, 4, size=random.integers(1, 30)) * random.integers(0, 2)
        order = random.permutation(len(grades))
        qrels = {"q": {str(number): int(grade) for number, grade in enumerate(grades)}}
        run = {"q": {str(number): -float(rank) for rank, number in enumerate(order)}}
        expected.append(ir_measures.calc_aggregate([nDCG @ DEPTH], qrels, run)[nDCG @ DEPTH])
        for rows, values in ((found, grades[order]), (ideal, np.sort(grades)[::-1])):
            rows.append(np.pad(values[:DEPTH], (0, max(0, DEPTH - len(values)))))
    assert ndcg(found, ideal).tolist() == pytest.approx(expected, abs=1e-6)


def test_by_hand() -> None:
    assert ndcg([[0, 1, 0]], [[1, 0, 0]]).tolist() == pytest.approx([1 / np.log2(3)])
    assert ndcg([[0, 0]], [[0, 0]]).tolist() == [0.0]
