"""Texts of an index drawn at random, of which queries are made."""

from collections.abc import Iterator
from itertools import accumulate
from random import Random

import numpy as np

from sbertkit.data.text import is_blank
from sbertkit.retrieval.view import View


def sampled_texts(view: View, count: int) -> Iterator[tuple[int, str]]:
    """Numbers through all segments and texts of at most so many documents, drawn at random.

    The same are drawn every time; blank ones are left out.
    """
    masks = [segment.mask() for segment in view.segments]
    ends = list(accumulate(int(np.count_nonzero(mask)) for mask in masks))
    total = ends[-1] if ends else 0
    drawn = np.array(
        Random(0).sample(range(total), min(total, count)),  # noqa: S311  # no secret
        np.int64,
    )
    start = before = 0
    for segment, mask, end in zip(view.segments, masks, ends, strict=True):
        inside = drawn[(before <= drawn) & (drawn < end)] - before
        numbers = np.flatnonzero(mask)[inside].tolist()
        texts = dict(segment.documents.texts_at(numbers))
        yield from (
            (start + number, texts[number]) for number in numbers if not is_blank(texts[number])
        )
        start += segment.passages.documents
        before = end
