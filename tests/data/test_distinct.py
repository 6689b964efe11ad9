"""Distinct texts of pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data.distinct import distinct_texts

texts = st.sampled_from(["a", "b", "c", ""])


@given(st.lists(st.tuples(texts, texts)))
def test_rows_give_the_texts_of_each_pair_back(pairs: list[tuple[str, str]]) -> None:
    distinct, rows = distinct_texts(pairs)
    assert rows.shape == (len(pairs), 2)
    assert [(distinct[left], distinct[right]) for left, right in rows] == pairs
    assert distinct == list(dict.fromkeys(text for pair in pairs for text in pair))


def test_no_pairs_have_no_rows() -> None:
    found = distinct_texts([])
    assert found.texts == []
    np.testing.assert_array_equal(found.rows, np.empty((0, 2)))
