"""The table of an ablation: dev scores and the space of its runs, beside published scores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from sbertkit.formatting import decimal, percent
from sbertkit.training.ablations import ABLATIONS
from sbertkit.training.report.markdown import code, table

if TYPE_CHECKING:
    from sbertkit.training.results import TrainResult

_LEGEND = {
    "before, after": "dev score of the base and of the trained encoder, times 100",
    "cos, cos": "mean cosine of random pairs, before and after",
    "rank, rank": "effective rank, before and after",
}
_PUBLISHED = {
    "nli": "BERT-base, SNLI and MultiNLI, STS-B dev (Reimers & Gurevych 2019)",
    "scored": "BERT-base, STS-B, STS-B dev (Reimers & Gurevych 2019)",
}
_SHORT = "SBERT*"


class AblationTable(NamedTuple):
    """A table of text.

    Attributes:
        columns: Their names; all but the first have numbers.
        rows: One per run.
        legend: What the columns are.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    legend: dict[str, str]


def ablation_table(name: str, results: "Mapping[str, TrainResult]") -> AblationTable:
    """The table of the runs of an ablation, in which 80 columns are enough."""
    form = next(iter(results.values())).record["form"]
    published = (ABLATIONS[name].published or {}).get(form)
    rows: list[tuple[str, ...]] = []
    for run, result in results.items():
        before, after = result.before, result.after
        row: tuple[str, ...] = (
            run,
            percent(before.dev_score),
            percent(after.dev_score),
            decimal(before.random_cosine),
            decimal(after.random_cosine),
            decimal(before.effective_rank, 0),
            decimal(after.effective_rank, 0),
        )
        rows.append(row if published is None else (*row, decimal(published.get(run), 2)))
    columns = (name, "before", "after", "cos", "cos", "rank", "rank")
    if published is None:
        return AblationTable(columns, rows, _LEGEND)
    return AblationTable((*columns, _SHORT), rows, {**_LEGEND, _SHORT: _PUBLISHED[form]})


def ablation_markdown(name: str, results: "Mapping[str, TrainResult]") -> str:
    """The same as Markdown, with what the runs have in common."""
    columns, rows, legend = ablation_table(name, results)
    steps = {result.steps for result in results.values()}
    budget = f"{min(steps):,}" if len(steps) == 1 else f"{min(steps):,} to {max(steps):,}"
    safe = [(code(first), *rest) for first, *rest in rows]
    notes = "\n".join(f"- {term}: {meaning}" for term, meaning in legend.items())
    shown = table([one.replace("*", "\\*") for one in columns], safe)
    return f"# Ablation: {name}\n\n{shown}\n\n{notes}\n- steps of each run: {budget}\n"
