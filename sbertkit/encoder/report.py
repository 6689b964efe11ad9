"""What happened to the texts that were encoded."""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

from sbertkit.arrays import Vectors
from sbertkit.encoder.spec import EncoderSpec

_UNKNOWN_SHARE = 0.1
"""A larger share of unknown tokens is warned of."""
_MULTILINGUAL = (
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2, "
    "intfloat/multilingual-e5-small or BAAI/bge-m3"
)


def unknown_warning(unknown: int, tokens: int, spec: EncoderSpec) -> str | None:
    """A warning of texts that an encoder cannot read; ``None`` if there is no need for one.

    Args:
        unknown: Tokens that the tokenizer does not know.
        tokens: All tokens, special ones not counted.
        spec: The encoder's.
    """
    if unknown <= _UNKNOWN_SHARE * tokens:
        return None
    result = "scores" if spec.scores_pairs else "vectors"
    return (
        f"{unknown / tokens:.0%} of the tokens are unknown to the tokenizer of "
        f"{spec.name} ({len(spec.tokenizer):,} tokens), so that the {result} mean little; "
        f"for other languages use a multilingual model, such as {_MULTILINGUAL}"
    )


@dataclass(frozen=True, slots=True)
class EncodeReport:
    """What happened to the texts of one call; row numbers count from 0.

    Attributes:
        rows: Texts encoded.
        truncated: Rows that were truncated to `max_tokens`.
        tokens_lost: Tokens that were truncated, over all rows.
        blank: Rows without a visible character; they have the vector of the empty text.
        repaired: Rows whose unpaired surrogates became U+FFFD.
        duplicates: Rows that took the vector of an equal text of the same chunk of texts.
        seconds: Wall time of the call.
        tokens_per_second: Tokens that went through the model (padding not counted) over `seconds`.
        tokens_lost_exact: Whether all of `tokens_lost` were counted; in texts of more than 500,000
            characters they are estimated.
        unknown_tokens: Tokens that the tokenizer does not know, over all rows.
        text_tokens: All tokens, over all rows, special ones not counted.
        mostly_unknown: Rows of which it does not know more than half.
    """

    rows: int
    truncated: tuple[int, ...]
    tokens_lost: int
    blank: tuple[int, ...]
    repaired: tuple[int, ...]
    duplicates: int
    seconds: float
    tokens_per_second: float
    tokens_lost_exact: bool = True
    unknown_tokens: int = 0
    text_tokens: int = 0
    mostly_unknown: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens that went through the model."""
        return round(self.tokens_per_second * self.seconds)

    @property
    def unknown_share(self) -> float:
        """Share of the tokens that the tokenizer does not know, 0 to 1."""
        return self.unknown_tokens / self.text_tokens if self.text_tokens else 0.0

    def warn(self, logger: logging.Logger, spec: EncoderSpec) -> None:
        """Logs what would otherwise pass unseen, one line for each kind.

        Args:
            logger: Where to.
            spec: The encoder's.
        """
        rows = "pairs" if spec.scores_pairs else "texts"
        unknown = unknown_warning(self.unknown_tokens, self.text_tokens, spec)
        if unknown is not None:
            logger.warning("%s", unknown)
        if self.truncated:
            logger.warning(
                "%d of %d %s were truncated to %d tokens (%s%d tokens lost)",
                len(self.truncated),
                self.rows,
                rows,
                spec.max_tokens,
                "" if self.tokens_lost_exact else "about ",
                self.tokens_lost,
            )
        if self.blank:
            logger.warning(
                "%d blank among %d %s: given the %s of the empty text",
                len(self.blank),
                self.rows,
                rows,
                "score" if spec.scores_pairs else "vector",
            )
        if self.repaired:
            logger.warning(
                "%d of %d %s had unpaired surrogates, which became U+FFFD",
                len(self.repaired),
                self.rows,
                rows,
            )


@dataclass(slots=True)
class EncodeStats:
    """Running counts of an encoding; the attributes are those of `EncodeReport`, and `tokens`.

    Attributes:
        tokens: That went through the model, padding not counted.
    """

    rows: int = 0
    truncated: list[int] = field(default_factory=list)
    tokens_lost: int = 0
    tokens_lost_exact: bool = True
    blank: list[int] = field(default_factory=list)
    repaired: list[int] = field(default_factory=list)
    duplicates: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    text_tokens: int = 0
    mostly_unknown: list[int] = field(default_factory=list)

    def merge(self, later: "EncodeStats | EncodeReport") -> None:
        """Adds what happened to the texts that followed, whose rows count from 0 again."""
        for rows, more in (
            (self.truncated, later.truncated),
            (self.blank, later.blank),
            (self.repaired, later.repaired),
            (self.mostly_unknown, later.mostly_unknown),
        ):
            rows += [self.rows + row for row in more]
        self.rows += later.rows
        self.tokens_lost += later.tokens_lost
        self.tokens_lost_exact &= later.tokens_lost_exact
        self.duplicates += later.duplicates
        self.tokens += later.tokens
        self.unknown_tokens += later.unknown_tokens
        self.text_tokens += later.text_tokens

    def report(self, seconds: float, tokens: int) -> EncodeReport:
        """The report.

        Args:
            seconds: How long the call took.
            tokens: That went through the model in that time.
        """
        return EncodeReport(
            rows=self.rows,
            truncated=tuple(self.truncated),
            tokens_lost=self.tokens_lost,
            blank=tuple(self.blank),
            repaired=tuple(self.repaired),
            duplicates=self.duplicates,
            seconds=seconds,
            tokens_per_second=tokens / seconds if seconds > 0 else 0.0,
            tokens_lost_exact=self.tokens_lost_exact,
            unknown_tokens=self.unknown_tokens,
            text_tokens=self.text_tokens,
            mostly_unknown=tuple(self.mostly_unknown),
        )


class Encoded(NamedTuple):
    """Vectors ``(n, dim)`` float32 in the order of the texts, and the report on them."""

    vectors: Vectors
    report: EncodeReport
