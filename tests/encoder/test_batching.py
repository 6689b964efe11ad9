"""Padded batches: every text once, within the budget, as long as its longest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.encoder.batching import BatchCollator, plan_batches
from sbertkit.encoder.tokenization import SpecialTokens, Tokens

SPECIAL = SpecialTokens((101,), (102, 103), (0,), 1, (2, 3))


def tokens(*ids: int) -> Tokens:
    return Tokens(np.array(ids, dtype=np.int32), 0)


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 500))
def test_every_text_is_in_one_batch_and_batches_fit_the_budget(
    lengths: list[int], budget: int
) -> None:
    batches = plan_batches(lengths, budget)
    rows = [int(row) for batch in batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[row] for row in batch)
        assert len(batch) == 1 or len(batch) * longest <= budget


@given(st.lists(st.integers(1, 300), max_size=60))
def test_the_longest_texts_come_first_and_equal_ones_keep_their_order(lengths: list[int]) -> None:
    rows = [int(row) for batch in plan_batches(lengths, 100) for row in batch]
    assert rows == sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 500), st.integers(1, 64))
def test_the_padding_by_the_model_itself_is_in_the_budget(
    lengths: list[int], budget: int, padded_to: int
) -> None:
    collator = BatchCollator(0, "right", SPECIAL, uses_token_types=False, padded_to=padded_to)
    batches = collator.plan(lengths, budget)
    assert sorted(int(row) for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        blocks = -(-max(lengths[row] for row in batch) // padded_to)
        assert len(batch) == 1 or len(batch) * blocks * padded_to <= budget


def test_no_texts_are_no_batches() -> None:
    assert plan_batches([], 100) == []


def test_padding_on_the_right() -> None:
    collator = BatchCollator(9, "right", SPECIAL, uses_token_types=True)
    batch = collator.collate(
        [tokens(101, 5, 102, 103), tokens(101, 5, 6, 102, 103)], np.array([1, 0])
    )
    assert batch.input_ids.tolist() == [[101, 5, 6, 102, 103], [101, 5, 102, 103, 9]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 1, 1, 2, 3], [0, 1, 2, 3, 0]]


def test_padding_on_the_left() -> None:
    collator = BatchCollator(9, "left", SPECIAL, uses_token_types=True)
    batch = collator.collate(
        [tokens(101, 5, 102, 103), tokens(101, 5, 6, 102, 103)], np.array([0, 1])
    )
    assert batch.input_ids.tolist() == [[9, 101, 5, 102, 103], [101, 5, 6, 102, 103]]
    assert batch.attention_mask.tolist() == [[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [[0, 0, 1, 2, 3], [0, 1, 1, 2, 3]]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_model_without_token_types_gets_none(side: str) -> None:
    collator = BatchCollator(0, side, SPECIAL, uses_token_types=False)  # type: ignore[arg-type]
    assert collator.collate([tokens(101, 102, 103)], np.array([0])).token_type_ids is None
