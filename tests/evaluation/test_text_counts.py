"""Counts of the texts that were encoded for a result."""

from typing import TYPE_CHECKING

from sbertkit.evaluation import evaluate_sts
from sbertkit.evaluation.text_counts import TextCounts

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder


def test_counts_are_the_sums_over_reports(tiny_encoder: "Encoder") -> None:
    reports = [
        tiny_encoder.encode_with_report(texts).report
        for texts in (["a goat", "a goat " * 100], ["ᚠᚢ ᚦ a", "goat"])
    ]
    counts = TextCounts.of(*reports)
    assert (counts.texts, counts.truncated) == (4, 1)
    assert counts.tokens_lost == reports[0].tokens_lost > 0
    assert counts.unknown_tokens == reports[1].unknown_tokens > 0
    assert counts.text_tokens == sum(report.text_tokens for report in reports)
    assert counts.facts()["truncated"] == "1 of 4 texts"
    assert TextCounts.of() == TextCounts(0, 0, 0, 0, 0)
    assert TextCounts(0, 0, 0).facts()["unknown tokens"] == "0 of 0 (0.0%)"
    assert TextCounts(2, 0, 0, 1, 8).facts()["unknown tokens"] == "1 of 8 (12.5%)"


def test_a_result_counts_what_the_tokenizer_does_not_know(tiny_encoder: "Encoder") -> None:
    pairs = [(1.0, "a goat", "ᚠᚢ ᚦ"), (2.0, "the goat", "a goat"), (3.0, "ᚠᚢ ᚦ", "the goat")]
    encoded = evaluate_sts(tiny_encoder, pairs).encoded
    assert encoded.texts == 3
    assert 0 < encoded.unknown_tokens < encoded.text_tokens
