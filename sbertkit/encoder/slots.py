"""Where between its tokens a text can be divided, and how strong each place is.

Slot k lies before token k. Its strength is the rank of the break there and, among equal ranks, a
hash of the tokens around it: it does not change when the text is edited elsewhere.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.data.text_breaks import Rank, Ranks, text_breaks
from sbertkit.encoder.tokenization import TokenPlaces

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

READ_CHARS = 100
"""WordPiece has one unknown token for a word that is longer, whatever it says."""
_BEFORE, _AFTER = 4, 8
"""Tokens around a slot that its hash is of."""
_PRIME = np.uint64(0x9E37_79B9_7F4A_7C15)
_HASH_BITS = np.uint64(32)
_END = np.uint64(2**64 - 1)
_CHUNK_SLOTS = 1 << 18
"""Slots whose strengths are known at once."""
_JOINED = frozenset(
    chr(point)
    for points in (
        range(0x1160, 0x1200),  # Hangul letters that are no first of a syllable
        range(0xDC00, 0xE000),  # second halves of pairs of surrogates
        range(0x1F1E6, 0x1F200),  # letters of flags
        range(0x1F3FB, 0x1F400),  # skin colors
        range(0xE0020, 0xE0080),  # tags
    )
    for point in points
)
_JOINER = "\u200d"


class Grid(NamedTuple):
    """The slots of a text of T tokens; the last one is the end of the text.

    Attributes:
        ids: Of the tokens; of a long word without a token, its characters, (T,).
        starts: The character that each slot comes before, (T + 1,).
        runs: First slot and end of each long word without a token that is read in pieces, (R, 2).
    """

    ids: Int32
    starts: Int32
    runs: Int64


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots and the `Rank` of the break at each, (T + 1,)."""

    grid: Grid
    ranks: Ranks

    def strongest(self, radius: int) -> Iterator[int]:
        """The slots that are stronger than all within `radius` slots; the text's ends are stronger.

        Of equal ones the first is taken, and then none for twice the distance.
        """
        total = len(self.ranks)
        last, last_strength = -2 * radius - 1, np.uint64(0)
        for first in range(0, total, _CHUNK_SLOTS):
            low = max(0, first - radius)
            strength = self._strength(low, min(total, first + _CHUNK_SLOTS + radius))
            peaks = np.flatnonzero((strength == _window_max(strength, radius)) & (strength > 0))
            for slot in peaks[np.searchsorted(peaks, first - low) :]:
                if low + slot >= first + _CHUNK_SLOTS or strength[slot] == _END:
                    continue
                apart = radius * (2 if strength[slot] == last_strength else 1)
                if low + slot - last > apart:
                    last, last_strength = low + int(slot), strength[slot]
                    yield last

    def strongest_within(self, first: int, last: int) -> int | None:
        """The strongest slot in the middle third between two, or else anywhere between them."""
        third = (last - first) // 3
        for low, high in ((max(first + 1, first + third), last - third), (first + 1, last)):
            high = min(high + 1, last)
            strength = self._strength(low, high)
            if strength.size and strength.max() > 0:
                return low + int(strength.argmax())
        return None

    def unreadable(self, first: int, last: int) -> bool:
        """Whether most of what lies between two slots is long words that need to be divided."""
        if not len(self.grid.runs):
            return False
        low, high = (
            np.searchsorted(self.grid.runs[:, 1], first, "right"),
            np.searchsorted(self.grid.runs[:, 0], last),
        )
        within = self.grid.runs[low:high].clip(first, last)
        lengths = within[:, 1] - within[:, 0]
        return bool(2 * lengths[lengths > READ_CHARS].sum() > last - first)

    def _strength(self, first: int, last: int) -> UInt64:
        """The strength of the slots from `first` to before `last`."""
        low, high = first - _BEFORE, last + _AFTER
        ids = np.zeros(high - low, np.uint64)
        known = self.grid.ids[max(low, 0) : high]
        ids[max(-low, 0) : max(-low, 0) + len(known)] = known
        mixed = np.zeros(last - first, np.uint64)
        for shift in range(_BEFORE + _AFTER):
            mixed ^= ids[shift : shift + len(mixed)]
            mixed *= _PRIME
        strength = self.ranks[first:last].astype(np.uint64) << _HASH_BITS | mixed >> _HASH_BITS
        strength[self.ranks[first:last] == Rank.NONE] = 0
        if first == 0:
            strength[0] = _END
        if last == len(self.ranks):
            strength[-1] = _END
        return strength


def grid_of(text: str, tokens: TokenPlaces, unknown_id: int | None) -> Grid:
    """The slots between tokens, and those within long words that `unknown_id` stands for."""
    ids, starts = tokens
    ends = np.append(starts[1:], len(text))
    pieces: list[tuple[Int32, Int32]] = []
    runs: list[tuple[int, int]] = []
    done = added = 0
    for token in np.flatnonzero((ends - starts > READ_CHARS) & (ids == unknown_id)).tolist():
        start = int(starts[token])
        word = text[start : ends[token]].rstrip()
        if len(word) > READ_CHARS:
            pieces.append((ids[done:token], starts[done:token]))
            pieces.append((_codes(word), np.arange(start, start + len(word), dtype=np.int32)))
            runs.append((token + added, token + added + len(word)))
            done = token + 1
            added += len(word) - 1
    pieces.append((ids[done:], starts[done:]))
    ids, starts = (np.concatenate(column) for column in zip(*pieces, strict=True))
    starts = np.append(starts, np.int32(len(text)))
    starts[0] = 0
    return Grid(ids, starts, np.array(runs, np.int64).reshape(-1, 2))


def ranks_of(text: str, starts: Int32) -> Ranks:
    """The `Rank` of the break at each slot."""
    ranks = np.full(len(starts), Rank.TOKEN, np.uint8)
    breaks = text_breaks(text)
    ranks[np.searchsorted(starts, breaks.places)] = breaks.ranks
    if not text.isascii():
        ranks[_joined(text, starts)] = Rank.CLUSTER
    ranks[1:][starts[1:] == starts[:-1]] = Rank.NONE
    return ranks


def _codes(text: str) -> Int32:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<i4")


def _joined(text: str, starts: Int32) -> npt.NDArray[np.bool_]:
    """Which slots would divide what is seen as one character."""
    codes = _codes(text)
    first = codes[np.minimum(starts, len(text) - 1)]
    joined = [code for code in np.unique(first).tolist() if _is_joined(chr(code))]
    behind: npt.NDArray[np.bool_] = codes[starts - 1] == ord(_JOINER)
    return behind | np.isin(first, joined)


def _is_joined(char: str) -> bool:
    return char in _JOINED or char == _JOINER or unicodedata.category(char).startswith("M")


def _window_max(values: UInt64, radius: int) -> UInt64:
    """The greatest of the values within `radius` on either side of each."""
    found = np.pad(values, radius)
    width, size = 1, 2 * radius + 1
    while width < size:
        step = min(width, size - width)
        found = np.maximum(found[:-step], found[step:])
        width += step
    return found
