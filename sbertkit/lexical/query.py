"""Queries: plain words, "phrases" that a document must have, and what is left out by -.

A query is data. Nothing in it is an operator but quotation marks around a phrase and a minus sign
that stands before a word or a phrase, after white space or at the beginning.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sbertkit.lexical.analysis.words import Token
from sbertkit.lexical.analyzer import Analyzer

_PART = re.compile(
    r'(?<![^\W_])(?P<minus>(?<!\S)-)?"(?P<phrase>[^"]*)"|(?<!\S)-(?P<word>[^\s"-]\S*)'
)
"""A phrase in quotation marks, which no word precedes; or a word that is left out."""

Phrase = tuple[Token, ...]
"""Terms, and their places in relation to the first."""


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query, read.

    Attributes:
        text: What is asked for in plain words: the query without the quotation marks of phrases and
            without what is left out.
        terms: The terms that score, and how often the query has each.
        phrases: What a document must have.
        excluded: What it must not have.
    """

    text: str
    terms: dict[str, int]
    phrases: tuple[Phrase, ...] = ()
    excluded: tuple[Phrase, ...] = ()

    @property
    def has_conditions(self) -> bool:
        """Whether documents must meet some."""
        return bool(self.phrases or self.excluded)


def parse_query(text: str, analyzer: Analyzer) -> LexicalQuery:
    """The terms of a query and its conditions; any text is one."""
    plain: list[str] = []
    quoted: list[str] = []
    phrases: list[Phrase] = []
    excluded: list[Phrase] = []
    end = 0
    for found in _PART.finditer(text):
        plain.append(text[end : found.start()])
        end = found.end()
        inner = found["phrase"] if found["word"] is None else found["word"]
        phrase = _phrase(inner, analyzer)
        if found["minus"] or found["word"] is not None:
            excluded += [phrase] if phrase else []
        else:
            plain.append(inner)
            quoted.append(inner)
            phrases += [phrase] if phrase else []
    plain.append(text[end:])
    terms = _terms(plain, analyzer, quoted)
    if len(plain) > 1:
        text = " ".join("".join(plain).split())
    return LexicalQuery(text, terms, tuple(phrases), tuple(excluded))


def plain_query(text: str, analyzer: Analyzer) -> LexicalQuery:
    """The query of a text all of which is plain words."""
    return LexicalQuery(text, _terms([text], analyzer))


def _terms(texts: Iterable[str], analyzer: Analyzer, phrases: Iterable[str] = ()) -> dict[str, int]:
    """The terms that score; those of stop words only if a phrase, or all, has no others."""
    runs = [run for text in texts for run in analyzer.runs(text)]
    alone: set[str] = set()
    for text in phrases:
        of_phrase = analyzer.runs(text)
        if all(map(analyzer.is_stop_word, of_phrase)):
            alone.update(of_phrase)
    others = [run for run in runs if run in alone or not analyzer.is_stop_word(run)]
    return dict(
        Counter(token.term for run in others or runs for token in analyzer.words(run).tokens)
    )


def _phrase(text: str, analyzer: Analyzer) -> Phrase:
    """The terms of a text that are there wherever it stands, with their places in it."""
    tokens: list[Token] = []
    start = 0
    for run in analyzer.runs(text):
        words = analyzer.words(run)
        tokens += [
            token._replace(offset=start + token.offset) for token in words.tokens if token.sure
        ]
        start += words.width
    return tuple(tokens)
