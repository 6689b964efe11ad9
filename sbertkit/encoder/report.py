"""What happened to the texts that were encoded."""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

from sbertkit.arrays import Vectors


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

    @property
    def tokens(self) -> int:
        """Tokens that went through the model."""
        return round(self.tokens_per_second * self.seconds)

    def warn(self, logger: logging.Logger, max_tokens: int | None) -> None:
        """Logs what would otherwise pass unseen, one line for each kind.

        Args:
            logger: Where to.
            max_tokens: What texts were truncated to.
        """
        if self.truncated:
            logger.warning(
                "%d of %d texts were truncated to %d tokens (%s%d tokens lost)",
                len(self.truncated),
                self.rows,
                max_tokens,
                "" if self.tokens_lost_exact else "about ",
                self.tokens_lost,
            )
        if self.blank:
            logger.warning(
                "%d blank among %d texts: given the vector of the empty text",
                len(self.blank),
                self.rows,
            )
        if self.repaired:
            logger.warning(
                "%d of %d texts had unpaired surrogates, which became U+FFFD",
                len(self.repaired),
                self.rows,
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

    def merge(self, later: "EncodeStats | EncodeReport") -> None:
        """Adds what happened to the texts that followed, whose rows count from 0 again."""
        for rows, more in (
            (self.truncated, later.truncated),
            (self.blank, later.blank),
            (self.repaired, later.repaired),
        ):
            rows += [self.rows + row for row in more]
        self.rows += later.rows
        self.tokens_lost += later.tokens_lost
        self.tokens_lost_exact &= later.tokens_lost_exact
        self.duplicates += later.duplicates
        self.tokens += later.tokens

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
        )


class Encoded(NamedTuple):
    """Vectors ``(n, dim)`` float32 in the order of the texts, and the report on them."""

    vectors: Vectors
    report: EncodeReport
