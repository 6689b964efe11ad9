"""What is done with texts that are longer than an encoder's limit."""

from dataclasses import dataclass

from sbertkit.arguments import did_you_mean, whole_number
from sbertkit.errors import InputError, InputTypeError

LONG_CHOICES = {
    "passages": "each passage of a long text has a vector of its own",
    "truncate": "what is beyond the limit is left out",
    "mean": "the mean of the vectors of its passages, weighted by their tokens",
}
"""What can be done with a text that is longer than the limit."""

DEFAULT_LONG = "passages"


@dataclass(frozen=True, slots=True)
class LongOptions:
    """What is done with texts that are longer than the limit of the encoder.

    Attributes:
        mode: ``passages``, ``truncate`` or ``mean``.
        overlap: Tokens of the passage before that a passage begins with.

    Raises:
        InputError: An unknown choice, or an overlap where there are no passages.
        InputTypeError: A choice that is no str, or an overlap that is no whole number.
    """

    mode: str = DEFAULT_LONG
    overlap: int = 0

    def __str__(self) -> str:
        return f"{self.mode}, overlap {self.overlap}" if self.overlap else self.mode

    def __post_init__(self) -> None:
        if not isinstance(self.mode, str):
            raise InputTypeError(f"long must be a str, not {self.mode!r}")
        if self.mode not in LONG_CHOICES:
            choices = ", ".join(LONG_CHOICES)
            hint = did_you_mean(self.mode, LONG_CHOICES)
            raise InputError(f"long must be one of {choices}, not {self.mode!r}{hint}")
        whole_number("overlap", self.overlap, least=0)
        if self.overlap and self.mode == "truncate":
            raise InputError(
                "truncated texts have no passages that overlap: leave overlap (--overlap) out"
            )


TRUNCATE = LongOptions("truncate")
