"""The words of a text in a language: which rule is whose."""

from collections import Counter

from sbertkit.lexical.analysis.chinese import chinese_places, chinese_words
from sbertkit.lexical.analysis.scripts import is_han, is_unspaced, run_spans, runs_of
from sbertkit.lexical.analysis.spaced import spaced_places, spaced_words
from sbertkit.lexical.analysis.unspaced import bigram_places, bigram_words
from sbertkit.lexical.analysis.words import Span, Words
from sbertkit.lexical.languages import LANGUAGES
from sbertkit.lexical.stop_words import STOP_WORDS

RULES_VERSION = 2
"""Changes with the rules, so that words made by others are not searched for in vain."""


class Analyzer:
    """Makes words of texts and queries alike; safe to share between threads.

    Args:
        language: A name of `LANGUAGES`.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._known = LANGUAGES[language]
        # Chinese, Japanese and Korean have none, but English words among theirs.
        self._stop_words = STOP_WORDS.get(language, STOP_WORDS.get(self._known.stems or "", ()))

    def runs(self, text: str) -> list[str]:
        """The runs of a text, in order; see `runs_of`."""
        return runs_of(text)

    def run_spans(self, text: str) -> list[Span]:
        """Where the runs of a text are."""
        return run_spans(text)

    def is_stop_word(self, run: str) -> bool:
        """Whether a run is one of the most frequent words of the language."""
        return run.casefold() in self._stop_words

    def terms(self, text: str) -> Counter[str]:
        """How often a text has each term."""
        runs = self.runs(text)
        return Counter(token.term for run in runs for token in self.words(run).tokens)

    def words(self, run: str) -> Words:
        """The words of a run."""
        if not is_unspaced(run):
            return spaced_words(run, self._known.stems_of(run))
        return chinese_words(run) if self._in_chinese(run) else bigram_words(run)

    def places(self, run: str) -> list[Span]:
        """The characters of a run at each of the places that its words are counted by."""
        if not is_unspaced(run):
            return spaced_places(run)
        return chinese_places(run) if self._in_chinese(run) else bigram_places(run)

    def _in_chinese(self, run: str) -> bool:
        return is_han(run) and not self._known.bigrams
