"""The report of a diagnosis."""

from collections.abc import Mapping
from typing import Any

from sbertkit.evaluation.diagnosis import CandidateScore, Diagnosis
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Page, Picture, Section, Table, lineage_of
from sbertkit.formatting import decimal, interval_text

_MAX_ROWS = 40
_MAX_BARS = 20


def advice(found: Diagnosis) -> str:
    """The recommendation in a sentence."""
    best, current = found.best.candidate, found.current.candidate
    gain = f"gain on the validation half: {_gain(found)}"
    if best == current:
        return f"keep {current}: no other configuration scored higher"
    if found.keeps_current:
        return f"keep {current}: {best} scored highest, but not significantly ({gain})"
    return f"use {best} instead of {current} ({gain})"


def candidate_table(found: Diagnosis, count: int) -> Table:
    """The best candidates, and the current one; the recommended and the current are marked."""
    shown = list(found.candidates[:count])
    if found.current not in shown:
        shown.append(found.current)
    rows = [
        (
            _name(one, found),
            decimal(one.score, 4),
            decimal(one.random_cosine),
            decimal(one.uniformity),
        )
        for one in shown
    ]
    marked = frozenset(
        row for row, one in enumerate(shown) if one in (found.current, found.recommended)
    )
    columns = ("configuration", "score>", "cosine of random pairs>", "uniformity>")
    return Table(columns, rows, marked=marked)


def diagnosis_page(found: Diagnosis, about: Mapping[str, Any]) -> Page:
    """The page of a diagnosis.

    Args:
        found: Of `diagnose`.
        about: What was diagnosed, by name: ``model``, ``corpus`` and more.
    """
    headline = {
        "recommended": str(found.recommended.candidate),
        "gain of the best": _gain(found),
        "tried": f"{len(found.candidates):,}",
        "pairs": f"{found.pairs:,}",
    }
    facts = {
        "model": about.get("model"),
        "corpus": f"{about.get('corpus')}, {len(found.texts):,} of {found.documents:,} texts",
        **found.encoded.facts(),
        "advice": advice(found),
    }
    table = candidate_table(found, _MAX_ROWS)
    best = found.candidates[:_MAX_BARS]
    sections = [
        Section(
            "Candidates",
            [
                "The score is how well two parts of a text (neighboring sentences, or halves) "
                "find each other and their text: the mean product of the two reciprocal ranks, at "
                "most 1. The last columns show how "
                "even the space is; they are not used, since an even space can be a bad one.",
                f"The best {len(table.rows):,} of {len(found.candidates):,}, scored on the "
                "selection half of the pairs; the gain is measured on the validation half.",
            ],
            [table],
            [
                Picture(
                    figures.bars(
                        [_name(one, found) for one in best],
                        [one.score for one in best],
                        x_label="score",
                        name="candidates",
                    ),
                    f"The {len(best)} best.",
                ),
                Picture(
                    figures.scatter(
                        [one.random_cosine or 0.0 for one in found.candidates],
                        [one.score for one in found.candidates],
                        x_label="cosine of random pairs",
                        y_label="score",
                        name="isotropy and score",
                    ),
                    "Each dot is a configuration: an even space (left) need not be good (top).",
                ),
            ],
        )
    ]
    return Page(f"Diagnosis: {about.get('model')}", headline, facts, sections, lineage_of(about))


def _name(one: CandidateScore, found: Diagnosis) -> str:
    current = one.candidate == found.current.candidate
    return f"{one.candidate} (current)" if current else str(one.candidate)


def _gain(found: Diagnosis) -> str:
    gain = decimal(found.gain.difference, 4, sign="+")
    return f"{gain} ({interval_text(found.gain.interval, sign='+')})"
