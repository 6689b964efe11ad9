"""Batches: the order of rows, groups of alike length, and what the collator puts together."""

import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sbertkit.encoder import Encoder
from sbertkit.encoder.batching import BatchCollator
from sbertkit.encoder.tokenization import SpecialTokens, Tokens
from sbertkit.errors import InputError
from sbertkit.training.batches import BatchOrder, Collator, TokenOrder, length_groups
from sbertkit.training.examples import NO_TEXT, Examples, Int64, TextTable
from sbertkit.training.objectives import Objective
from sbertkit.training.run.siamese import Siamese

PASS = 400
"""Tokens that one more forward pass counts as."""


def examples_of(anchors: Sequence[int]) -> Examples:
    """A row for each anchor, whose second text is its own."""
    first = np.array(anchors, dtype=np.int64)
    own = first.max() + 1 + np.arange(len(first))
    return Examples(np.stack([first, own], axis=1), np.zeros(len(first)), first)


def order_of(
    anchors: Sequence[int],
    batch_size: int,
    *,
    seed: int = 1,
    lengths: Int64 | None = None,
) -> BatchOrder:
    examples = examples_of(anchors)
    if lengths is None:
        lengths = np.full(examples.texts.max() + 1, 8, dtype=np.int64)
    return BatchOrder(examples, lengths, batch_size, seed=seed)


def row_lengths(examples: Examples, lengths: Int64) -> Int64:
    return np.array(
        [max(lengths[text] for text in row if text != NO_TEXT) for row in examples.texts]
    )


@given(
    anchors=st.lists(st.integers(0, 9), min_size=1, max_size=60),
    batch_size=st.integers(1, 12),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 5),
)
def test_an_epoch_has_every_row_once_in_batches_of_nearly_one_size(
    anchors: list[int], batch_size: int, seed: int, epoch: int
) -> None:
    examples = examples_of(anchors)
    lengths = np.random.default_rng(seed).integers(1, 40, examples.texts.max() + 1)
    order = BatchOrder(examples, lengths, batch_size, seed=seed)
    order.set_epoch(epoch)
    batches = list(order)
    assert sorted(itertools.chain(*batches)) == list(range(len(anchors)))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 1
    assert len(order) == len(batches)
    assert max(sizes) <= batch_size
    assert len(batches) == -(-len(anchors) // batch_size)
    assert list(order) == batches


@pytest.mark.parametrize(
    ("rows", "batch_size", "sizes"),
    [(1, 64, [1]), (5, 64, [5]), (64, 64, [64]), (65, 64, [33, 32]), (7, 3, [3, 2, 2])],
)
def test_no_batch_is_left_with_few_rows(rows: int, batch_size: int, sizes: list[int]) -> None:
    found = sorted((len(batch) for batch in order_of(range(rows), batch_size)), reverse=True)
    assert found == sizes


def test_batches_are_plain_numbers() -> None:
    assert {type(row) for batch in order_of(range(9), 4) for row in batch} == {int}


def test_the_order_is_that_of_seed_and_epoch() -> None:
    lengths = np.random.default_rng(0).integers(3, 30, 200)

    def epoch(seed: int, number: int) -> list[list[int]]:
        order = order_of(range(100), 8, seed=seed, lengths=lengths)
        order.set_epoch(number)
        return list(order)

    assert epoch(1, 0) == epoch(1, 0)
    others = [epoch(1, 1), epoch(2, 0), epoch(2, 1)]
    for other in others:
        assert other != epoch(1, 0)
        together = {frozenset(batch) for batch in other}
        assert not together & {frozenset(batch) for batch in epoch(1, 0)}


def test_an_order_asked_for_twice_or_out_of_turn_is_the_same() -> None:
    order = order_of(range(50), 8)
    order.set_epoch(3)
    third = list(order)
    order.set_epoch(0)
    next(iter(order))
    order.set_epoch(3)
    assert list(order) == third


def skewed(rows: int) -> tuple[Examples, Int64]:
    """Rows of one long and one short text, with lengths as sentences have them."""
    examples = examples_of(range(rows))
    drawn = np.random.default_rng(3).lognormal(2.8, 0.7, examples.texts.max() + 1)
    return examples, np.clip(drawn, 3, 256).astype(np.int64)


def waste(batches: Sequence[Any], lengths: Int64) -> int:
    """Padding tokens of rows that are padded to the longest row of their batch."""
    parts = [lengths[list(batch)] for batch in batches]
    return int(sum(len(part) * part.max() - part.sum() for part in parts))


def test_padding_is_far_less_than_in_random_batches() -> None:
    examples, lengths = skewed(4096)
    long = row_lengths(examples, lengths)
    ours = waste(list(BatchOrder(examples, lengths, 32, seed=1)), long)
    shuffled = np.random.default_rng(1).permutation(4096)
    assert ours < 0.3 * waste(np.split(shuffled, 128), long)


def test_a_row_counts_by_its_longest_text_and_no_text_counts_nothing() -> None:
    # the last text is the longest of all: that NO_TEXT is -1 must not mean this one
    texts = np.array([[0, 1, NO_TEXT], [0, 2, NO_TEXT]] * 512, dtype=np.int64)
    anchors = np.arange(1024)
    lengths = np.array([5, 5, 50, 500], dtype=np.int64)
    order = BatchOrder(Examples(texts, np.zeros(1024), anchors), lengths, 8, seed=1)
    mixed = [len({row % 2 for row in batch}) > 1 for batch in order]
    assert sum(mixed) <= 8  # of 128: where the two lengths of a pool meet


def test_batches_do_not_come_in_order_of_length() -> None:
    examples, lengths = skewed(2048)
    long = row_lengths(examples, lengths)
    means = [long[batch].mean() for batch in BatchOrder(examples, lengths, 32, seed=1)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.4


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=40),
    batch_size=st.integers(3, 12),
    seed=st.integers(0, 1000),
)
def test_up_to_three_rows_of_an_anchor_are_parted_only_where_a_batch_ends(
    counts: list[int], batch_size: int, seed: int
) -> None:
    anchors = [anchor for anchor, count in enumerate(counts) for _ in range(count)]
    shuffled = np.random.default_rng(seed).permutation(anchors).tolist()
    batches = list(order_of(shuffled, batch_size, seed=seed))
    places: dict[int, set[int]] = {}
    for place, batch in enumerate(batches):
        for row in batch:
            places.setdefault(shuffled[row], set()).add(place)
    assert sum(len(found) > 1 for found in places.values()) <= len(batches) - 1


