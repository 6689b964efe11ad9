"""What is printed of finished training runs."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sbertkit.cli.output import print_facts, print_table
from sbertkit.formatting import decimal, percent, percent_interval
from sbertkit.progress import say

if TYPE_CHECKING:
    from sbertkit import TrainResult


def require_gain(gains: Sequence[float | None]) -> None:
    """Ends the program with status 1 unless every dev score rose."""
    if any(gain is None or gain <= 0 for gain in gains):
        say("sbertkit: error: the dev score did not rise, as --require-gain wants")
        sys.exit(1)


def result_facts(result: "TrainResult") -> list[tuple[str, object]]:
    """What is printed of a finished run."""
    record = result.record
    reranks = record["task"] == "rerank"
    pooling = "" if reranks else f", pooling {record['pooling']}"
    facts: list[tuple[str, object]] = [
        ("model", result.folder),
        ("objective", f"{_objective(record)}{pooling}"),
        ("examples", f"{record['examples']:,}, {record['examples_per_second']:,.1f} a second"),
        ("steps", _steps(record)),
    ]
    facts += _held_out(record.get("held_out") or {})
    measure = result.after.measure
    if result.after.dev_score is not None:
        facts.append((f"dev {measure}", f"{_score(result.after)}, before {_score(result.before)}"))
    if result.unmerged is not None:
        share = f"{record['settings']['merge_base']:g} of the base"
        score = result.unmerged.dev_score
        shown = "" if score is None else f"; dev {measure} before that {_score(result.unmerged)}"
        facts.append(("merged", f"{share}{shown}"))
    before, after = result.before, result.after
    facts += (
        []
        if reranks
        else [
            (
                "cosine of random pairs",
                f"{decimal(after.random_cosine)}, before {decimal(before.random_cosine)}",
            ),
            (
                "effective rank",
                f"{decimal(after.effective_rank, 1)}, before {decimal(before.effective_rank, 1)}",
            ),
        ]
    )
    if after.label_cosines:
        shown = ", ".join(f"{name} {value:.3f}" for name, value in after.label_cosines.items())
        facts.append(("score by label" if reranks else "cosine by label", shown))
    return facts


def _held_out(measured: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Loss and accuracy on texts that were held out, also of each of several tasks."""
    facts: list[tuple[str, object]] = []
    for key in measured.get("after", ()):
        if not key.startswith("held_out_loss"):
            continue
        sides = (
            f"{decimal(measured[side][key])}, accuracy "
            f"{percent(measured[side][key.replace('loss', 'accuracy', 1)])} %"
            for side in ("after", "before")
        )
        facts.append((key.replace("held_out_", "held-out "), "; before ".join(sides)))
    return facts


def _objective(record: Mapping[str, Any]) -> str:
    """The objective, or that of each of several sets."""
    sets = record.get("sets") or ()
    return ", ".join(f"{one['objective']} ({one['name']})" for one in sets) or record["objective"]


def _steps(record: Mapping[str, Any]) -> str:
    best = record["best_step"]
    taken = "" if best is None or best == record["steps"] else f", the best at {best} was taken"
    return f"{record['steps']:,} in {record['seconds']:,.0f} s{taken}"


def print_seeds(results: "Mapping[int, TrainResult]") -> None:
    """The table of runs that differ in the seed, and their mean."""
    from sbertkit.training.sweeps import spread

    rows = [
        (seed, _score(result.before), _score(result.after), decimal(result.after.random_cosine))
        for seed, result in results.items()
    ]
    columns = ("seed>", "dev before>", "dev after>", "random cosine>")
    print_table(columns, rows)
    mean, deviation = spread(results, lambda result: result.after.dev_score)
    if mean is not None:
        shown = "" if deviation is None else f", standard deviation {100 * deviation:.2f}"
        measure = next(iter(results.values())).after.measure
        print_facts([(f"mean dev {measure}", f"{100 * mean:.2f}{shown}")])


def print_ablation(name: str, results: "Mapping[str, TrainResult]") -> None:
    """The table of an ablation, beside published scores."""
    from sbertkit.training.report.ablation import ablation_table

    columns, rows, legend = ablation_table(name, results)
    print_table((columns[0], *(f"{column}>" for column in columns[1:])), rows)
    print_facts(list(legend.items()))


def _score(quality: Any) -> str:
    text = percent(quality.dev_score)
    return text if quality.interval is None else f"{text} ({percent_interval(quality.interval)})"
