"""``train-nli``, ``train-sts``, ``train-pairs`` and ``distill``."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.output import print_facts
from sbertkit.cli.read_options import read_options
from sbertkit.cli.settings import Numbers
from sbertkit.cli.train_options import (
    Decorator,
    config_options,
    decorated,
    mining_options,
    objective_options,
    opened_index,
    refuse_idle,
    require_gain_option,
)
from sbertkit.cli.train_report import print_ablation, print_seeds, require_gain, result_facts
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.training.ablations import ablations_of
from sbertkit.training.data_forms import DISTILLED, NLI, PAIRS, SCORED, DataForm

if TYPE_CHECKING:
    from sbertkit import TrainConfig
    from sbertkit.training.recipe import Recipe


_output_option = click.option(
    "-o", "--output", required=True, metavar="DIR", help="A new folder for the model."
)
_seeds_option = click.option(
    "--seeds", type=Numbers(), metavar="1,2,3", help="One run per seed, in DIR/seed-N."
)


def _training_options(*forms: DataForm) -> tuple[Decorator, ...]:
    """The options of all commands that train encoders of texts on forms of data."""
    return (
        objective_options(*forms),
        click.option(
            "--dev",
            metavar="FILE",
            help="Scored sentence pairs or a BEIR folder, or the name of such, as stsb.",
        ),
        config_options(*forms),
        require_gain_option,
        _seeds_option,
    )


def _encoder_options(form: DataForm) -> Decorator:
    """The options of all commands that train a base on a form of data."""
    ablations = ablations_of(form)
    kinds = (f"{name}, {one.help}" for name, one in ablations.items())
    options: tuple[Decorator, ...] = (
        click.option(
            "--base", required=True, metavar="MODEL", help="A model folder or a hub name."
        ),
        _output_option,
        click.option(
            "--pooling", type=click.Choice(tuple(POOLINGS)), default="mean", show_default=True
        ),
        *_training_options(form),
        click.option(
            "--ablate",
            type=click.Choice(tuple(ablations)),
            help=f"One run each, and their table: {'; '.join(kinds)}.",
        ),
    )
    return lambda command: decorated(command, options)


def _distill_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `distill` that it has in common with other trainings."""
    return decorated(command, _training_options(*DISTILLED))


@click.command(name="train-nli")
@click.argument("data", type=PATH, nargs=-1)
@_encoder_options(NLI)
def train_nli(data: tuple[str, ...], **given: Any) -> None:
    """Train a sentence encoder on natural language inference.

    DATA are SNLI or MultiNLI releases, tables with premise, hypothesis and label (JSONL, TSV, CSV,
    Parquet, also gzipped) or data set folders; without any, the set all-nli is fetched from the
    hub. The model appears at DIR when it is done; until then everything is in DIR.run.

    \b
    Example:
      sbertkit train-nli snli_train.jsonl.gz --base bert-base-uncased -o models/nli --dev stsb.tsv
      sbertkit train-nli snli.jsonl --base models/mine -o models/nli --objective softmax --resume
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.nli import nli_recipe

    _train(nli_recipe, list(data) or None, **given)


@click.command(name="train-sts")
@click.argument("data", type=PATH, nargs=-1, required=True)
@_encoder_options(SCORED)
def train_sts(data: tuple[str, ...], **given: Any) -> None:
    """Train a sentence encoder on scored pairs of sentences.

    DATA are tables with sentence1, sentence2 and score (TSV, CSV, JSONL, Parquet, also gzipped),
    the release of the STS benchmark, data set folders, or names such as stsb, of which the split
    train is used. The model appears at DIR when it is done; until then everything is in DIR.run.

    \b
    Example:
      sbertkit train-sts stsb.tsv --scale 0-5 --base models/nli -o models/sts --dev stsb.tsv
      sbertkit train-sts pairs.jsonl --base models/mine -o models/sts --objective cosine
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.sts import sts_recipe

    _train(sts_recipe, list(data), **given)