def test_an_anchor_of_many_rows_is_spread_over_the_batches() -> None:
    anchors = [0] * 60 + list(range(1, 241))
    shares = [sum(row < 60 for row in batch) for batch in order_of(anchors, 30)]
    assert max(shares) <= 18  # six on average


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 50])
def test_rows_of_one_anchor_alone_are_batched_too(rows: int) -> None:
    batches = list(order_of([7] * rows, 4))
    assert sorted(itertools.chain(*batches)) == list(range(rows))


def cost(lengths: Sequence[int], ends: Sequence[int]) -> int:
    starts = [0, *ends[:-1]]
    padded = sum((end - start) * lengths[start] for start, end in zip(starts, ends, strict=True))
    return padded + PASS * len(ends)


def groups_of(lengths: Sequence[int]) -> list[int]:
    return length_groups(np.array(lengths, dtype=np.int64))


descending = st.lists(st.integers(1, 300), min_size=1, max_size=40).map(
    lambda lengths: sorted(lengths, reverse=True)
)


@given(descending)
def test_groups_are_few_whole_and_never_cost_more_than_one(lengths: list[int]) -> None:
    ends = groups_of(lengths)
    assert ends == sorted(set(ends))
    assert ends[0] > 0
    assert ends[-1] == len(lengths)
    assert len(ends) <= 4
    assert cost(lengths, ends) <= cost(lengths, [len(lengths)])


@given(descending)
def test_no_further_cut_would_save_anything(lengths: list[int]) -> None:
    ends = groups_of(lengths)
    cuts = [cut for cut in range(1, len(lengths)) if cut not in ends]
    further = [cost(lengths, sorted([*ends, cut])) for cut in cuts]
    if len(ends) < 4 and further:
        assert min(further) >= cost(lengths, ends)


@given(descending)
def test_each_cut_is_the_one_that_saves_most_then(lengths: list[int]) -> None:
    ends = [len(lengths)]
    while len(ends) < 4:  # brute force over all cuts, one after the other
        cuts = [cut for cut in range(1, len(lengths)) if cut not in ends]
        best = min((cost(lengths, sorted([*ends, cut])) for cut in cuts), default=None)
        if best is None or best >= cost(lengths, ends):
            break
        cut = max(cut for cut in cuts if cost(lengths, sorted([*ends, cut])) == best)
        ends = sorted([*ends, cut])
    found = groups_of(lengths)
    assert len(found) >= 2 or len(ends) == 1
    if len(ends) <= 2:
        assert cost(lengths, found) == cost(lengths, ends)


