"""Which tokens belong to one word, for any tokenizer and script."""

import re
from typing import Any

import numpy as np

from sbertkit.training.examples import Int64

BEGINS = ("\u0120", "\u2581")
"""Marks of a blank before a token: of byte-level BPE, and of SentencePiece."""
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
MAX_WORD = 16
"""Scripts without blanks make one word of a sentence for some tokenizers: a longer word is one per
token."""


def word_numbers(encoding: Any, text: str) -> Int64:
    """The number of each token's word, rising, (T,).

    Words are those of the tokenizer's own pre-tokenization, which a blank always ends; runs of
    Chinese characters are divided into the words that rjieba finds.

    Args:
        encoding: What the `tokenizers` library gave for the text, without special tokens.
        text: The text itself.
    """
    if not len(encoding):
        return np.empty(0, np.int64)
    chinese = _chinese_words(text)
    numbers, word, last = [], -1, None
    for token, number, (start, end) in zip(
        encoding.tokens, encoding.word_ids, encoding.offsets, strict=True
    ):
        while start < end and text[start].isspace():
            start += 1
        key = (chinese.get(start), number)
        if chinese.get(start) is not None:
            key = (chinese[start], None)
        if key != last or (key[0] is None and token.startswith(BEGINS)):
            word += 1
        last = key
        numbers.append(word)
    return _without_long(np.array(numbers, np.int64))


def _chinese_words(text: str) -> dict[int, int]:
    """The number of the word of each Chinese character, by its place."""
    found: dict[int, int] = {}
    runs = list(_HAN.finditer(text))
    if not runs:
        return found
    import rjieba  # its dictionary takes 0.1 s

    count = 0
    for run in runs:
        start = run.start()
        for word in rjieba.cut(run[0]):
            found.update(dict.fromkeys(range(start, start + len(word)), count))
            start += len(word)
            count += 1
    return found


def _without_long(numbers: Int64) -> Int64:
    """The same where each token of a word that is too long is a word of its own."""
    long = np.bincount(numbers)[numbers] > MAX_WORD
    starts = np.r_[True, (numbers[1:] != numbers[:-1]) | long[1:]]
    return np.cumsum(starts) - 1
