"""Texts of an index drawn at random, of which queries are made."""

from collections.abc import Iterator
from random import Random

import numpy as np

from sbertkit.data.text import is_blank
from sbertkit.retrieval.view import View


def sampled_texts(view: View, count: int) -> Iterator[tuple[int, str]]:
    """Numbers through all segments and texts of at most so many documents, drawn at random.

    The same are drawn every time; blank ones are left out.
    """
    places = [
        (place, number)
        for place, segment in enumerate(view.segments)
        for number in np.flatnonzero(segment.mask()).tolist()
    ]
    wanted = Random(0).sample(places, min(len(places), count))  # noqa: S311  # no secret
    start = 0
    for place, segment in enumerate(view.segments):
        numbers = [number for at, number in wanted if at == place]
        texts = dict(segment.documents.texts_at(numbers))
        yield from (
            (start + number, texts[number]) for number in numbers if not is_blank(texts[number])
        )
        start += segment.passages.documents
