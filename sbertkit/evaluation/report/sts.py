"""The report of an STS evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.evaluation.report.published import published_section
from sbertkit.evaluation.sts import StsResult
from sbertkit.formatting import interval_text, percent
from sbertkit.metrics import Interval
from sbertkit.metrics.correlation import order_codes, ranks_of_codes

_BINS = 40
_WORST = 20
_MOST_CUT = 50


def sts_page(result: StsResult, about: Mapping[str, Any]) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_sts`.
        about: What was measured: ``model``, ``fingerprint``, ``pooling`` and more, by name.
    """
    headline = {
        "Spearman × 100": percent(result.spearman),
        "95 % interval": interval_text(result.interval),
        "Pearson × 100": percent(result.pearson),
        "pairs": f"{result.pairs:,}",
    }
    facts = {
        "model": about.get("model"),
        "pooling": about.get("pooling"),
        "file": result.source or "pairs from memory",
        "split": result.split or "none in the file",
        "distinct sentences": f"{result.sentences:,}",
    }
    own = (str(about.get("model")), percent(result.spearman))
    beside = published_section(result.source, own) if result.split == "test" else None
    sections = [_correlations(result), *([beside] if beside else []), _pictures(result)]
    if result.subsets:
        sections.append(_subsets(result))
    sections += [_cut(result), _worst(result)]
    title = f"Semantic textual similarity: {about.get('model')}"
    return Page(title, headline, facts, sections, dict(about))


def _correlations(result: StsResult) -> Section:
    rows = [
        (name, percent(found.spearman), percent(found.pearson))
        for name, found in result.similarities.items()
    ]
    sentences = [
        "Spearman compares the order of the pairs, Pearson the values themselves; both times 100. "
        "Spearman of the cosine is the figure that papers compare."
    ]
    if result.reason is not None:
        sentences.append(f"The correlations are undefined: {result.reason}.")
    return Section(
        "Correlation with people", sentences, [Table(("similarity", "Spearman>", "Pearson>"), rows)]
    )


def _pictures(result: StsResult) -> Section:
    details = result.details
    gold = [pair.score for pair in details.pairs]
    counts, _ = np.histogram(details.cosines, bins=_BINS, range=(-1.0, 1.0))
    random = "n/a" if result.mean_random_cosine is None else f"{result.mean_random_cosine:.3f}"
    return Section(
        "Cosines",
        [f"The mean cosine of two sentences drawn at random is {random}."],
        pictures=[
            Picture(
                figures.scatter(
                    gold, details.cosines, x_label="gold score", y_label="cosine", name="scatter"
                ),
                "Each dot is a pair: what people said, and the cosine.",
            ),
            Picture(
                figures.histogram(
                    counts.tolist(), -1.0, 1.0, x_label="cosine", name="histogram of cosines"
                ),
                "How the cosines of the pairs are spread.",
            ),
        ],
    )


def _subsets(result: StsResult) -> Section:
    rows: list[tuple[object, ...]] = [
        (name, f"{score.pairs:,}", percent(score.spearman), interval_text(score.interval))
        for name, score in result.subsets.items()
    ]
    rows.append(
        (
            "weighted mean",
            f"{sum(score.pairs for score in result.subsets.values()):,}",
            percent(result.weighted_mean),
            "",
        )
    )
    rows.append(
        (
            "all pairs together",
            f"{result.pairs:,}",
            percent(result.spearman),
            interval_text(result.interval),
        )
    )
    return Section(
        "Sub-corpora",
        [
            "Papers report either all pairs together or the mean over sub-corpora weighted by "
            "their pairs; the two do not compare."
        ],
        [Table(("sub-corpus", "pairs>", "Spearman>", "95 % interval>"), rows)],
        [
            Picture(
                figures.bars(
                    list(result.subsets),
                    [_hundredfold(score.spearman) for score in result.subsets.values()],
                    [_ends(score.interval) for score in result.subsets.values()],
                    x_label="Spearman × 100",
                    name="sub-corpora",
                ),
                "Spearman of each sub-corpus with its 95 % bootstrap interval.",
            )
        ],
    )


def _cut(result: StsResult) -> Section:
    cut = result.details.cut
    if not cut:
        return Section("Cut sentences", ["No sentence was cut at the encoder's limit."])
    noun = "sentence was" if len(cut) == 1 else "sentences were"
    return Section(
        "Cut sentences",
        [f"{len(cut):,} of {result.sentences:,} distinct {noun} cut; the end was not read."],
        [Table(("characters>", "sentence"), [(len(text), text) for text in cut[:_MOST_CUT]])],
    )


def _worst(result: StsResult) -> Section:
    """The pairs whose ranks by people and by cosine differ most."""
    details = result.details
    gold = np.array([pair.score for pair in details.pairs])
    ranks = [ranks_of_codes(order_codes(values)) for values in (gold, np.array(details.cosines))]
    differences = ranks[1] - ranks[0]
    order = np.argsort(-np.abs(differences), kind="stable")[:_WORST]
    rows = [
        (
            f"{details.pairs[place].score:g}",
            f"{details.cosines[place]:.3f}",
            f"{differences[place]:+,.0f}",
            details.pairs[place].first,
            details.pairs[place].second,
        )
        for place in order.tolist()
    ]
    return Section(
        "Where model and people differ most",
        [
            "Ranks by cosine less ranks by gold score: above 0 the model thinks a pair more alike "
            "than people do."
        ],
        [Table(("gold>", "cosine>", "ranks apart>", "first sentence", "second sentence"), rows)],
    )


def _hundredfold(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (100 * interval.low, 100 * interval.high)
