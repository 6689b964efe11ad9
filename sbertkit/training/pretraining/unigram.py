"""The pieces of a unigram language model, from words and their counts: always the same ones.

The trainer of `tokenizers` sums floating-point numbers in the order of a hash table, so that equal
pieces are kept or dropped by chance. Here all sums are of whole numbers.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import tokenizers
from tokenizers import models

MAX_PIECE = 16
"""Characters."""
_SHRINKING = 0.75
"""Share of the pieces that are kept at once."""
_SURPLUS = 1.1
"""Before the last choice there are so many times as many as are wanted."""
_ITERATIONS = 2
"""Estimates of the probabilities before pieces are dropped."""
_WORDS = 20_000
"""Words that are segmented at once."""
_UNKNOWN = "\0"

Pieces = dict[str, float]
"""Log probabilities."""
Counts = dict[str, int]


def train_unigram(words: Mapping[str, int], seeds: Sequence[str], size: int) -> Pieces:
    """So many pieces at most, and their log probabilities; single characters are never dropped.

    Probabilities are estimated from the best segmentation of each word, and pieces dropped whose
    loss lowers the likelihood least.

    Source: Kudo 2018, Subword Regularization, section 3.2; the loss as in
        https://github.com/google/sentencepiece, 2018, ``trainer::Trainer::PruneSentencePieces``.

    Args:
        words: How often each word occurs.
        seeds: Pieces to choose from, with all characters of the words among them.
        size: How many are wanted; all characters, where they are more.
    """
    pieces = _first_estimate(words, seeds)
    size = max(size, sum(len(piece) == 1 for piece in pieces))
    nearly = int(_SURPLUS * size)
    while True:
        for _ in range(_ITERATIONS):
            counts = _counts(words, pieces)
            pieces = _estimated(counts)
        if len(pieces) <= nearly:
            return _kept(pieces, counts, size)
        pieces = _kept(pieces, counts, max(nearly, int(_SHRINKING * len(pieces))))


def _first_estimate(words: Mapping[str, int], seeds: Sequence[str]) -> Pieces:
    """From how often each seed is a part of a word, times its length."""
    wanted, found = set(seeds), Counter[str]()
    for word, count in words.items():
        for part in _parts(word):
            if part in wanted:
                found[part] += count
    total = sum(count * len(part) for part, count in found.items())
    return {
        seed: math.log(found[seed] * len(seed) / total)
        for seed in dict.fromkeys(seeds)
        if found[seed]
    }


def _parts(word: str) -> Iterator[str]:
    for start in range(len(word)):
        for end in range(start + 1, min(len(word), start + MAX_PIECE) + 1):
            yield word[start:end]


def _counts(words: Mapping[str, int], pieces: Pieces) -> Counts:
    """How often each piece is in the best segmentations of all words."""
    vocabulary = [(_UNKNOWN, 0.0), *pieces.items()]
    backend = tokenizers.Tokenizer(models.Unigram(vocabulary, unk_id=0))
    found = np.zeros(len(vocabulary))  # whole numbers, which are exact
    rest = iter(words.items())
    while chunk := list(islice(rest, _WORDS)):
        rows = [one.ids for one in backend.encode_batch_fast([word for word, _ in chunk])]
        weights = np.repeat([count for _, count in chunk], [len(ids) for ids in rows])
        found += np.bincount(np.concatenate(rows), weights, len(vocabulary))
    return dict(zip(pieces, map(int, found[1:]), strict=True))


def _estimated(counts: Counts) -> Pieces:
    """Those that occur, and characters, with new log probabilities."""
    total = math.log(sum(counts.values()))
    return {
        piece: _log(count) - total for piece, count in counts.items() if count or len(piece) == 1
    }


def _kept(pieces: Pieces, counts: Counts, size: int) -> Pieces:
    """So many pieces, without those whose loss lowers the likelihood least."""
    total = sum(counts.values())
    losses = {}
    for piece in pieces:
        if len(piece) == 1:
            continue
        count, parts = counts[piece], _segmented(piece, pieces)
        after = math.log(total + count * (len(parts) - 1))
        instead = sum(_log(counts[part] + count) - after for part in parts)
        losses[piece] = count * (_log(count) - math.log(total) - instead)
    ranked = sorted(losses, key=lambda piece: (-losses[piece], piece))
    dropped = {*ranked[max(0, size - (len(pieces) - len(losses))) :]}
    return {piece: score for piece, score in pieces.items() if piece not in dropped}


def _log(count: int) -> float:
    """The logarithm of a count; of none, less than that of one."""
    return math.log(count or 0.5)


def _segmented(piece: str, pieces: Pieces) -> list[str]:
    """The best segmentation of a piece into others."""
    best = [0.0] + [-math.inf] * len(piece)
    before = [0] * (len(piece) + 1)
    for end in range(1, len(piece) + 1):
        for start in range(end):
            score = pieces.get(piece[start:end])
            if score is not None and end - start < len(piece) and best[start] + score > best[end]:
                best[end], before[end] = best[start] + score, start
    parts, end = [], len(piece)
    while end:
        parts.append(piece[before[end] : end])
        end = before[end]
    return parts[::-1]
