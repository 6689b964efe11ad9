"""The texts of a corpus as token ids, in pieces that fit a model, with the word of each token."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from sbertkit.encoder import Encoder
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.tokenization import Tokens, text_chunks
from sbertkit.errors import InputError
from sbertkit.training.examples import Int64, TextTable
from sbertkit.training.pretraining.words import word_numbers

_SEGMENT = re.compile(r"(?s).{1,100000}(?:\s|$)|.{1,100000}")
"""What the tokenizer gets of a long text at once, up to a blank where there is one."""
_ROOM = 512
"""Tokens per piece of a model without a limit."""
SPECIAL = -1
"""The word of special tokens."""
PADDING = -1
"""In place of a token id, where a text has no more tokens."""


class _Bare(NamedTuple):
    """Tokens without the special ones around them, and their words."""

    ids: Int64
    words: Int64


class Pieces(TextTable):
    """Pieces of texts, numbered; a text that is longer than the model reads makes several.

    Args:
        encoder: Whose tokenizer and token limit apply; no prompt is put before.
        pack: Join texts to pieces that are as long as the model reads, with the token between
            them that ends a text.

    Attributes:
        encoder: The same.
        tokens: Token ids with the special ones, by number.
        words: The number of each token's word, `SPECIAL` for special tokens, by number.
        special: The tokens around every text.
        padder: Builds padded batches.

    Raises:
        InputError: The tokenizer does not say where its tokens are.
    """

    def __init__(self, encoder: Encoder, *, pack: bool = False) -> None:
        super().__init__(encoder)
        self.encoder = encoder
        self.words: list[Int64] = []
        self.padder = encoder.spec.collator
        self._pack = pack
        self.special = encoder.spec.tokenizer.special
        self._room = (encoder.max_tokens or _ROOM) - len(self.special)
        self._backend: Any = getattr(encoder.spec.tokenizer.hf, "backend_tokenizer", None)
        if self._backend is None:
            raise InputError(
                f"the tokenizer of {encoder.options.model} is written in Python and does not say "
                "where its tokens are; choose a base with a tokenizer.json"
            )

    def read(self, texts: Iterable[str]) -> Int64:
        """The numbers of the pieces of further texts, in their order."""
        first = len(self.tokens)
        whole = self._tokenized(texts)
        pieces = self._packed(whole) if self._pack else (p for one in whole for p in self._cut(one))
        for piece in pieces:
            before, after = self.special.before, self.special.after
            ids = np.concatenate((before, piece.ids, after)).astype(np.int32)
            outside = (np.full(len(one), SPECIAL) for one in (before, after))
            self.tokens.append(Tokens(ids, 0))
            self.words.append(np.concatenate((next(outside), piece.words, next(outside))))
        return np.arange(first, len(self.tokens))

    def bare(self, numbers: Int64, *, end: bool = False) -> Int64:
        """Token ids without the special ones around them, `PADDING` at the end, (B, L).

        Args:
            numbers: The pieces.
            end: Whether the token that ends a text is among them, where the tokenizer has one.
        """
        before, after = len(self.special.before), len(self.special.after)
        kept = after - 1 if end and after else after
        rows = [self.tokens[number].ids for number in numbers]
        rows = [ids[before : len(ids) - kept] for ids in rows]
        padded = np.full((len(rows), max(map(len, rows))), PADDING, np.int64)
        for place, ids in enumerate(rows):
            padded[place, : len(ids)] = ids
        return padded

    def tokenize(self) -> None:
        """Nothing: `read` has done it."""

    def _tokenized(self, texts: Iterable[str]) -> Iterator[_Bare]:
        """The tokens of each text that has any."""
        for text in texts:
            parts = []
            for chunk in text_chunks(match[0] for match in _SEGMENT.finditer(text)):
                with library_errors("the model's tokenizer fails on a text"):
                    found = self._backend.encode_batch(chunk, add_special_tokens=False)
                for encoding, part in zip(found, chunk, strict=True):
                    ids = np.array(encoding.ids, np.int64)
                    parts.append(_Bare(ids, word_numbers(encoding, part)))
            one = _joined(parts)
            if len(one.ids):
                yield one

    def _cut(self, whole: _Bare) -> Iterator[_Bare]:
        """A text in pieces that the model reads; a word is divided only where it is longer."""
        start, room = 0, self._room
        while len(whole.ids) - start > room:
            end = start + room
            first = int(np.searchsorted(whole.words, whole.words[end]))
            end = first if first > start else end
            yield _Bare(whole.ids[start:end], whole.words[start:end])
            start = end
        yield _Bare(whole.ids[start:], whole.words[start:])

    def _packed(self, texts: Iterable[_Bare]) -> Iterator[_Bare]:
        """Pieces full of texts.

        Source: Liu et al. 2019, RoBERTa, section 4.2, FULL-SENTENCES.
        """
        end = self.special.after[:1]
        between = _Bare(np.array(end, np.int64), np.full(len(end), SPECIAL))
        held: list[_Bare] = []
        for text in texts:
            for piece in self._cut(text):
                used = sum(len(one.ids) for one in held) + len(between.ids)
                if held and used + len(piece.ids) > self._room:
                    yield _joined(held)
                    held = []
                held += [between, piece] if held else [piece]
        if held:
            yield _joined(held)


def _joined(parts: list[_Bare]) -> _Bare:
    """Parts one after another; words of different parts have different numbers."""
    if not parts:
        return _Bare(np.empty(0, np.int64), np.empty(0, np.int64))
    words, count = [], 0
    for part in parts:
        inside = part.words != SPECIAL
        own = np.full(len(part.words), SPECIAL)
        if inside.any():
            low = int(part.words[inside].min())
            own[inside] = part.words[inside] - low + count
            count = int(own.max()) + 1
        words.append(own)
    return _Bare(np.concatenate([part.ids for part in parts]), np.concatenate(words))
