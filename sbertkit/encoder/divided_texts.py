"""Long texts divided into passages for an encoder, and put together again with their vectors."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.passages import PassageSplitter, Span
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.metrics.cosine import unit_rows

_TEXTS_PER_CALL = 256
_CHARS_PER_CALL = 500_000


class DividedText(NamedTuple):
    """A text and its passages."""

    text: str
    passages: Sequence[Span]

    def parts(self) -> Iterator[str]:
        """The texts of its passages."""
        return (self.text[start:end] for start, end, *_ in self.passages)


def divide(splitter: PassageSplitter, texts: Iterable[str]) -> Iterator[DividedText]:
    """The passages of texts, of which some are read ahead."""
    chunk: list[str] = []
    chars = 0
    for text in texts:
        chunk.append(text)
        chars += len(text)
        if len(chunk) == _TEXTS_PER_CALL or chars >= _CHARS_PER_CALL:
            yield from map(DividedText, chunk, splitter.split(chunk))
            chunk, chars = [], 0
    yield from map(DividedText, chunk, splitter.split(chunk))


class TextDivider:
    """Gives the passages of texts, and takes their vectors, in the same order."""

    def __init__(self, spec: EncoderSpec, overlap: int = 0) -> None:
        self._splitter = PassageSplitter.of(spec, overlap)
        self._normalizes = spec.normalizes
        self._waiting: deque[DividedText] = deque()

    def passages(self, texts: Iterable[str]) -> Iterator[str]:
        """The passages of the texts, in order."""
        for divided in divide(self._splitter, texts):
            self._waiting.append(divided)
            yield from divided.parts()

    def joined(self, chunks: Iterable[Vectors]) -> Iterator[tuple[list[DividedText], Vectors]]:
        """Texts all of whose passages have a vector by now, and these vectors (n, dim).

        Args:
            chunks: Vectors of the passages; each gives one result, which may be empty.
        """
        left: list[Vectors] = []
        for chunk in chunks:
            known = np.concatenate([*left, chunk])
            texts: list[DividedText] = []
            row = 0
            while self._waiting and row + len(self._waiting[0].passages) <= len(known):
                texts.append(self._waiting.popleft())
                row += len(texts[-1].passages)
            left = [known[row:].copy()]
            yield texts, known[:row]

    def vectors(
        self, chunks: Iterable[Vectors], *, mean: bool
    ) -> Iterator[tuple[Vectors, list[int]]]:
        """Vectors (n, dim), and how many of them each text has: one if the `mean` is wanted.

        Args:
            chunks: As for `joined`.
            mean: See `means`.
        """
        if mean:
            for vectors in self.means(chunks):
                yield vectors, [1] * len(vectors)
            return
        for texts, vectors in self.joined(chunks):
            yield vectors, [len(text.passages) for text in texts]

    def means(self, chunks: Iterable[Vectors]) -> Iterator[Vectors]:
        """Vectors (n, dim) of texts: the mean of those of their passages, weighted by their tokens.

        Where the encoder normalizes its vectors, the mean gets unit length, too. Source: Pappagari
        et al., Hierarchical Transformers for Long Document Classification, 2019, who pool the
        vectors of segments.

        Args:
            chunks: As for `joined`.
        """
        for texts, vectors in self.joined(chunks):
            if len(vectors) == len(texts):
                yield vectors
                continue
            counts = np.array([len(text.passages) for text in texts])
            weights = np.array([max(1, one.tokens) for text in texts for one in text.passages])
            starts = np.cumsum(counts) - counts
            sums = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
            means = (sums / np.add.reduceat(weights, starts)[:, None]).astype(np.float32)
            if self._normalizes:
                means[counts > 1] = unit_rows(means[counts > 1])
            yield means
