"""What is asked of a lexical index."""

from dataclasses import dataclass

from sbertkit.arguments import did_you_mean
from sbertkit.errors import InputError, InputTypeError
from sbertkit.lexical.bm25 import Bm25
from sbertkit.lexical.languages import AUTO, CHOICES

_DEFAULT = Bm25()


@dataclass(frozen=True, slots=True)
class LexicalOptions:
    """How words are made of texts, and how they score.

    Attributes:
        language: The language of most texts, ``none`` for words without stems, or ``auto`` to
            detect it from a sample of the documents.
        k1: How much further occurrences of a word in a document add to its score, from 0.
        b: How much the length of a document counts, 0 to 1.

    Raises:
        InputError: An unknown language, or a number out of range.
        InputTypeError: A language that is no str, or a parameter that is no number.
    """

    language: str = AUTO
    k1: float = _DEFAULT.k1
    b: float = _DEFAULT.b

    def __post_init__(self) -> None:
        language: object = self.language
        if not isinstance(language, str):
            raise InputTypeError(f"language must be a str, not {language!r}")
        if language not in CHOICES:
            raise InputError(
                f"language must be one of {', '.join(CHOICES)}, not {language!r}"
                f"{did_you_mean(language, CHOICES)}"
            )
        self.bm25  # noqa: B018  # checked

    @property
    def bm25(self) -> Bm25:
        """The parameters of scores."""
        return Bm25(self.k1, self.b)
