"""Chinese: the words that rjieba finds in its search mode, and every single character.

The words make a match of two texts count more than that of their characters; the characters find
what was divided otherwise in another text.
"""

from sbertkit.lexical.analysis.origins import compatible, origins_of
from sbertkit.lexical.analysis.words import MAX_TERM, Span, Token, Words


def chinese_words(run: str) -> Words:
    """Characters and words of a run of Han characters."""
    import rjieba  # its dictionary takes 0.1 s

    text = compatible(run)
    tokens = [Token(character, offset) for offset, character in enumerate(text)]
    tokens += [
        Token(word[:MAX_TERM], start, sure=False, width=len(word))
        for word, start, _ in rjieba.tokenize(text, "search")
        if len(word) > 1
    ]
    return Words(tuple(sorted(tokens, key=lambda token: token.offset)), len(text))


def chinese_places(run: str) -> list[Span]:
    """The characters of a run at each place."""
    return origins_of(run, compatible)
