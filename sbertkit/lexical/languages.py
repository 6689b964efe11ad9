"""The languages of texts: their stemmers, and which one a sample of texts is in."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sbertkit.lexical.analysis.scripts import has_kana, is_han, is_unspaced, runs_of
from sbertkit.lexical.stop_words import STOP_WORDS

AUTO = "auto"
NONE = "none"
_LATIN = "latin"
_CHARACTERS = 2_000
"""Of a text, that are looked at."""
_MIN_SHARE = 0.06
"""Of the words of texts in a language, that are among its stop words."""
_MIN_KNOWN = 2
"""Of its stop words, that texts in a language have, since others may have one by chance."""
_MIN_EAST = 0.3
_MIN_KANA = 0.1
"""Shares of East Asian among all letters, and of texts with kana among those in Japanese."""

_SCRIPTS = {
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "arabic": "\u0600-\u06ff\u0750-\u077f",
    "devanagari": "\u0900-\u097f",
    "tamil": "\u0b80-\u0bff",
    "armenian": "\u0530-\u058f",
    "hebrew": "\u0590-\u05ff",
}
_IN_SCRIPT = {name: re.compile(f"[{letters}]") for name, letters in _SCRIPTS.items()}
_STEMS = {
    _LATIN: "english",
    "cyrillic": "russian",
    "greek": "greek",
    "arabic": "arabic",
    "devanagari": "hindi",
    "tamil": "tamil",
    "armenian": "armenian",
    "hebrew": None,
}
"""The stemmers of words in scripts other than that of the language of an index."""


@dataclass(frozen=True, slots=True)
class Language:
    """How words of a language are made.

    Attributes:
        stems: Snowball's name of the stemmer; ``None`` for no stems.
        script: The script of the words that it is for.
        bigrams: Whether Han characters are divided as Japanese, into bigrams, not into words.
    """

    stems: str | None
    script: str = _LATIN
    bigrams: bool = False

    def stems_of(self, word: str) -> str | None:
        """The stemmer of a word: the language's if it is in its script, else that of the script."""
        script = _script_of(word)
        return self.stems if self.script in (script, NONE) else _STEMS[script]


LANGUAGES = {
    NONE: Language(None, NONE),
    **{
        name: Language(name)
        for name in (
            *("basque", "catalan", "czech", "danish", "dutch", "english", "estonian", "finnish"),
            *("french", "german", "hungarian", "indonesian", "irish", "italian", "lithuanian"),
            *("norwegian", "polish", "portuguese", "romanian", "spanish", "swedish", "turkish"),
        )
    },
    **{
        name: Language(name, script)
        for script, names in {
            "arabic": ("arabic", "persian"),
            "armenian": ("armenian",),
            "cyrillic": ("russian", "serbian"),
            "devanagari": ("hindi", "nepali"),
            "greek": ("greek",),
            "tamil": ("tamil",),
        }.items()
        for name in names
    },
    "chinese": Language("english"),
    "japanese": Language("english", bigrams=True),
    "korean": Language("english"),
}
"""The languages by name. Chinese, Japanese and Korean stem the English words among theirs."""

CHOICES = (AUTO, *sorted(LANGUAGES))
"""What ``language`` may be."""


def detect_language(texts: Iterable[str]) -> str:
    """The language that most of some texts are in, a name of `LANGUAGES`.

    Texts without spaces between words are known by their characters, others by the most frequent
    words of languages. Texts in plain letters without any such word count as English, others as of
    no known language.

    Args:
        texts: A sample.
    """
    words: Counter[str] = Counter()
    letters, east, kana, hangul = 0, 0, 0, 0
    for text in texts:
        runs = runs_of(text[:_CHARACTERS])
        in_kana = has_kana(text[:_CHARACTERS])
        for run in runs:
            letters += len(run)
            if not is_unspaced(run):
                words[run.casefold()] += 1
            elif is_han(run) or has_kana(run):
                east += len(run)
                kana += len(run) if in_kana else 0
            else:
                hangul += len(run) if "\uac00" <= run[0] <= "\ud7a3" else 0
    if east > _MIN_EAST * letters:
        return "japanese" if kana > _MIN_KANA * east else "chinese"
    if hangul > _MIN_EAST * letters:
        return "korean"
    return _most_frequent(words)


def _most_frequent(words: Counter[str]) -> str:
    """The language whose frequent words are the most of some words."""
    known = {name: words.keys() & of_language for name, of_language in STOP_WORDS.items()}
    counts = {name: sum(words[word] for word in found) for name, found in known.items()}
    best = max(counts, key=counts.__getitem__)
    if len(known[best]) >= _MIN_KNOWN and counts[best] >= _MIN_SHARE * words.total():
        return best
    return "english" if all(word.isascii() for word in words) else NONE


def _script_of(word: str) -> str:
    if word.isascii():
        return _LATIN
    return next((name for name, letters in _IN_SCRIPT.items() if letters.match(word)), _LATIN)
