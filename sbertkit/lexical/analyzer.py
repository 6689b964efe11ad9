"""The words of a text in a language: which rule is whose."""

from sbertkit.lexical.analysis.chinese import chinese_words
from sbertkit.lexical.analysis.scripts import is_han, is_unspaced, runs_of
from sbertkit.lexical.analysis.spaced import spaced_words
from sbertkit.lexical.analysis.unspaced import bigram_words
from sbertkit.lexical.analysis.words import Words
from sbertkit.lexical.languages import LANGUAGES
from sbertkit.lexical.stop_words import STOP_WORDS

RULES_VERSION = 1
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

    def is_stop_word(self, run: str) -> bool:
        """Whether a run is one of the most frequent words of the language."""
        return run.casefold() in self._stop_words

    def words(self, run: str) -> Words:
        """The words of a run."""
        if not is_unspaced(run):
            return spaced_words(run, self._known.stems_of(run))
        if is_han(run) and not self._known.bigrams:
            return chinese_words(run)
        return bigram_words(run)
