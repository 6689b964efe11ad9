"""The pairs that encoders are judged by without labels: two parts of each text of a sample."""

from typing import NamedTuple

from sbertkit.data.documents import ReadOptions
from sbertkit.data.pseudo_pairs import PseudoPair, pseudo_pair
from sbertkit.data.sampling import Sample, Texts, sample_texts
from sbertkit.errors import InputError

SAMPLE = 2_000
"""Default number of texts in the sample."""
MIN_PAIRS = 100
"""With fewer pairs the choice would be chance."""
_DEFAULT = ReadOptions()


class DrawnPairs(NamedTuple):
    """A sample of a corpus, and the two parts of each of its texts that is long enough."""

    sample: Sample
    pairs: dict[str, PseudoPair]


def draw_pairs(
    corpus: Texts, count: int = SAMPLE, *, seed: int = 0, read: ReadOptions = _DEFAULT
) -> DrawnPairs:
    """A sample of a corpus with the pairs of its texts, by text and in its order.

    Args:
        corpus: As for `sample_texts`.
        count: How many texts at most.
        seed: Of the draw.
        read: How a path is read.

    Raises:
        InputError: As `sample_texts`, or fewer than 100 texts to split.
        InputTypeError: No corpus.
        MissingFile: The path does not exist.
    """
    drawn = sample_texts(corpus, count, seed=seed, read=read)
    pairs = {text: pair for text in drawn.texts if (pair := pseudo_pair(text)) is not None}
    if len(pairs) < MIN_PAIRS:
        raise InputError(
            f"expected at least {MIN_PAIRS} different texts of some words to split, found "
            f"{len(pairs)} among {len(drawn.texts):,}; give more or longer texts"
        )
    return DrawnPairs(drawn, pairs)