@pytest.mark.parametrize(
    ("lengths", "ends"),
    [
        ([5], [1]),
        ([5] * 30, [30]),
        ([29] * 2 + [10] * 20, [22]),  # 380 tokens saved: a pass costs more
        ([31] * 2 + [10] * 20, [2, 22]),  # 420
        ([101] + [1] * 4, [5]),  # 400, which a pass costs
        ([102] + [1] * 4, [1, 5]),
        ([130] * 40 + [90] * 40 + [50] * 40 + [10] * 40, [40, 80, 120, 160]),
        ([131] + [130] * 40 + [90] * 40 + [50] * 40 + [10] * 40, [41, 81, 121, 161]),
    ],
)
def test_groups_worked_out_by_hand(lengths: list[int], ends: list[int]) -> None:
    assert groups_of(lengths) == ends


@pytest.mark.parametrize(
    ("lengths", "ends"),
    [
        ([102] + [1] * 7, [8]),
        ([102] + [1] * 15, [8, 16]),
        ([102] + [1] * 16, [8, 17]),
        ([130] * 40 + [90] * 36 + [10] * 28, [40, 80, 104]),
    ],
)
def test_groups_end_after_whole_steps_but_the_last(lengths: list[int], ends: list[int]) -> None:
    assert length_groups(np.array(lengths), 8) == ends


SPECIAL = SpecialTokens((1,), (2,), (0,), 1, (2,))


class Noting(Objective):
    """An objective that notes what it was given."""

    given: tuple[Examples, list[int], Int64, Int64]
    vectors: torch.Tensor

    def collate(
        self, examples: Examples, rows: Sequence[int], columns: Int64, texts: Int64
    ) -> dict[str, torch.Tensor]:
        given = (examples, list(rows), columns.copy(), texts.copy())
        object.__setattr__(self, "given", given)
        return {"more": torch.arange(len(rows))}

    def loss(
        self, vectors: torch.Tensor, batch: Mapping[str, torch.Tensor], head: torch.nn.Module
    ) -> torch.Tensor:
        object.__setattr__(self, "vectors", vectors)
        return vectors.sum()


def tokens_of(lengths: Sequence[int]) -> list[Tokens]:
    """Texts that all have other ids."""
    return [
        Tokens(np.array([1, *([10 + text] * (length - 2)), 2], dtype=np.int32), 0)
        for text, length in enumerate(lengths)
    ]


def table_of(tokens: list[Tokens]) -> TextTable:
    table = TextTable(None)  # type: ignore[arg-type]  # nothing is tokenized
    table.tokens = tokens
    return table


def bare(group: Mapping[str, torch.Tensor]) -> list[tuple[int, ...]]:
    """The ids of each text of a group without its padding."""
    rows = zip(group["input_ids"].tolist(), group["mask"].tolist(), strict=True)
    return [
        tuple(token for token, real in zip(ids, mask, strict=True) if real) for ids, mask in rows
    ]


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(NO_TEXT, 11)),
        min_size=1,
        max_size=30,
    ),
    seed=st.integers(0, 1000),
    side=st.sampled_from(["left", "right"]),
    processes=st.integers(1, 4),
)
def test_each_distinct_text_is_there_once_and_every_column_points_at_its_own(
    rows: list[tuple[int, int, int]], seed: int, side: Literal["left", "right"], processes: int
) -> None:
    random = np.random.default_rng(seed)
    tokens = tokens_of(random.choice([3, 4, 9, 40, 120], 12).tolist())
    texts = np.array(rows, dtype=np.int64)
    examples = Examples(texts, np.zeros(len(rows)), texts[:, 0])
    padder = BatchCollator(0, side, SPECIAL, uses_token_types=True)
    objective = Noting()
    chosen = random.permutation(len(rows))[: random.integers(1, len(rows) + 1)].tolist()
    vectors = []
    for rank in range(processes):
        collator = Collator(
            examples, table_of(tokens), padder, objective, rank=rank, processes=processes
        )
        batch = collator(chosen)
        own = [ids for group in batch["groups"] for ids in bare(group)]
        assert len(own) == max(1, batch["sizes"][rank])
        vectors += own[: batch["sizes"][rank]]
    assert max(batch["sizes"]) - min(batch["sizes"]) <= 1
    wanted = {text for row in chosen for text in rows[row] if text != NO_TEXT}
    assert sorted(vectors) == sorted(tuple(tokens[text].ids.tolist()) for text in wanted)
    for place, row in enumerate(chosen):
        for column, text in zip(batch["columns"][place].tolist(), rows[row], strict=True):
            if text == NO_TEXT:
                assert column == NO_TEXT
            else:
                assert vectors[column] == tuple(tokens[text].ids.tolist())
    given_examples, given_rows, columns, numbers = objective.given
    assert given_examples is examples
    assert given_rows == chosen
    assert columns.tolist() == batch["columns"].tolist()
    assert [tuple(tokens[text].ids.tolist()) for text in numbers] == vectors
    assert batch["more"].tolist() == list(range(len(chosen)))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("gives_types", [True, False])
