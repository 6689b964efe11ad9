"""Batches of a seeded, reproducible order in which texts of similar length come together."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sbertkit.encoder.batching import BatchCollator, plan_batches
from sbertkit.errors import InputError
from sbertkit.training.examples import NO_TEXT, Examples, Int64, TextTable
from sbertkit.training.objectives import Objective

_CHUNK_BATCHES = 64
_CHUNKS_PER_EPOCH = 8
"""Rows are sorted by length within chunks of so many batches, at least so many chunks per epoch:
enough for little padding, little enough that batches differ from epoch to epoch."""
_TOGETHER = 3
"""So many rows of one anchor stay together, as a premise of SNLI has three hypotheses; more would
make batches of few anchors."""
_GROUP_COST = 400
"""What one more forward pass costs, in tokens: below that, padding is cheaper."""
_MAX_GROUPS = 4
_ROW_STEP = 8
"""What the number of texts of a group is a multiple of, where shapes are few."""


class BatchOrder:
    """The batches of each epoch, as lists of row numbers: a batch sampler of torch.

    All batches of an epoch have nearly the same number of rows, so that none is left with one.

    Args:
        examples: What is batched.
        lengths: Token counts of the texts, by number.
        batch_size: Maximum of rows per batch.
        seed: Decides the order, with the number of the epoch.
    """

    def __init__(self, examples: Examples, lengths: Int64, batch_size: int, *, seed: int) -> None:
        self._anchors = examples.anchors
        used = np.where(examples.texts == NO_TEXT, 0, lengths[examples.texts])
        self._lengths = used.max(axis=1)
        rows = len(examples)
        self._count = -(-rows // batch_size)
        self._seed = seed
        self._epoch = 0
        self.batch_size = min(batch_size, rows)
        self.drop_last = False

    def __len__(self) -> int:
        return self._count

    @property
    def epoch(self) -> int:
        """That epoch, from 0."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order `iter` gives."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        random = np.random.default_rng((self._seed, self._epoch))
        batches = self._batches(random)
        for place in random.permutation(self._count):
            yield batches[place].tolist()

    def _batches(self, random: np.random.Generator) -> list[Int64]:
        """All batches of an epoch."""
        bundles = self._bundles(random)
        rows = np.concatenate(bundles)
        sizes = np.array([len(bundle) for bundle in bundles])
        keys = np.array([self._lengths[bundle].max() for bundle in bundles])
        per_chunk = min(_CHUNK_BATCHES, max(1, self._count // _CHUNKS_PER_EPOCH)) * self.batch_size
        chunks = (np.cumsum(sizes) - 1) // per_chunk
        # Every other chunk falls from long to short, so that no batch spans both ends.
        order = np.lexsort((np.where(chunks % 2, -keys, keys), chunks))
        starts = np.cumsum(sizes) - sizes
        rows = np.concatenate([rows[starts[b] : starts[b] + sizes[b]] for b in order])
        return np.array_split(rows, self._count)

    def _bundles(self, random: np.random.Generator) -> list[Int64]:
        """Rows of the same anchor by threes and less, all in random order."""
        shuffled = random.permutation(len(self._anchors))
        by_anchor = shuffled[np.argsort(self._anchors[shuffled], kind="stable")]
        anchors = self._anchors[by_anchor]
        first = np.flatnonzero(np.r_[True, anchors[1:] != anchors[:-1]])
        within = np.arange(len(anchors)) - np.repeat(first, np.diff(np.r_[first, len(anchors)]))
        splits = np.flatnonzero(within % _TOGETHER == 0)
        bundles = np.split(by_anchor, splits[1:])
        return [bundles[place] for place in random.permutation(len(bundles))]


class TokenOrder(BatchOrder):
    """Batches of so many tokens, padding included, each of rows of similar length.

    Every epoch has the same number of batches, so that a run can be resumed in any: a length counts
    as the next one of a series whose steps are about a tenth, and rows of one step change places.

    Args:
        examples: What is batched, each row for itself.
        lengths: Token counts of the texts, by number.
        batch_tokens: Maximum of tokens per batch.
        seed: Decides the order, with the number of the epoch.

    Raises:
        InputError: A row has more tokens.
    """

    def __init__(self, examples: Examples, lengths: Int64, batch_tokens: int, *, seed: int) -> None:
        super().__init__(examples, lengths, len(examples), seed=seed)
        longest = int(self._lengths.max())
        if longest > batch_tokens:
            raise InputError(
                f"batch_tokens (--batch-tokens) is {batch_tokens:,}, but the longest example has "
                f"{longest:,} tokens; raise it, or lower max_tokens (--max-tokens)"
            )
        self._lengths = _steps(self._lengths)
        plan = plan_batches(self._lengths.tolist(), batch_tokens)
        self._ends = np.cumsum([len(batch) for batch in plan])[:-1]
        self._count = len(plan)
        self.batch_size = max(map(len, plan))

    def _batches(self, random: np.random.Generator) -> list[Int64]:
        rows = random.permutation(len(self._lengths))
        return np.split(rows[np.argsort(-self._lengths[rows], kind="stable")], self._ends)


def _steps(lengths: Int64) -> Int64:
    """Each length, or the next one that has but its four highest bits."""
    bits = np.floor(np.log2(np.maximum(lengths - 1, 1))).astype(np.int64)
    step = 2 ** np.maximum(bits - 3, 0)
    stepped: Int64 = -(-lengths // step) * step
    return stepped


class Collator:
    """Makes a batch of rows: each distinct text once, the longest first, in groups of like length.

    Of several processes each gets the texts of its share alone, about as long as those of the
    others, and all else of the whole batch.

    Args:
        examples: The rows.
        table: Their texts.
        padder: Builds padded arrays as the encoder wants them.
        objective: Adds what it needs beside the texts.
        mini_batch: Maximum of texts per group; None for no maximum.
        few_shapes: Whether lengths are rounded up, and numbers of texts by repeating the last one.
        rank: The number of this process, from 0.
        processes: How many there are.
    """

    def __init__(
        self,
        examples: Examples,
        table: TextTable,
        padder: BatchCollator,
        objective: Objective,
        *,
        mini_batch: int | None = None,
        few_shapes: bool = False,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        self._examples = examples
        self._tokens = table.tokens
        self._longest = max((len(tokens.ids) for tokens in self._tokens), default=0)
        self._padder = padder
        self._objective = objective
        self._mini_batch = mini_batch
        self._few_shapes = few_shapes
        self._rank = rank
        self._processes = processes

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self._examples)

    def __call__(self, rows: list[int]) -> dict[str, Any]:
        """The batch of those rows.

        ``groups`` are padded parts of the texts of this process, ``sizes`` says how many vectors
        of each process count, the first ones; ``columns`` (B, columns) says which vector of all,
        process by process and in the order of the groups, each row's texts have.
        """
        texts = self._examples.texts[rows]
        distinct = np.unique(texts[texts != NO_TEXT])
        lengths = np.array([len(self._tokens[text].ids) for text in distinct])
        distinct = distinct[np.argsort(-lengths, kind="stable")]
        shares = [distinct[rank :: self._processes] for rank in range(self._processes)]
        every = np.concatenate(shares)
        by_number = np.argsort(every)
        columns = np.full_like(texts, NO_TEXT)
        filled = texts != NO_TEXT
        columns[filled] = by_number[np.searchsorted(every, texts[filled], sorter=by_number)]
        more: dict[str, Tensor] = self._objective.collate(self._examples, rows, columns, every)
        return {
            # A process without texts computes one that does not count.
            "groups": self._groups(shares[self._rank] if len(shares[self._rank]) else every[:1]),
            "sizes": [len(share) for share in shares],
            "columns": torch.from_numpy(columns),
            **more,
        }

    def _groups(self, texts: Int64) -> list[dict[str, Tensor]]:
        """Padded groups of texts, which are sorted by length."""
        step = _ROW_STEP if self._few_shapes and self._mini_batch is None else 1
        texts = np.concatenate([texts, np.repeat(texts[-1:], -len(texts) % step)])
        widths = np.array([len(self._tokens[text].ids) for text in texts])
        if self._few_shapes:
            widths = np.minimum(_steps(widths), self._longest)
        groups = []
        start = 0
        for end in self._group_ends(widths, step):
            groups.append(self._group(texts[start:end], int(widths[start])))
            start = end
        return groups

    def _group(self, texts: Int64, width: int) -> dict[str, Tensor]:
        """Some texts, padded to that width."""
        batch = self._padder.collate(self._tokens, texts)
        group = {"input_ids": batch.input_ids, "mask": batch.attention_mask}
        if batch.token_type_ids is not None:
            group["types"] = batch.token_type_ids
        added = width - batch.input_ids.shape[1]
        if added:
            sides = (added, 0) if self._padder.side == "left" else (0, added)
            values = {"input_ids": self._padder.pad_id}
            group = {
                name: np.pad(array, ((0, 0), sides), constant_values=values.get(name, 0))
                for name, array in group.items()
            }
        return {name: torch.from_numpy(array) for name, array in group.items()}

    def _group_ends(self, widths: Int64, step: int) -> list[int]:
        """Where each group of a sorted batch ends."""
        if self._mini_batch is None:
            return length_groups(widths, step)
        return [*range(self._mini_batch, len(widths), self._mini_batch), len(widths)]


def length_groups(lengths: Int64, step: int = 1) -> list[int]:
    """Where each group of a sorted batch ends, so that padding and forward passes cost little.

    A group is split in two where that saves the most tokens, while it saves more than a pass costs.

    Args:
        lengths: Token counts, descending, (n,).
        step: What each end but the last is a multiple of.
    """
    ends = [len(lengths)]
    while len(ends) < _MAX_GROUPS:
        saved, split = max(_best_split(lengths, span, step) for span in _spans(ends))
        if saved <= _GROUP_COST:
            break
        ends = sorted([*ends, split])
    return ends


def _spans(ends: list[int]) -> Iterator[tuple[int, int]]:
    yield from zip([0, *ends[:-1]], ends, strict=True)


def _best_split(lengths: Int64, span: tuple[int, int], step: int) -> tuple[int, int]:
    """The tokens saved by the best split of a span, and where it is."""
    start, end = span
    splits = np.arange(start + step, end, step)
    if not len(splits):
        return 0, start
    # The texts after a split are then padded to their own longest, not to that of all.
    saved = (end - splits) * (lengths[start] - lengths[splits])
    best = int(saved.argmax())
    return int(saved[best]), int(splits[best])
