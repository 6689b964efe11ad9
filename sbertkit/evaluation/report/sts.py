"""The report of an STS evaluation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table, lineage_of
from sbertkit.evaluation.report.published import published_section
from sbertkit.evaluation.sts import StsResult
from sbertkit.formatting import decimal, percent, percent_interval
from sbertkit.metrics.correlation import order_codes, ranks_of_codes

_BINS = 40
_MAX_PAIRS = 20
_MAX_TRUNCATED = 50

Row = tuple[object, ...]


def similarity_table(result: StsResult) -> Table:
    """Both correlations of each similarity."""
    rows = [
        (name, percent(found.spearman), percent(found.pearson))
        for name, found in result.similarities.items()
    ]
    return Table(("similarity", "Spearman>", "Pearson>"), rows)


def subset_table(result: StsResult) -> Table:
    """Spearman of each sub-corpus, their weighted mean, and Spearman of all pairs."""
    rows: list[Row] = [
        (name, f"{score.pairs:,}", percent(score.spearman), percent_interval(score.interval))
        for name, score in result.subsets.items()
    ]
    pairs = sum(score.pairs for score in result.subsets.values())
    rows.append(("weighted mean", f"{pairs:,}", percent(result.weighted_mean), ""))
    whole = (percent(result.spearman), percent_interval(result.interval))
    rows.append(("all pairs together", f"{result.pairs:,}", *whole))
    return Table(("sub-corpus", "pairs>", "Spearman>", "95 % interval>"), rows)


def sts_page(result: StsResult, about: Mapping[str, Any]) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_sts`.
        about: What was measured: ``model``, ``fingerprint``, ``pooling`` and more, by name.
    """
    headline = {
        "Spearman × 100": percent(result.spearman),
        "95 % interval": percent_interval(result.interval),
        "Pearson × 100": percent(result.pearson),
        "pairs": f"{result.pairs:,}",
    }
    facts = {
        "model": about.get("model"),
        "pooling": about.get("pooling"),
        "file": result.source or "pairs from memory",
        "split": result.split or "none in the file",
        **result.encoded.facts(),
    }
    measured = (str(about.get("model")), percent(result.spearman))
    published = published_section(result.source, measured) if result.split == "test" else None
    sections = [_correlations(result), *([published] if published else []), _pictures(result)]
    if result.subsets:
        sections.append(_subsets(result))
    sections += [_truncated(result), _disagreements(result)]
    title = f"Semantic textual similarity: {about.get('model')}"
    return Page(title, headline, facts, sections, lineage_of(about))


def _correlations(result: StsResult) -> Section:
    sentences = [
        "Spearman compares the order of the pairs, Pearson the values themselves; both times 100. "
        "Spearman of the cosine is the figure that papers compare."
    ]
    if result.reason is not None:
        sentences.append(f"The correlations are undefined: {result.reason}.")
    return Section("Correlation with human scores", sentences, [similarity_table(result)])


def _pictures(result: StsResult) -> Section:
    details = result.details
    gold = [pair.score for pair in details.pairs]
    counts, _ = np.histogram(details.cosines, bins=_BINS, range=(-1.0, 1.0))
    random = decimal(result.mean_random_cosine)
    return Section(
        "Cosines",
        [f"The mean cosine of two sentences drawn at random is {random}."],
        pictures=[
            Picture(
                figures.scatter(
                    gold, details.cosines, x_label="gold score", y_label="cosine", name="scatter"
                ),
                "Each dot is a pair: its gold score and its cosine.",
            ),
            Picture(
                figures.histogram(
                    counts.tolist(), -1.0, 1.0, x_label="cosine", name="histogram of cosines"
                ),
                "Distribution of the cosines of the pairs.",
            ),
        ],
    )


def _subsets(result: StsResult) -> Section:
    scores = result.subsets.values()
    return Section(
        "Sub-corpora",
        [
            "Papers report either all pairs together or the mean over sub-corpora weighted by "
            "their pairs; the two are not comparable."
        ],
        [subset_table(result)],
        [
            Picture(
                figures.bars(
                    list(result.subsets),
                    [score.spearman for score in scores],
                    [score.interval for score in scores],
                    x_label="Spearman × 100",
                    name="sub-corpora",
                    scale=100,
                ),
                "Spearman of each sub-corpus with its 95 % bootstrap interval.",
            )
        ],
    )


def _truncated(result: StsResult) -> Section:
    texts = result.details.truncated
    title = "Truncated sentences"
    if not texts:
        return Section(title, ["No sentence was truncated at the encoder's token limit."])
    rows = [(len(text), text) for text in texts[:_MAX_TRUNCATED]]
    noun = "sentence was" if len(texts) == 1 else "sentences were"
    return Section(
        title,
        [f"{len(texts):,} of {result.sentences:,} distinct {noun} truncated at the token limit."],
        [Table(("characters>", "sentence"), rows)],
    )


def _disagreements(result: StsResult) -> Section:
    """The pairs whose ranks by gold score and by cosine differ most."""
    details = result.details
    gold = np.array([pair.score for pair in details.pairs])
    ranks = [ranks_of_codes(order_codes(values)) for values in (gold, np.array(details.cosines))]
    differences = ranks[1] - ranks[0]
    order = np.argsort(-np.abs(differences), kind="stable")[:_MAX_PAIRS]
    rows = [
        (
            f"{details.pairs[row].score:g}",
            decimal(details.cosines[row]),
            f"{differences[row]:+,.0f}",
            details.pairs[row].first,
            details.pairs[row].second,
        )
        for row in order.tolist()
    ]
    return Section(
        "Largest disagreements",
        [
            "Rank by cosine minus rank by gold score: above 0 the model judges a pair more similar "
            "than people do."
        ],
        [
            Table(
                ("gold>", "cosine>", "rank difference>", "first sentence", "second sentence"), rows
            )
        ],
    )
