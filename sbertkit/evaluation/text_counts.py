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
        unknown_tokens: Tokens that the tokenizer does not know.
        text_tokens: All tokens, special ones not counted.
    """

    texts: int
    truncated: int
    tokens_lost: int
    unknown_tokens: int = 0
    text_tokens: int = 0

    @classmethod
    def of(cls, *reports: EncodeReport) -> "TextCounts":
        """The sums over reports."""
        return cls(
            sum(report.rows for report in reports),
            sum(len(report.truncated) for report in reports),
            sum(report.tokens_lost for report in reports),
            sum(report.unknown_tokens for report in reports),
            sum(report.text_tokens for report in reports),
        )

    def facts(self) -> dict[str, object]:
        """The counts as names and texts, for a page."""
        share = self.unknown_tokens / self.text_tokens if self.text_tokens else 0.0
        return {
            "truncated": f"{self.truncated:,} of {self.texts:,} texts",
            "unknown tokens": f"{self.unknown_tokens:,} of {self.text_tokens:,} ({share:.1%})",
        }

    def pair_facts(self) -> dict[str, object]:
        """The counts of pairs that a re-ranker scored, likewise."""
        return {"re-ranked": f"{self.texts:,} pairs, {self.truncated:,} of them truncated"}
