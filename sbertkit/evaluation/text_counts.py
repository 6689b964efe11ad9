"""How many texts were encoded for a result, and how many of them not as a whole."""

from dataclasses import dataclass

from sbertkit.encoder.report import EncodeReport


@dataclass(frozen=True, slots=True)
class TextCounts:
    """Counts of the texts encoded for a result.

    Attributes:
        texts: Number of texts.
        truncated: How many were truncated at the encoder's token limit.
        tokens_lost: Tokens that were truncated.
    """

    texts: int
    truncated: int
    tokens_lost: int

    @classmethod
    def of(cls, *reports: EncodeReport) -> "TextCounts":
        """The sums over reports."""
        return cls(
            sum(report.rows for report in reports),
            sum(len(report.truncated) for report in reports),
            sum(report.tokens_lost for report in reports),
        )

    def facts(self) -> dict[str, object]:
        """The counts as names and texts, for a page."""
        return {"truncated": f"{self.truncated:,} of {self.texts:,} texts"}
