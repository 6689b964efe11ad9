"""``train-nli``."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.options import given_options
from sbertkit.cli.output import print_facts, print_table
from sbertkit.cli.settings import Numbers
from sbertkit.cli.train_options import config_options, objective_options
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.formatting import decimal, percent, percent_interval
from sbertkit.progress import say
from sbertkit.training.data_forms import NLI

if TYPE_CHECKING:
    from sbertkit import TrainConfig, TrainResult


@click.command(name="train-nli")
@click.argument("data", type=PATH, nargs=-1)
@click.option("--base", required=True, metavar="MODEL", help="A model folder or a hub name.")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the model.")
@click.option("--pooling", type=click.Choice(tuple(POOLINGS)), default="mean", show_default=True)
@objective_options(NLI)
@click.option("--dev", metavar="FILE", help="Scored sentence pairs: a file, a folder, or stsb.")
@config_options(NLI)
@click.option(
    "--require-gain", "gain_wanted", is_flag=True, help="Exit 1 unless the dev score rose."
)
@click.option("--seeds", type=Numbers(), metavar="1,2,3", help="One run per seed, in DIR/seed-N.")
@click.option(
    "--ablate", type=click.Choice(("pooling",)), help="One run each for cls, mean, max and eos."
)
def train_nli(
    data: tuple[str, ...],
    output: str,
    config: "TrainConfig",
    gain_wanted: bool,
    seeds: tuple[int, ...] | None,
    ablate: str | None,
    **recipe: Any,
) -> None:
    """Train a sentence encoder on natural language inference.

    DATA are SNLI or MultiNLI releases, tables with premise, hypothesis and label (JSONL, TSV, CSV,
    Parquet, also gzipped) or data set folders; without any, the set all-nli is fetched from the
    hub. The model appears at DIR when it is done; until then everything is in DIR.run.

    \b
    Example:
      sbertkit train-nli snli_train.jsonl.gz --base bert-base-uncased -o models/nli --dev stsb.tsv
      sbertkit train-nli snli.jsonl --base models/mine -o models/nli --objective softmax --resume
    """
    _refuse_idle(click.get_current_context())
    from sbertkit.training.nli import nli_recipe
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train
    from sbertkit.training.sweeps import ablate_pooling, train_seeds

    made = nli_recipe(data=list(data) or None, config=config, **recipe)
    if seeds is not None:
        results = train_seeds(made, output, seeds)
        _print_seeds(results)
        gains = [result.gain for result in results.values()]
    elif ablate is not None:
        by_pooling = ablate_pooling(made, output)
        _print_poolings(by_pooling)
        gains = [result.gain for result in by_pooling.values()]
    else:
        result = train(made, output)
        if launch().is_main:
            print_facts(result_facts(result))
        gains = [result.gain]
    if gain_wanted:
        require_gain(gains)


def require_gain(gains: Sequence[float | None]) -> None:
    """Ends the program with status 1 unless every dev score rose."""
    if any(gain is None or gain <= 0 for gain in gains):
        say("sbertkit: error: the dev score did not rise, as --require-gain wants")
        sys.exit(1)


def _refuse_idle(context: click.Context) -> None:
    """Refuses options that would do nothing beside the others, so that nobody trusts in them."""
    given = given_options(context)
    if "dev" not in given:
        for name in ("gain_wanted", "patience", "drop_overlap"):
            if name in given:
                shown = "--require-gain" if name == "gain_wanted" else _flag(name)
                raise click.UsageError(f"{shown} needs --dev")
    for first, second in (("seeds", "ablate"), ("seeds", "seed"), ("ablate", "pooling")):
        if {first, second} <= given:
            raise click.UsageError(f"{_flag(first)} and {_flag(second)} do not go together")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def result_facts(result: "TrainResult") -> list[tuple[str, object]]:
    """What is printed of a finished run."""
    record = result.record
    reranks = record["task"] == "rerank"
    pooling = "" if reranks else f", pooling {record['pooling']}"
    facts: list[tuple[str, object]] = [
        ("model", result.folder),
        ("objective", f"{record['objective']}{pooling}"),
        ("examples", f"{record['examples']:,}, {record['examples_per_second']:,.1f} a second"),
        ("steps", _steps(record)),
    ]
    if result.after.spearman is not None:
        facts.append(("dev Spearman", f"{_score(result.after)}, before {_score(result.before)}"))
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


def _steps(record: Mapping[str, Any]) -> str:
    best = record["best_step"]
    taken = "" if best is None or best == record["steps"] else f", the best at {best} was taken"
    return f"{record['steps']:,} in {record['seconds']:,.0f} s{taken}"


def _print_seeds(results: "Mapping[int, TrainResult]") -> None:
    from sbertkit.training.sweeps import spread

    rows = [
        (seed, _score(result.before), _score(result.after), decimal(result.after.random_cosine))
        for seed, result in results.items()
    ]
    columns = ("seed>", "dev before>", "dev after>", "random cosine>")
    print_table(columns, rows)
    mean, deviation = spread(results, lambda result: result.after.spearman)
    if mean is not None:
        shown = "" if deviation is None else f", standard deviation {100 * deviation:.2f}"
        print_facts([("mean dev Spearman", f"{100 * mean:.2f}{shown}")])


def _print_poolings(results: "Mapping[str, TrainResult]") -> None:
    from sbertkit.training.sweeps import PUBLISHED_POOLINGS

    rows = [
        (
            name,
            percent(result.before.spearman),
            percent(result.after.spearman),
            decimal(result.before.random_cosine),
            decimal(result.after.random_cosine),
            decimal(result.before.effective_rank, 0),
            decimal(result.after.effective_rank, 0),
            decimal(PUBLISHED_POOLINGS.get(name), 2),
        )
        for name, result in results.items()
    ]
    # Eighty columns are enough for these.
    names = ("pooling", "before>", "after>", "cos>", "cos>", "rank>", "rank>", "SBERT*>")
    print_table(names, rows)
    print_facts(
        [
            ("before, after", "dev Spearman of the base and of the trained encoder"),
            ("cos, cos", "mean cosine of random pairs, before and after"),
            ("rank, rank", "effective rank, before and after"),
            ("SBERT*", "BERT-base, SNLI and MultiNLI, STS-B dev (Reimers & Gurevych 2019)"),
        ]
    )


def _score(quality: Any) -> str:
    text = percent(quality.spearman)
    return text if quality.interval is None else f"{text} ({percent_interval(quality.interval)})"
