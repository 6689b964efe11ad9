"""The texts of a corpus as token ids, in pieces that fit a model, with the word of each token."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sbertkit.encoder import Encoder
from sbertkit.encoder.batching import BatchCollator
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.tokenization import Tokens, text_chunks
from sbertkit.errors import InputError
from sbertkit.training.examples import Int64, TextTable
from sbertkit.training.pretraining.draws import Draws
from sbertkit.training.pretraining.words import word_numbers

_SEGMENT = re.compile(r"(?s).{1,100000}(?:\s|$)|.{1,100000}")
"""What the tokenizer gets of a long text at once, up to a blank where there is one."""
ROOM = 512
"""Tokens per piece of a model without a limit."""
SPECIAL = -1
"""The word of special tokens."""
PADDING = -1
"""In place of a token id, where a text has no more tokens."""


class Bare(NamedTuple):
    """Tokens without the special ones around them, and their words."""

    ids: npt.NDArray[np.integer]
    words: Int64


class Example(NamedTuple):
    """What a task gets of a piece.

    Attributes:
        ids: Token ids with the special ones, (T,).
        words: The number of each token's word, `SPECIAL` for special tokens, (T,).
        types: Token types of a pair of segments, (T,); None for a text, where they are the
            tokenizer's.
        label: The class of a pair of segments.
    """

    ids: npt.NDArray[np.int32]
    words: Int64
    types: npt.NDArray[np.int8] | None = None
    label: int = 0


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
        left_out: How many texts are no examples, by the reason.

    Raises:
        InputError: The tokenizer does not say where its tokens are.
    """

    def __init__(self, encoder: Encoder, *, pack: bool = False) -> None:
        super().__init__(encoder)
        self.encoder = encoder
        self.words: list[Int64] = []
        self.padder = encoder.spec.collator
        self.left_out: dict[str, int] = {}
        self._pack = pack
        self.special = encoder.spec.tokenizer.special
        self._room = (encoder.max_tokens or ROOM) - len(self.special)
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
        cuts = (piece for one in whole for piece in cut(one, self._room))
        for piece in self._packed(whole) if self._pack else cuts:
            self._add(piece, self.special.before, self.special.after)
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

    def example(self, number: int, draws: Draws) -> Example:
        """A piece as it is in an epoch."""
        return Example(self.tokens[number].ids, self.words[number])

    def check_two_tokens(self, task: str) -> None:
        """Nothing, if some piece has two tokens, of which one can be predicted from the other.

        Raises:
            InputError: None has.
        """
        if all((words != SPECIAL).sum() < 2 for words in self.words):
            raise InputError(
                f"the task {task} predicts tokens from others, but no text has two; take longer "
                "texts"
            )

    def _add(self, piece: Bare, before: Sequence[int], after: Sequence[int]) -> None:
        """Numbers a piece, with the special tokens around it."""
        ids = np.concatenate((before, piece.ids, after)).astype(np.int32)
        outside = (np.full(len(one), SPECIAL) for one in (before, after))
        self.tokens.append(Tokens(ids, 0))
        self.words.append(np.concatenate((next(outside), piece.words, next(outside))))

    def tokenize(self) -> None:
        """Nothing: `read` has done it."""

    def _tokenized(self, texts: Iterable[str]) -> Iterator[Bare]:
        """The tokens of each text that has any."""
        for text in texts:
            parts = []
            for chunk in text_chunks(match[0] for match in _SEGMENT.finditer(text)):
                with library_errors("the model's tokenizer fails on a text"):
                    found = self._backend.encode_batch(chunk, add_special_tokens=False)
                for encoding, part in zip(found, chunk, strict=True):
                    ids = np.array(encoding.ids, np.int64)
                    parts.append(Bare(ids, word_numbers(encoding, part)))
            one = joined(parts)
            if len(one.ids):
                yield one

    def _packed(self, texts: Iterable[Bare]) -> Iterator[Bare]:
        """Pieces full of texts.

        Source: Liu et al. 2019, RoBERTa, section 4.2, FULL-SENTENCES.
        """
        end = self.special.after[:1]
        between = Bare(np.array(end, np.int64), np.full(len(end), SPECIAL))
        held: list[Bare] = []
        for text in texts:
            for piece in cut(text, self._room):
                used = sum(len(one.ids) for one in held) + len(between.ids)
                if held and used + len(piece.ids) > self._room:
                    yield joined(held)
                    held = []
                held += [between, piece] if held else [piece]
        if held:
            yield joined(held)


def padded(examples: Sequence[Example], padder: BatchCollator) -> dict[str, Tensor]:
    """The examples as a batch: ``input_ids``, ``mask`` and, where models take them, ``types``."""
    tokens = [Tokens(one.ids, 0, types=one.types) for one in examples]
    batch = padder.collate(tokens, np.arange(len(tokens)))
    found = {"input_ids": batch.input_ids, "mask": batch.attention_mask}
    if batch.token_type_ids is not None:
        found["types"] = batch.token_type_ids
    return {name: torch.from_numpy(array) for name, array in found.items()}


def cut(whole: Bare, room: int) -> Iterator[Bare]:
    """A text in pieces of at most `room` tokens; a word is divided only where it is longer."""
    start = 0
    while len(whole.ids) - start > room:
        end = start + room
        first = int(np.searchsorted(whole.words, whole.words[end]))
        end = first if first > start else end
        yield Bare(whole.ids[start:end], whole.words[start:end])
        start = end
    yield Bare(whole.ids[start:], whole.words[start:])


def joined(parts: Sequence[Bare]) -> Bare:
    """Parts one after another; words of different parts have different numbers."""
    if not parts:
        return Bare(np.empty(0, np.int64), np.empty(0, np.int64))
    words, count = [], 0
    for part in parts:
        inside = part.words != SPECIAL
        own = np.full(len(part.words), SPECIAL)
        if inside.any():
            low = int(part.words[inside].min())
            own[inside] = part.words[inside] - low + count
            count = int(own.max()) + 1
        words.append(own)
    return Bare(np.concatenate([part.ids for part in parts]), np.concatenate(words))
