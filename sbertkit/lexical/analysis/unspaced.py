"""Scripts without spaces between words: their characters, and every two that are neighbors."""

import re
import unicodedata
from functools import cache

from sbertkit.lexical.analysis.origins import compatible, origins_of
from sbertkit.lexical.analysis.words import Span, Token, Words

_BLOCKS = (
    *(range(0x0E00, 0x1100), range(0x1780, 0x17E0), range(0x1A20, 0x1A60), range(0xAA60, 0xAAE0)),
    *(range(0x3099, 0x309B), range(0x302A, 0x3030)),
)
"""Where combining marks of these scripts are."""


def characters_of(run: str) -> list[str]:
    """The characters of a run, each with its combining marks, in compatibility form."""
    return _cluster().findall(compatible(run))


def bigram_words(run: str) -> Words:
    """Characters and bigrams of a run."""
    characters = characters_of(run)
    tokens = []
    for offset, character in enumerate(characters):
        tokens.append(Token(character, offset))
        if offset + 1 < len(characters):
            tokens.append(Token(character + characters[offset + 1], offset, width=2))
    return Words(tuple(tokens), len(characters))


def bigram_places(run: str) -> list[Span]:
    """The characters of a run at each place."""
    origins, end, places = origins_of(run, compatible), 0, []
    for character in characters_of(run):
        start, end = end, end + len(character)
        places.append(Span(origins[start].start, origins[end - 1].end))
    return places


@cache
def _cluster() -> re.Pattern[str]:
    """A character with its marks; those beyond the scripts of this rule need no look."""
    marks = "".join(
        character
        for character in map(chr, (code for block in _BLOCKS for code in block))
        if unicodedata.category(character).startswith("M")
    )
    return re.compile(f".[{marks}]*", re.DOTALL)