def test_groups_are_what_the_padder_makes(
    side: Literal["left", "right"], gives_types: bool
) -> None:
    tokens = tokens_of([3, 220, 4, 219, 5, 218])
    padder = BatchCollator(0, side, SPECIAL, uses_token_types=gives_types)
    texts = np.arange(6).reshape(3, 2)
    collator = Collator(
        Examples(texts, np.zeros(3), texts[:, 0]), table_of(tokens), padder, Noting()
    )
    batch = collator([2, 0, 1])
    assert batch["columns"].tolist() == [[3, 2], [5, 0], [4, 1]]
    assert len(batch["groups"]) == 2
    for group, numbers in zip(batch["groups"], ([1, 3, 5], [4, 2, 0]), strict=True):
        padded = padder.collate(tokens, np.array(numbers))
        assert group["input_ids"].tolist() == padded.input_ids.tolist()
        assert group["mask"].tolist() == padded.attention_mask.tolist()
        if padded.token_type_ids is None:
            assert "types" not in group
        else:
            assert group["types"].tolist() == padded.token_type_ids.tolist()


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(3, 150), min_size=1, max_size=40),
    mini_batch=st.sampled_from([None, 5, 16]),
    processes=st.integers(1, 3),
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_few_shapes_add_padding_and_copies_that_do_not_count(
    side: Literal["left", "right"], lengths: list[int], mini_batch: int | None, processes: int
) -> None:
    tokens = tokens_of(lengths)
    texts = np.arange(len(lengths))[:, None]
    examples = Examples(texts, np.zeros(len(texts)), texts[:, 0])
    padder = BatchCollator(9, side, SPECIAL, uses_token_types=True)
    for rank in range(processes):
        exact, rounded = (
            Collator(
                examples,
                table_of(tokens),
                padder,
                Noting(),
                mini_batch=mini_batch,
                few_shapes=few,
                rank=rank,
                processes=processes,
            )(list(range(len(lengths))))
            for few in (False, True)
        )
        assert rounded["sizes"] == exact["sizes"]
        assert rounded["columns"].tolist() == exact["columns"].tolist()
        wanted, found = (
            [ids for group in batch["groups"] for ids in bare(group)] for batch in (exact, rounded)
        )
        assert found[: len(wanted)] == wanted
        assert set(found[len(wanted) :]) <= {wanted[-1]}
        assert len(found) - len(wanted) < 8
        for group in rounded["groups"]:
            count, width = group["input_ids"].shape
            assert mini_batch is not None or count % 8 == 0
            longest = int(group["mask"].sum(dim=1).max())
            assert longest <= width <= min(max(lengths), longest * 9 / 8)
            assert (
                width == max(lengths)
                or width in (*range(1, 17), *range(18, 33, 2))
                or (width % (4 if width <= 64 else 8 if width <= 128 else 16) == 0)
            )
            assert group["input_ids"][group["mask"] == 0].unique().tolist() in ([], [9])
            assert not group["types"][group["mask"] == 0].any()


def test_rows_are_counted() -> None:
    examples = examples_of([1, 1, 2])
    padder = BatchCollator(0, "right", SPECIAL, uses_token_types=False)
    assert Collator(examples, table_of([]), padder, Noting()).rows == len(examples) == 3


TEXTS = (
    "A heron stands in the shallow water.",
    "x",
    "the quick fox jumps over a lazy dog, then sleeps in the sun.",
    "Two bakers argue about salt",
    "numbers 1 2 3 and 4567",
)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlnet"])
def test_vectors_in_training_are_those_of_the_encoder(tiny_folder: Any, architecture: str) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean", device="cpu")
    assert encoder.spec.collator.side == ("left" if architecture == "xlnet" else "right")
    table = TextTable(encoder)
    texts = np.array([table.numbers(pair) for pair in itertools.combinations(TEXTS, 2)])
    table.tokenize()
    examples = Examples(texts, np.zeros(len(texts)), texts[:, 0])
    collator = Collator(examples, table, encoder.spec.collator, Noting())
    noting = Noting()
    siamese = Siamese(encoder.torch.network.eval(), noting, torch.nn.Identity())
    with torch.inference_mode():
        batch = collator(list(range(len(texts))))
        assert siamese(batch).ndim == 0
    vectors = noting.vectors.numpy()
    assert vectors.shape == (len(TEXTS), encoder.dim)
    for row, pair in zip(batch["columns"].numpy(), itertools.combinations(TEXTS, 2), strict=True):
        np.testing.assert_allclose(vectors[row], encoder.encode(pair), atol=2e-6)


