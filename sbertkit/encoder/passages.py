"""Long texts as passages that an encoder reads whole.

Where a text is divided is decided by the text around each place and not by what lies far before it,
so an edit changes the passages near it and no others.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sbertkit.arguments import whole_number
from sbertkit.data.text import has_surrogates, is_blank, repair_surrogates
from sbertkit.data.text_breaks import Rank
from sbertkit.encoder.slots import READ_CHARS, Grid, Slots, grid_of, ranks_of
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.tokenization import Tokenizer, text_chunks
from sbertkit.errors import InputError

_TOKENS_PER_CHAR = 33
"""No character has more: U+FDFA, normalized, in bytes."""
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_FILLER = "\u200b"
"""Stands behind a character that two surrogates are repaired to."""


class Span(NamedTuple):
    """A passage.

    Attributes:
        start: The character that it begins at.
        end: The character before which it ends.
        tokens: Its tokens within its text; 0 for a text that is not divided.
    """

    start: int
    end: int
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class PassageSplitter:
    """Divides texts into passages that a model reads whole.

    Attributes:
        tokenizer: The model's.
        room: Tokens that a passage may have, without special tokens and prompt.
        overlap: Tokens of the passage before that each may begin with; below half of `room`.

    Raises:
        InputError: No room, or an overlap that leaves too little of it.
        InputTypeError: A number that is not whole.
    """

    tokenizer: Tokenizer
    room: int
    overlap: int = 0

    def __post_init__(self) -> None:
        whole_number("room", self.room)
        whole_number("overlap (--overlap)", self.overlap, 0)
        if 2 * self.overlap >= self.room:
            raise InputError(
                f"overlap (--overlap) must be below half of the {self.room} tokens of a passage, "
                f"not {self.overlap}; choose at most {(self.room - 1) // 2}, or raise max_tokens "
                "(--max-tokens)"
            )

    @classmethod
    def of(cls, spec: EncoderSpec, overlap: int = 0) -> "PassageSplitter":
        """The splitter for the documents of an encoder; one without a limit splits nothing.

        Raises:
            InputError: The limit leaves no room beside the prompt, or too little for the overlap.
            InputTypeError: The overlap is no whole number.
        """
        tokenizer = spec.tokenizer
        if spec.max_tokens is None:
            return cls(tokenizer, sys.maxsize, overlap)
        taken = len(tokenizer.special)
        if spec.prompts.document:
            (prompt,) = tokenizer.tokenize([spec.prompts.document], None)
            taken = len(prompt.ids) + 1  # a text may have one more token behind it than alone
        if taken >= spec.max_tokens:
            raise InputError(
                f"max_tokens {spec.max_tokens} leaves no room for text beside {taken} special "
                f"tokens and tokens of the document prompt; choose at least {taken + 1}"
            )
        return cls(tokenizer, spec.max_tokens - taken, overlap)

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """The passages of each text in order, at least one; what fits is one as a whole.

        A passage is not blank and neither begins nor ends with white space. What lies between two
        is blank; where `overlap` is not 0 they may overlap.

        Raises:
            InputError: The tokenizer has no token for a text.
        """
        result = [[Span(0, len(text))] for text in texts]
        long = [row for row, text in enumerate(texts) if not self._surely_fits(text)]
        rows = iter(long)
        for chunk in text_chunks(texts[row] for row in long):
            tokens = self.tokenizer.locate([_without_surrogates(text) for text in chunk])
            found = {}
            for text, places, row in zip(chunk, tokens, rows, strict=False):  # rows for all chunks
                grid = grid_of(text, places, self.tokenizer.unknown_id)
                if len(grid.ids) > self.room and not is_blank(text):
                    grid = grid._replace(runs=grid.runs[self._read_in_pieces(text, grid)])
                    slots = Slots(grid, ranks_of(text, grid.starts))
                    found[row] = _Division(text, slots, self.room - self.overlap, self.overlap)
            self._divide_until_read_whole(list(found.values()))
            for row, division in found.items():
                result[row] = division.passages()
        return result

    def _surely_fits(self, text: str) -> bool:
        """Whether a text fits, whatever its tokens are; two more may stand around it."""
        return len(text) * (1 if text.isascii() else _TOKENS_PER_CHAR) + 2 <= self.room

    def _read_in_pieces(self, text: str, grid: Grid) -> list[bool]:
        """Whether each long word without a token has tokens in pieces, judged by its beginning."""
        beginnings = [text[start : start + READ_CHARS] for start in grid.starts[grid.runs[:, 0]]]
        special = len(self.tokenizer.special)
        return [
            2 * tokens.unknown < len(tokens.ids) - special
            for tokens in self.tokenizer.tokenize(
                [_without_surrogates(b) for b in beginnings], None
            )
        ]

    def _divide_until_read_whole(self, divisions: list["_Division"]) -> None:
        """Divides what has more tokens alone than within its text, since words were divided."""
        limit = self.room + len(self.tokenizer.special)
        while divisions:
            unread = [(division, *found) for division in divisions for found in division.unread()]
            texts = [
                repair_surrogates(division.text[passage.start : passage.end])
                for division, _, passage in unread
            ]
            too_long: dict[_Division, set[_Piece]] = {}
            for (division, piece, passage), tokens in zip(
                unread, self.tokenizer.tokenize(texts, limit), strict=True
            ):
                if tokens.truncated:
                    too_long.setdefault(division, set()).add(piece)
                else:
                    division.read.add(passage)
            for division, pieces in too_long.items():
                division.divide(pieces)
            divisions = list(too_long)


class _Piece(NamedTuple):
    """The slots of a passage without overlap: its first, and the first of the next."""

    first: int
    last: int


@dataclass(slots=True, eq=False)
class _Division:
    """A text that is divided at some of its slots.

    Attributes:
        text: The text.
        slots: Its slots.
        room: Slots of a piece.
        overlap: Slots that a passage may begin before its piece.
        pieces: What it is divided into, in order.
        read: Passages whose tokens alone fit.
        bare: Pieces without overlap.
        whole: Pieces that cannot be divided.
    """

    text: str
    slots: Slots
    room: int
    overlap: int
    pieces: list[_Piece] = field(init=False)
    read: set[Span] = field(default_factory=set)
    bare: set[_Piece] = field(default_factory=set)
    whole: set[_Piece] = field(default_factory=set)

    def __post_init__(self) -> None:
        bounds = [0, *self.slots.strongest(2 * self.room // 5), len(self.slots.grid.ids)]
        self.pieces = [piece for pair in pairwise(bounds) for piece in self._fitting(_Piece(*pair))]

    def passages(self) -> list[Span]:
        """What the pieces are of the text."""
        return [passage for _, passage in self._passages()]

    def unread(self) -> list[tuple[_Piece, Span]]:
        """The pieces whose tokens alone are not known to fit."""
        return [
            (piece, passage)
            for piece, passage in self._passages()
            if passage not in self.read and piece not in self.whole
        ]

    def divide(self, too_long: set[_Piece]) -> None:
        """Takes the overlap from pieces, or else divides them where that is possible."""
        pieces: list[_Piece] = []
        for piece in self.pieces:
            slot = None
            if piece in too_long and (piece in self.bare or not self.overlap):
                slot = self.slots.strongest_within(*piece)
                if slot is None:
                    self.whole.add(piece)
            if slot is None:
                pieces.append(piece)
            else:
                pieces += self._fitting(_Piece(piece.first, slot))
                pieces += self._fitting(_Piece(slot, piece.last))
        self.pieces = pieces
        self.bare |= too_long

    def _fitting(self, piece: _Piece) -> Iterator[_Piece]:
        first, last = piece
        slot = None
        if last - first > self.room or self.slots.unreadable(first, last):
            slot = self.slots.strongest_within(first, last)
        if slot is None:
            yield piece
        else:
            yield from self._fitting(_Piece(first, slot))
            yield from self._fitting(_Piece(slot, last))

    def _passages(self) -> Iterator[tuple[_Piece, Span]]:
        before = 0
        starts = self.slots.grid.starts
        for piece in self.pieces:
            first, last = piece
            end = int(starts[last])
            if not is_blank(self.text[starts[first] : end]):
                begin = self._with_overlap(piece, before)
                start = int(starts[begin])
                part = self.text[start:end]
                span = Span(end - len(part.lstrip()), start + len(part.rstrip()), last - begin)
                yield piece, span
            before = first

    def _with_overlap(self, piece: _Piece, before: int) -> int:
        """The slot that a passage begins at, no earlier than the one before begins."""
        slot = piece.first
        if self.overlap and piece not in self.bare:
            earliest = max(before, slot - self.overlap)
            for wanted in (Rank.SENTENCE, Rank.WORD, Rank.TOKEN):
                found = np.flatnonzero(self.slots.ranks[earliest:slot] >= wanted)
                if found.size:
                    return earliest + int(found[0])
        return slot


def _without_surrogates(text: str) -> str:
    """The text repaired in as many characters as it has."""

    def repaired(match: re.Match[str]) -> str:
        return repair_surrogates(match[0]).ljust(len(match[0]), _FILLER)

    return _SURROGATES.sub(repaired, text) if has_surrogates(text) else text
