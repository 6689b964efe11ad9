"""A seeded sample of a corpus's texts, drawn in one pass and in bounded memory."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbertkit.arguments import whole_number
from sbertkit.data.corpora import read_corpus
from sbertkit.data.document import Document
from sbertkit.data.documents import ReadOptions, ReadReport
from sbertkit.data.iterables import documents_from
from sbertkit.errors import InputError, InputTypeError

logger = logging.getLogger(__name__)
_DEFAULT = ReadOptions()

Texts = str | os.PathLike[str] | Iterable[str | Document | Mapping[str, Any] | tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Texts drawn from a corpus.

    Attributes:
        texts: Distinct ones, in the order of the corpus.
        documents: How many documents the corpus has.
    """

    texts: tuple[str, ...]
    documents: int


def sample_texts(
    corpus: Texts, count: int, *, seed: int = 0, read: ReadOptions = _DEFAULT
) -> Sample:
    """At most `count` texts, each document as likely as any other; repeated texts count once.

    Args:
        corpus: A path for `read_corpus`, or an iterable of texts, documents, mappings or pairs.
        count: How many texts at most.
        seed: Of the draw.
        read: How a path is read.

    Raises:
        InputError: A corpus that cannot be read, without a text, or `count` below 1.
        InputTypeError: No corpus.
        MissingFile: The path does not exist.
    """
    count = whole_number("count", count)
    generator = np.random.default_rng(seed)
    drawn: dict[int, str] = {}
    places: list[int] = []
    documents = 0
    report = ReadReport()
    for place, text in enumerate(_texts(corpus, read, report)):
        documents += 1
        if len(places) < count:
            places.append(place)
            drawn[place] = text
            continue
        # Algorithm R (Vitter 1985): the n-th document is in a sample of k with probability k / n.
        slot = int(generator.integers(documents))
        if slot < count:
            del drawn[places[slot]]
            places[slot] = place
            drawn[place] = text
    for line in report.warnings():
        logger.warning(line)
    texts = tuple(dict.fromkeys(drawn[place] for place in sorted(drawn)))
    if not texts:
        raise InputError("expected a corpus with texts, found none that is not blank")
    return Sample(texts, documents)


def _texts(corpus: Texts, read: ReadOptions, report: ReadReport) -> Iterator[str]:
    if isinstance(corpus, str | os.PathLike):
        for sourced in read_corpus(corpus, read, report):
            yield sourced.document.text
        return
    if isinstance(corpus, Mapping) or not isinstance(corpus, Iterable):
        raise InputTypeError(
            f"expected a path or an iterable of texts or documents, found {type(corpus).__name__}"
        )
    for sourced in documents_from(corpus, report):
        yield sourced.document.text
