"""Where the words of a query are in a text."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from sbertkit.lexical.analysis.scripts import is_unspaced
from sbertkit.lexical.analysis.words import Token
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.query import LexicalQuery

_MAX_RUNS = 10_000
"""Whose words are kept, since texts repeat theirs."""


class Match(NamedTuple):
    """A part of a text in which words of a query are.

    Attributes:
        start: The character that it begins at.
        end: The character before which it ends.
        terms: What the words were compared by, such as stems.
    """

    start: int
    end: int
    terms: frozenset[str]


class _Run(NamedTuple):
    """A run of a text, where it begins, its first place, and the tokens that are looked for."""

    text: str
    start: int
    first: int
    tokens: tuple[Token, ...]


class Matcher:
    """Finds the words of a query in texts; safe to share between threads.

    The words of its phrases are found anywhere, as they score anywhere, those that are stop words
    within the phrase alone. A single character of a script without spaces is left out where a
    longer word with it is found, too.

    Args:
        query: The query; what it leaves out is not looked for.
        analyzer: Makes words of texts.
    """

    def __init__(self, query: LexicalQuery, analyzer: Analyzer) -> None:
        self._query = query
        self._analyzer = analyzer
        self._wanted = {*query.terms, *(token.term for one in query.phrases for token in one)}
        self._tokens = lru_cache(_MAX_RUNS)(self._tokens_of)

    def find(self, text: str) -> list[Match]:
        """The matches in a text, in order; none overlaps another."""
        if not self._wanted:
            return []
        runs = list(self._runs(text))
        in_phrases = self._in_phrases(runs)
        in_longer = _in_longer(runs)
        matches: list[Match] = []
        for run in runs:
            found = [
                token
                for token in run.tokens
                if (run.first + token.offset, token.term) in in_phrases
                or (token.term in self._query.terms and not _is_noise(run, token, in_longer))
            ]
            if found:
                matches += self._matches(run, found)
        return matches

    def words(self, text: str) -> tuple[str, ...]:
        """The words found in a text as they stand there, each once, in order."""
        words: dict[str, str] = {}
        for match in self.find(text):
            word = text[match.start : match.end]
            words.setdefault(word.casefold(), word)
        return tuple(words.values())

    def _tokens_of(self, run: str) -> tuple[tuple[Token, ...], int]:
        """The tokens of a run that are looked for, and how many places it takes."""
        words = self._analyzer.words(run)
        return tuple(token for token in words.tokens if token.term in self._wanted), words.width

    def _runs(self, text: str) -> Iterator[_Run]:
        """The runs of a text that have tokens which are looked for."""
        first = 0
        for start, end in self._analyzer.run_spans(text):
            tokens, width = self._tokens(text[start:end])
            if tokens:
                yield _Run(text[start:end], start, first, tokens)
            first += width

    def _in_phrases(self, runs: Sequence[_Run]) -> set[tuple[int, str]]:
        """The places and terms of all tokens that are within a phrase."""
        if not self._query.phrases:
            return set()
        places: dict[str, set[int]] = {}
        for run in runs:
            for token in run.tokens:
                places.setdefault(token.term, set()).add(run.first + token.offset)
        found: set[tuple[int, str]] = set()
        for phrase in self._query.phrases:
            begins = set.intersection(
                *({one - token.offset for one in places.get(token.term, ())} for token in phrase)
            )
            found |= {(begin + token.offset, token.term) for begin in begins for token in phrase}
        return found

    def _matches(self, run: _Run, tokens: Sequence[Token]) -> list[Match]:
        """The characters of some tokens of a run, those that touch each other together."""
        places = self._analyzer.places(run.text)
        matches: list[Match] = []
        for token in sorted(tokens, key=lambda one: one.offset):
            last = min(token.offset + token.width, len(places)) - 1
            start, end = places[token.offset].start, places[last].end
            if token.width == len(places):
                start, end = 0, len(run.text)  # with what a name such as C++ has at its end
            match = Match(run.start + start, run.start + end, frozenset([token.term]))
            if matches and match.start <= matches[-1].end:
                before = matches.pop()
                end = max(before.end, match.end)
                match = Match(before.start, end, before.terms | match.terms)
            matches.append(match)
        return matches


def _in_longer(runs: Sequence[_Run]) -> set[str]:
    """The single characters of scripts without spaces that are in a longer word found."""
    found: set[str] = set()
    for run in runs:
        if is_unspaced(run.text):
            longer = (
                range(one.offset, one.offset + one.width) for one in run.tokens if one.width > 1
            )
            places = {place for width in longer for place in width}
            found.update(token.term for token in run.tokens if token.offset in places)
    return found


def _is_noise(run: _Run, token: Token, in_longer: set[str]) -> bool:
    return token.width == 1 and token.term in in_longer and is_unspaced(run.text)
