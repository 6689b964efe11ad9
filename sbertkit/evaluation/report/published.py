"""Published results on a data set, where a suite has them."""

import os
from collections.abc import Sequence
from pathlib import PurePath

from sbertkit.evaluation.report.page import Section, Table
from sbertkit.evaluation.suites import read_suite, suite_names


def published_section(
    path: str | os.PathLike[str] | None, measured: Sequence[str]
) -> Section | None:
    """A table of this result and published ones; None where none are known.

    Args:
        path: The data's file or folder, recognized by its name: ``sts12.tsv``, ``scifact``.
        measured: The encoder's name and its score times 100.
    """
    rows: list[Sequence[object]] = []
    for suite in map(read_suite, suite_names()):
        for one in suite.sets:
            if path is None or _stem(one.path) != _stem(path):
                continue
            rows += [
                (f"published: {row.name}", f"{row.scores[one.name]:.2f}", row.source)
                for row in suite.published
                if one.name in row.scores
            ]
    if not rows:
        return None
    table = Table(
        ("encoder", "score × 100>", "source"),
        [(*measured, "this report"), *rows],
        marked=frozenset({0}),
    )
    return Section(
        "Comparison with published results",
        ["The data is recognized by its name; published results are for the whole test split."],
        [table],
    )


def _stem(path: str | os.PathLike[str]) -> str:
    name = PurePath(path).name
    return name.split(".")[0]