def test_texts_are_numbered_in_order_and_equal_ones_share_a_number(tiny_encoder: Encoder) -> None:
    table = TextTable(tiny_encoder)
    assert table.numbers(["b", "a", "b"]) == [0, 1, 0]
    assert table.numbers(iter(["c", "a", "B"])) == [2, 1, 3]
    table.tokenize()
    assert len(table.tokens) == 4
    assert table.lengths.tolist() == [3, 3, 3, 3]
    assert table.lengths.dtype == np.int64


def test_the_document_prompt_goes_before_every_text(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", prompts={"document": "ab: "}, device="cpu")
    plain = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    tables = TextTable(encoder), TextTable(plain)
    tables[0].numbers(["x", "yz"])
    tables[1].numbers(["ab: x", "ab: yz"])
    for table in tables:
        table.tokenize()
    for prompted, written in zip(tables[0].tokens, tables[1].tokens, strict=True):
        assert prompted.ids.tolist() == written.ids.tolist()


def test_texts_that_are_cut_are_counted_in_one_warning(
    tiny_bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", max_tokens=6, device="cpu")
    table = TextTable(encoder)
    table.numbers(["a b c d", "a b c d e", "a b c d e f", "a b c d e f", "a"])
    with caplog.at_level(logging.WARNING):
        table.tokenize()
    (warning,) = caplog.messages
    assert "2 of 4 distinct training texts are truncated to 6 tokens" in warning
    assert table.lengths.tolist() == [6, 6, 6, 3]


def test_texts_that_fit_are_not_warned_of(
    tiny_encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    table = TextTable(tiny_encoder)
    table.numbers(["a b c d"])
    table.tokenize()
    assert not caplog.messages


def test_texts_that_the_tokenizer_does_not_know_are_warned_of(
    tiny_bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = TextTable(Encoder.load(tiny_bert, pooling="mean", device="cpu"))
    table.numbers(["a b c d", "股市大跌 b", "天气 a"])
    table.tokenize()
    (warning,) = caplog.messages
    assert re.match("training texts: .*% of the tokens are unknown to the tokenizer of", warning)


# --- batches by tokens


def token_order(lengths: Sequence[int], tokens: int, *, seed: int = 1) -> TokenOrder:
    texts = np.arange(len(lengths))[:, None]
    examples = Examples(texts, np.zeros(len(lengths)), texts[:, 0])
    return TokenOrder(examples, np.array(lengths, np.int64), tokens, seed=seed)


@given(
    lengths=st.lists(st.integers(1, 600), min_size=1, max_size=300),
    more=st.integers(0, 3_000),
    seed=st.integers(0, 2**40),
)
def test_an_epoch_has_every_row_once_in_batches_that_fit_the_tokens(
    lengths: list[int], more: int, seed: int
) -> None:
    tokens = max(lengths) + more
    order = token_order(lengths, tokens, seed=seed)
    for epoch in range(3):
        order.set_epoch(epoch)
        batches = list(order)
        assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
        assert len(batches) == len(order), "another number in another epoch"
        for batch in batches:
            assert len(batch) * max(lengths[row] for row in batch) <= tokens
        assert list(order) == batches
        assert order.batch_size == max(map(len, batches))


def test_batches_by_tokens_are_full_and_of_similar_lengths() -> None:
    lengths = np.random.default_rng(2).geometric(0.03, 20_000).clip(1, 256)
    order = token_order(lengths.tolist(), 4_096)
    batches = list(order)
    padded = [len(batch) * lengths[batch].max() for batch in batches]
    assert sum(padded) / lengths.sum() < 1.1, "much padding"
    assert np.mean(padded) > 0.85 * 4_096, "batches are not full"
    assert len({len(batch) for batch in batches}) > 10
    order.set_epoch(1)
    again = {frozenset(batch) for batch in order}
    assert len(again & {frozenset(batch) for batch in batches}) < 0.01 * len(batches)
    firsts = [lengths[batch].max() for batch in batches]
    assert firsts != sorted(firsts, reverse=True), "long texts come first"


def test_a_row_that_does_not_fit_the_tokens_is_refused() -> None:
    with pytest.raises(InputError, match="the longest example has 40 tokens; raise it"):
        token_order([3, 40, 5], 39)
    assert len(token_order([3, 40, 5], 40)) == 2