@click.command(name="train-pairs")
@click.argument("data", type=PATH, nargs=-1, required=True)
@_encoder_options(PAIRS)
@mining_options
def train_pairs(
    data: tuple[str, ...], mine: str | None, config: "TrainConfig", **given: Any
) -> None:
    """Train a sentence encoder on pairs and triplets.

    DATA are tables (JSONL, TSV, CSV, Parquet, also gzipped) with anchor or query, positive and, if
    there are any, negative, each a text or a list (also pos and neg, or negative_1, negative_2 and
    so on); with query, document and label from 0 to 1; data set folders; or folders in BEIR's
    layout, of which the split train is used. The model appears at DIR when it is done; until then
    everything is in DIR.run.

    \b
    Example:
      sbertkit train-pairs pairs.jsonl --base models/nli -o models/pairs
      sbertkit train-pairs scifact --base models/nli -o models/scifact --mine indexes/scifact \\
        --negatives 2 --mine-margin 0.05
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.pairs import pairs_recipe

    with opened_index(mine, config) as index:
        _train(pairs_recipe, list(data), mine=index, config=config, **given)


@click.command(name="distill")
@click.argument("data", type=PATH, nargs=-1)
@click.option("--teacher", required=True, metavar="MODEL", help="A model folder or a hub name.")
@click.option(
    "--student", metavar="MODEL", help="Another encoder; by default, layers of the teacher."
)
@click.option(
    "--layers",
    type=Numbers(),
    metavar="3 or 0,2,5",
    help="So many layers of the student, evenly spaced, or these, counted from 0.",
)
@click.option(
    "--parallel",
    multiple=True,
    type=PATH,
    help="In place of DATA: a table of sentences with translations; or, given several times, files "
    "of lines, the sentences first, then their translations.",
)
@_output_option
@click.option(
    "--pooling", type=click.Choice(tuple(POOLINGS)), help="By default, what the student declares."
)
@read_options
@_distill_options
def distill(
    data: tuple[str, ...],
    layers: tuple[int, ...] | None,
    parallel: tuple[str, ...],
    **given: Any,
) -> None:
    """Train a smaller or multilingual encoder by the vectors of a teacher.

    DATA are corpora of plain texts in any format that index reads; with --objective teacher-scores
    tables of pairs (sentence1 and sentence2, anchor and positive, or the like), or names such as
    stsb. The model appears at DIR when it is done; until then everything is in DIR.run, the
    teacher's vectors too.

    \b
    Example:
      sbertkit distill texts.txt --teacher all-MiniLM-L6-v2 --layers 3 -o models/small
      sbertkit distill --parallel en-de.tsv --teacher all-MiniLM-L6-v2 --student xlm-roberta-base \\
        -o models/multilingual
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.distill import distill_recipe

    wanted = None if layers is None else layers[0] if len(layers) == 1 else layers
    made = partial(distill_recipe, layers=wanted, parallel=list(parallel) or None)
    _train(made, list(data) or None, ablate=None, **given)


def _train(
    make: "Callable[..., Recipe]",
    data: list[str] | None,
    *,
    output: str,
    gain_wanted: bool,
    seeds: tuple[int, ...] | None,
    ablate: str | None,
    **recipe: Any,
) -> None:
    """Trains once, or once per seed or form of what is ablated, and prints the result."""
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train
    from sbertkit.training.sweeps import ablate as train_forms
    from sbertkit.training.sweeps import train_seeds

    made = make(data=data, **recipe)
    if seeds is not None:
        results = train_seeds(made, output, seeds)
        if launch().is_main:
            print_seeds(results)
        gains = [result.gain for result in results.values()]
    elif ablate is not None:
        by_form = train_forms(made, output, ablate)
        if launch().is_main:
            print_ablation(ablate, by_form)
        gains = [result.gain for result in by_form.values()]
    else:
        result = train(made, output)
        if launch().is_main:
            print_facts(result_facts(result))
        gains = [result.gain]
    if gain_wanted:
        require_gain(gains)
