"""The report of an isotropy evaluation."""

from collections.abc import Mapping
from typing import Any

from sbertkit.evaluation.isotropy import IsotropyResult
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.formatting import decimal

MEASURES = (
    ("cosine of random pairs", "random_cosine"),
    ("dot product of random pairs", "random_dot"),
    ("distance of random pairs", "random_distance"),
    ("uniformity (lower is more even)", "uniformity"),
    ("alignment of halves (lower is closer)", "alignment"),
    ("effective rank", "effective_rank"),
    ("IsoScore", "isoscore"),
    ("mean length", "norm"),
    ("deviation of lengths", "norm_deviation"),
)
"""What is shown of a space, and where it stands."""

COMPONENTS = (1, 3, 10)
"""So many of the strongest components are summed."""


def space_rows(result: IsotropyResult) -> list[tuple[str, str, str]]:
    """Each measure before and after normalization."""
    before, after = result.before, result.after
    rows = [
        (name, decimal(getattr(before, field)), decimal(getattr(after, field)))
        for name, field in MEASURES
    ]
    for count in COMPONENTS:
        sums = [
            None if space.variance_shares is None else sum(space.variance_shares[:count])
            for space in (before, after)
        ]
        noun = "component" if count == 1 else "components"
        rows.append((f"variance of the first {count} {noun}", decimal(sums[0]), decimal(sums[1])))
    return rows


def isotropy_page(result: IsotropyResult, about: Mapping[str, Any]) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_isotropy`.
        about: What was measured, by name: ``model``, ``pooling``, ``corpus`` and more.
    """
    headline = {
        "cosine of random pairs": decimal(result.before.random_cosine),
        "effective rank": decimal(result.before.effective_rank, 1),
        "IsoScore": decimal(result.before.isoscore),
        "texts": f"{result.texts:,}",
    }
    facts = {
        "model": about.get("model"),
        "pooling": about.get("pooling"),
        "corpus": f"{about.get('corpus')}, {result.texts:,} of {result.documents:,} texts",
    }
    sections = [_space(result), _frequency(result), _layers(result)]
    return Page(f"Isotropy: {about.get('model')}", headline, facts, sections, dict(about))


def _space(result: IsotropyResult) -> Section:
    return Section(
        "The space",
        [
            "L2 normalization makes the dot product the cosine, and the Euclidean distance a "
            "function of it; the cosine of any two texts it cannot change.",
        ],
        [Table(("measure", "as pooled>", "normalized>"), space_rows(result))],
        [
            Picture(
                figures.histogram(
                    result.histogram, -1.0, 1.0, x_label="cosine", name="random pairs"
                ),
                "Cosines of pairs of texts drawn at random: near 0 the vectors use all "
                "directions, near 1 they lie in a narrow cone.",
            )
        ],
    )


def _frequency(result: IsotropyResult) -> Section:
    rows = [
        (name, f"{found.items:,}", decimal(found.norm), decimal(found.centre))
        for name, found in result.frequency.items()
    ]
    return Section(
        "Frequency",
        [
            "Rank correlations of a vector's length, and of its distance from the mean vector, "
            "with how frequent a token is in these texts (of a text: its tokens, on average). "
            "Below 0: frequent ones are shorter, or nearer to the middle.",
        ],
        [Table(("vectors of", "items>", "length>", "distance from mean>"), rows)],
    )


def _layers(result: IsotropyResult) -> Section:
    return Section(
        "Layers",
        pictures=[
            Picture(
                figures.line(
                    result.layers, x_label="layer", y_label="cosine of random pairs", name="layers"
                ),
                "Mean cosine of random pairs by layer, from the embeddings (0) to the last.",
            )
        ],
    )
