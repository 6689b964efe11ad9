"""Token ids to padded batches: similar lengths together, as many as a token budget allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sbertkit.encoder.tokenization import SpecialTokens, Tokens

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """A padded batch.

    Attributes:
        rows: Places of the texts in the list that was batched, (B,).
        input_ids: Token ids, (B, T).
        attention_mask: 1 for real tokens, 0 for padding, (B, T).
        token_type_ids: Token types, (B, T), for models that take them.
    """

    rows: Int64
    input_ids: Int64
    attention_mask: Int64
    token_type_ids: Int64 | None


def plan_batches(lengths: Sequence[int], budget: int) -> list[Int64]:
    """Rows of each batch, longest texts first; a batch padded to its longest fits the budget.

    Args:
        lengths: Token counts.
        budget: Tokens per batch, padding included; a longer text has a batch of its own.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches = []
    start = 0
    while start < len(order):
        rows = max(1, budget // max(1, lengths[order[start]]))
        batches.append(order[start : start + rows])
        start += rows
    return batches


@dataclass(frozen=True, slots=True)
class BatchCollator:
    """Builds padded batches as a model wants them.

    Attributes:
        pad_id: The token for padding.
        side: Where it goes.
        special: The tokens around every text.
        uses_token_types: Whether the model has an input for token types.
        padded_to: The model itself pads a batch to a multiple of so many tokens.
    """

    pad_id: int
    side: Literal["left", "right"]
    special: SpecialTokens
    uses_token_types: bool
    padded_to: int = 1

    def plan(self, lengths: Sequence[int], budget: int) -> list[Int64]:
        """Rows of each batch; see `plan_batches`, with the padding by the model counted."""
        return plan_batches([length + -length % self.padded_to for length in lengths], budget)

    def collate(self, tokens: Sequence[Tokens], rows: Int64) -> Batch:
        """The batch of those rows."""
        width = max(len(tokens[row].ids) for row in rows)
        input_ids = np.full((len(rows), width), self.pad_id, dtype=np.int64)
        attention_mask = np.zeros((len(rows), width), dtype=np.int64)
        token_type_ids = np.zeros_like(attention_mask) if self.uses_token_types else None
        for place, row in enumerate(rows):
            ids = tokens[row].ids
            start = width - len(ids) if self.side == "left" else 0
            input_ids[place, start : start + len(ids)] = ids
            attention_mask[place, start : start + len(ids)] = 1
            if token_type_ids is not None:
                types = tokens[row].types
                token_type_ids[place, start : start + len(ids)] = (
                    self._types_of(len(ids)) if types is None else types
                )
        return Batch(rows, input_ids, attention_mask, token_type_ids)

    def _types_of(self, count: int) -> list[int]:
        special = self.special
        inner = count - len(special)
        return [*special.before_types, *([special.text_type] * inner), *special.after_types]
