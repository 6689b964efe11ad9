"""The report of a diagnosis."""

from collections.abc import Mapping
from typing import Any

from sbertkit.evaluation.diagnosis import Diagnosis, Judged
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table
from sbertkit.formatting import decimal

_SHOWN = 40
_DRAWN = 20


def advice(found: Diagnosis) -> str:
    """What to do, in a sentence."""
    gain = _gain(found)
    if found.best.candidate == found.current.candidate:
        return f"leave it as it is ({found.current.candidate}): nothing that was tried is better"
    if found.leaves_it:
        return (
            f"leave it as it is ({found.current.candidate}): {found.best.candidate} came out best, "
            f"but is not better beyond doubt (by the other half of the pairs: {gain})"
        )
    return (
        f"take {found.best.candidate} in the place of {found.current.candidate} (by the other half "
        f"of the pairs: {gain})"
    )


def candidate_rows(
    found: Diagnosis, count: int
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Columns and rows of the best candidates, and of the encoder as it is."""
    columns = ("configuration", "score>", "cosine of random pairs>", "uniformity>")
    shown = list(found.judged[:count])
    if found.current not in shown:
        shown.append(found.current)
    return columns, [_row(one, found) for one in shown]


def diagnosis_page(found: Diagnosis, about: Mapping[str, Any]) -> Page:
    """The page of a diagnosis.

    Args:
        found: Of `diagnose`.
        about: What was diagnosed, by name: ``model``, ``corpus`` and more.
    """
    headline = {
        "recommended": str(found.recommended.candidate),
        "gain of the best": _gain(found),
        "tried": f"{len(found.judged):,}",
        "pairs": f"{found.pairs:,}",
    }
    facts = {
        "model": about.get("model"),
        "corpus": f"{about.get('corpus')}, {len(found.texts):,} of {found.documents:,} texts",
        "advice": advice(found),
    }
    columns, rows = candidate_rows(found, _SHOWN)
    marked = frozenset(
        place
        for place, row in enumerate(rows)
        if row[0] in (_name(found.current, found), _name(found.recommended, found))
    )
    best = found.judged[:_DRAWN]
    sections = [
        Section(
            "What was tried",
            [
                "The score is how well two parts of a text (neighbouring sentences, or halves) "
                "find each other: the mean reciprocal rank, 1 at best. The last columns tell how "
                "even the space is; they decide nothing, since an even space can be a bad one.",
                f"The best {len(rows):,} of {len(found.judged):,}, chosen on half of the pairs; "
                "its gain is measured on the other half.",
            ],
            [Table(columns, rows, marked=marked)],
            [
                Picture(
                    figures.bars(
                        [_name(one, found) for one in best],
                        [one.score for one in best],
                        [None] * len(best),
                        x_label="score",
                        name="candidates",
                    ),
                    f"The {len(best)} best.",
                ),
                Picture(
                    figures.scatter(
                        [one.random_cosine or 0.0 for one in found.judged],
                        [one.score for one in found.judged],
                        x_label="cosine of random pairs",
                        y_label="score",
                        name="isotropy and score",
                    ),
                    "Each dot is a configuration: an even space (left) is not yet a good one (up).",
                ),
            ],
        )
    ]
    return Page(f"Diagnosis: {about.get('model')}", headline, facts, sections, dict(about))


def _row(one: Judged, found: Diagnosis) -> tuple[object, ...]:
    return (
        _name(one, found),
        decimal(one.score, 4),
        decimal(one.random_cosine),
        decimal(one.uniformity),
    )


def _name(one: Judged, found: Diagnosis) -> str:
    own = one.candidate == found.current.candidate
    return f"{one.candidate} (as it is)" if own else str(one.candidate)


def _gain(found: Diagnosis) -> str:
    interval = found.gain.interval
    between = "" if interval is None else f", {interval.low:+.4f} to {interval.high:+.4f}"
    return f"{found.gain.difference:+.4f}{between}"
