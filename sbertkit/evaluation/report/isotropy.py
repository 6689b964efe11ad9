"""The report of an isotropy evaluation."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sbertkit.evaluation.isotropy import IsotropyResult, Space
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table, lineage_of
from sbertkit.formatting import decimal

COMPONENTS = (1, 3, 10)
"""Numbers of strongest components whose variance is summed."""


def space_table(result: IsotropyResult) -> Table:
    """Each measure before and after normalization."""
    rows = []
    for measure in fields(Space):
        title = measure.metadata["title"]
        values = [getattr(space, measure.name) for space in (result.before, result.after)]
        if measure.name != "variance_shares":
            rows.append((title, *map(decimal, values)))
            continue
        for count in COMPONENTS:
            sums = (None if shares is None else sum(shares[:count]) for shares in values)
            noun = "component" if count == 1 else "components"
            rows.append((f"{title} {count} {noun}", *map(decimal, sums)))
    return Table(("measure", "as pooled>", "normalized>"), rows)


def frequency_table(result: IsotropyResult) -> Table:
    """Rank correlations of length and distance from the mean with frequency."""
    rows = [
        (name, f"{found.items:,}", decimal(found.norm), decimal(found.center))
        for name, found in result.frequency.items()
    ]
    columns = ("rank correlation with frequency", "items>", "length>", "distance from mean>")
    return Table(columns, rows)


def layer_table(result: IsotropyResult) -> Table:
    """The mean cosine of random pairs by layer."""
    rows = [(layer, decimal(cosine)) for layer, cosine in enumerate(result.layers)]
    return Table(("layer>", "cosine of random pairs>"), rows)


def isotropy_page(result: IsotropyResult, about: Mapping[str, Any]) -> Page:
    """The page of a result.

    Args:
        result: Of `evaluate_isotropy`.
        about: What was evaluated, by name: ``model``, ``pooling``, ``corpus`` and more.
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
        **result.encoded.facts(),
    }
    sections = [_space(result), _frequency(result), _layers(result)]
    return Page(f"Isotropy: {about.get('model')}", headline, facts, sections, lineage_of(about))


def _space(result: IsotropyResult) -> Section:
    return Section(
        "The space",
        [
            "After L2 normalization the dot product equals the cosine, and the Euclidean distance "
            "is a function of it; it cannot change the cosine of any two texts.",
        ],
        [space_table(result)],
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
    return Section(
        "Frequency",
        [
            "Rank correlations of a vector's length, and of its distance from the mean vector, "
            "with the frequency of a token in these texts (for a text: of its tokens, on average). "
            "Below 0: frequent ones are shorter, or nearer to the mean.",
        ],
        [frequency_table(result)],
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
