"""What is trained on: distinct texts as token ids, and examples that refer to them by number."""

import logging
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.encoder import Encoder
from sbertkit.encoder.report import unknown_warning
from sbertkit.encoder.rows import Row
from sbertkit.encoder.tokenization import Tokens
from sbertkit.errors import InputError
from sbertkit.training.data_forms import ScoredPair, TrainingData

if TYPE_CHECKING:
    from sbertkit.training.guide import Guide

logger = logging.getLogger(__name__)

Int64 = npt.NDArray[np.int64]

NO_TEXT = -1
"""The number that stands for no text."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Rows to train on.

    Attributes:
        texts: Numbers of each row's texts, (n, columns); `NO_TEXT` where a row has none.
        targets: What each row should come out as, (n,): a class, a score; objectives without
            targets have zeros.
        anchors: Rows with the same number belong together, (n,): a batch reuses what they share.
        positives: Numbers of the texts that are never negatives of an anchor, by its number.
        left_out: Rows of the data that are no examples, by the reason.
        vectors: Vectors that targets may number, (m, dim).
        parts: The examples of each set, one after another, where there are several.
        guide: By which further texts are no negatives of an anchor.
    """

    texts: Int64
    targets: npt.NDArray[np.generic]
    anchors: Int64
    positives: Mapping[int, Set[int]] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    vectors: npt.NDArray[np.float32] | None = None
    parts: tuple["Examples", ...] = ()
    guide: "Guide | None" = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def starts(self) -> list[int]:
        """The first row of each part, and the number of all rows."""
        return [0, *accumulate(map(len, self.parts))]

    def of_part(self, rows: Sequence[int]) -> tuple[int, list[int]]:
        """The part that rows are of, and their numbers in it."""
        starts = self.starts
        number = bisect_right(starts, rows[0]) - 1
        return number, [row - starts[number] for row in rows]


def joined(parts: Sequence[Examples]) -> Examples:
    """The examples of several sets as one."""
    width = max(one.texts.shape[1] for one in parts)
    rows = sum(map(len, parts))
    texts = np.full((rows, width), NO_TEXT, np.int64)
    start = 0
    for one in parts:
        texts[start : start + len(one), : one.texts.shape[1]] = one.texts
        start += len(one)
    return Examples(texts, np.zeros(rows), texts[:, 0], parts=tuple(parts))


def scored_examples(data: TrainingData, table: "TextTable", name: str) -> Examples:
    """One row per scored pair; its score is the target.

    Args:
        data: Of the form `SCORED`.
        table: Where the texts get their numbers.
        name: The objective, for messages.

    Raises:
        InputError: No pair, or all scores are equal.
    """
    pairs = [ScoredPair(*row) for row in data.rows]
    if len({pair.score for pair in pairs}) < 2:
        found = f"{len(pairs):,} with the same score" if pairs else "none"
        raise InputError(
            f"the objective {name} needs pairs with different scores, found {found}; add data"
        )
    sides = ([pair.first for pair in pairs], [pair.second for pair in pairs])
    texts = np.array([table.numbers(side) for side in sides], dtype=np.int64).T
    return Examples(texts, np.array([pair.score for pair in pairs], np.float32), texts[:, 0])


class _Query(NamedTuple):
    """A text that is a query."""

    text: str


class TextTable:
    """Numbers distinct texts and holds their token ids.

    Args:
        encoder: Whose tokenizer, token limit and document prompt apply.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._numbers: dict[Row | _Query, int] = {}
        self.tokens: list[Tokens] = []

    def numbers(self, texts: Iterable[Row]) -> list[int]:
        """The number of each text, or pair of texts; new ones get the next numbers."""
        return [self._numbers.setdefault(text, len(self._numbers)) for text in texts]

    def queries(self, texts: Iterable[str]) -> list[int]:
        """As `numbers`, of queries: numbers of their own where the encoder has another prompt."""
        query, document = self._encoder.spec.prompts
        if query == document:
            return self.numbers(texts)
        rows = map(_Query, texts)
        return [self._numbers.setdefault(row, len(self._numbers)) for row in rows]

    def known(self, texts: Iterable[str]) -> set[int]:
        """The numbers of those texts that have one already."""
        return {self._numbers[text] for text in texts if text in self._numbers}

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """The texts of those numbers, without prompts, in a table of no pairs."""
        rows = list(self._numbers)
        found = (rows[number] for number in numbers)
        return [row.text if isinstance(row, _Query) else str(row) for row in found]

    def _prompted(self) -> list[Any]:
        """All rows with the prompts before them."""
        spec = self._encoder.spec
        rows = [row.text if isinstance(row, _Query) else row for row in self._numbers]
        texts = list(spec.prompted(rows))
        for number, row in enumerate(self._numbers):
            if isinstance(row, _Query):
                texts[number] = spec.prompts[0] + row.text
        return texts

    def tokenize(self) -> None:
        """Fills `tokens`, by number, for all texts so far; warns once of truncated ones."""
        encoder = self._encoder
        texts = self._prompted()
        self.tokens = encoder.spec.tokenize(texts)
        unknown = unknown_warning(
            sum(token.unknown for token in self.tokens),
            int(self.lengths.sum()) - len(texts) * len(encoder.spec.tokenizer.special),
            encoder.spec,
        )
        if unknown is not None:
            logger.warning("%s", f"training texts: {unknown}")
        truncated = sum(token.truncated > 0 for token in self.tokens)
        if truncated:
            logger.warning(
                "%d of %d distinct training %s are truncated to %d tokens; raise max_tokens "
                "(--max-tokens) where the base allows it",
                truncated,
                len(texts),
                "pairs" if encoder.spec.scores_pairs else "texts",
                encoder.max_tokens,
            )

    @property
    def lengths(self) -> Int64:
        """Token counts by number."""
        return np.array([len(token.ids) for token in self.tokens], dtype=np.int64)
