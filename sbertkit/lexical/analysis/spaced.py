"""Scripts with spaces between words: lower case, accents folded, stems by language."""

import re
import unicodedata

import Stemmer

from sbertkit.lexical.analysis.origins import lower_case, origins_of
from sbertkit.lexical.analysis.scripts import word_spans, words_of
from sbertkit.lexical.analysis.words import MAX_TERM, Span, Token, Words

_CODE = re.compile("[0-9_+#@&]")
"""What makes connected words a name that is found whole; ``well-known`` is found by its words."""
_ACCENTED = re.compile("[A-Za-z\u00c0-\u03ff\u1e00-\u1fff]")
"""Latin and Greek, whose words are found without their accents too."""
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i", "ħ": "h"}
)
_OTHERS = {ord("ё"): "е", 0x0640: None, 0x0670: None, 0x200C: None, 0x200D: None}
_OTHERS |= dict.fromkeys((*range(0x0591, 0x05C8), *range(0x064B, 0x0660)))
"""Of other scripts: what is written or left out as one likes, as vowel points are."""


def spaced_words(run: str, language: str | None) -> Words:
    """Words of a run: their stems, and the whole run where it connects several.

    Args:
        run: A word, or several that are connected.
        language: Snowball's name of the language; ``None`` for no stems.
    """
    lower = lower_case(run)
    if lower.isalnum() and lower.isascii():  # most words, in a tenth of the time
        return Words((Token(_stem(lower[:MAX_TERM], language), 0),), 1)
    parts = words_of(lower) or [lower]  # such as (一), what ㈠ stands for
    tokens = []
    if (len(parts) > 1 or parts[0] != lower) and _CODE.search(lower):
        # Of several words others may follow that are connected as well, which makes another name.
        whole = folded(lower)[:MAX_TERM]
        tokens.append(Token(whole, 0, sure=len(parts) == 1, width=len(parts)))
    for offset, part in enumerate(parts):
        first, *others = _forms(part, language)
        tokens.append(Token(first, offset))
        tokens += [Token(other, offset, sure=False) for other in others]
    return Words(tuple(tokens), len(parts))


def spaced_places(run: str) -> list[Span]:
    """The characters of a run at each place."""
    origins = origins_of(run, lower_case)
    spans = word_spans(lower_case(run)) or [Span(0, len(origins))]
    return [Span(origins[start].start, origins[end - 1].end) for start, end in spans]


def folded(word: str) -> str:
    """A word in lower case without the accents and points that may be left out."""
    if word.isascii():
        return word
    if _ACCENTED.match(word) is None:
        return word.translate(_OTHERS)
    letters = unicodedata.normalize("NFKD", word.translate(_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _forms(word: str, language: str | None) -> list[str]:
    """The stem of a word, and that of the word without accents where it is another one.

    The rules of a language need its accents, but those who search leave them out.
    """
    word = word[:MAX_TERM]
    stems = (_stem(word, language), _stem(folded(word), language))
    return [form for form in dict.fromkeys(map(folded, stems)) if form] or [word]


def _stem(word: str, language: str | None) -> str:
    # A stemmer is not safe to share between threads, and made in no time.
    return word if language is None else Stemmer.Stemmer(language, 0).stemWord(word)
