"""Two texts as one sequence of tokens: the form that a tokenizer has for pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.errors import InputError

Ids = npt.NDArray[np.int32]


class Probed(NamedTuple):
    """Token ids and token types of a text or pair."""

    ids: Sequence[int]
    types: Sequence[int]


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """The tokens that a tokenizer puts around and between the texts of a pair.

    Attributes:
        before: Before the first text.
        between: Between the two.
        after: After the second.
        types: Token types of these and of the texts, in order: before, first text, between, second
            text, after.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def join(self, first: Ids, second: Ids) -> tuple[Ids, npt.NDArray[np.int8]]:
        """Token ids and token types of a pair, from the tokens of its texts; each (T,)."""
        before, between, after = (
            np.array(part, np.int32) for part in (self.before, self.between, self.after)
        )
        parts = (before, first, between, second, after)
        types = [
            np.full(len(part), kind, np.int8) for part, kind in zip(parts, self.types, strict=True)
        ]
        ids = np.concatenate(parts)
        return ids, np.concatenate(types)


def probe_template(one: Probed, pair: Probed, name: str) -> PairTemplate:
    """The template of a tokenizer.

    Args:
        one: Its tokens of a text without special tokens.
        pair: Its tokens of that text twice, as a pair.
        name: The tokenizer's, for the message.

    Raises:
        InputError: It does not put its special tokens around and between the texts.
    """
    text, whole, types = list(one.ids), list(pair.ids), list(pair.types)
    size = len(text)
    starts = [at for at in range(len(whole) - size + 1) if size and whole[at : at + size] == text]
    for first in starts:
        for second in starts:
            if second >= first + size:
                gap = slice(first + size, second)
                end = slice(second + size, None)
                return PairTemplate(
                    tuple(whole[:first]),
                    tuple(whole[gap]),
                    tuple(whole[end]),
                    (
                        tuple(types[:first]),
                        types[first],
                        tuple(types[gap]),
                        types[second],
                        tuple(types[end]),
                    ),
                )
    raise InputError(
        f"the model's tokenizer ({name}) does not put its special tokens around and between the "
        "texts of a pair: not supported"
    )


def kept(first: int, second: int, room: int | None) -> tuple[int, int]:
    """How many tokens of each text of a pair are kept: the longer one is truncated first.

    Source: the strategy ``longest_first`` of the tokenizers library.

    Args:
        first: Tokens of the first text.
        second: Tokens of the second.
        room: For both; ``None`` for no limit.
    """
    if room is None or first + second <= room:
        return first, second
    short, long = sorted((first, second))
    long = max(short, room - short)
    if short + long > room:
        short = room // 2
        long = room - short
    return (long, short) if first > second else (short, long)


def truncated(ids: Ids, count: int, side: Literal["left", "right"]) -> Ids:
    """So many of the tokens of a text, without those of one side."""
    return ids[:count] if side == "right" else ids[len(ids) - count :]
