"""``train-nli``, ``train-sts`` and ``train-pairs``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.output import print_facts
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
from sbertkit.cli.train_report import print_poolings, print_seeds, require_gain, result_facts
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.training.data_forms import NLI, PAIRS, SCORED, DataForm

if TYPE_CHECKING:
    from sbertkit import TrainConfig
    from sbertkit.training.recipe import Recipe


def _encoder_options(form: DataForm) -> Decorator:
    """The options of all commands that train encoders of texts on a form of data."""
    options = (
        click.option(
            "--base", required=True, metavar="MODEL", help="A model folder or a hub name."
        ),
        click.option(
            "-o", "--output", required=True, metavar="DIR", help="A new folder for the model."
        ),
        click.option(
            "--pooling", type=click.Choice(tuple(POOLINGS)), default="mean", show_default=True
        ),
        objective_options(form),
        click.option(
            "--dev", metavar="FILE", help="Scored sentence pairs: a file, a folder, or stsb."
        ),
        config_options(form),
        require_gain_option,
        click.option(
            "--seeds", type=Numbers(), metavar="1,2,3", help="One run per seed, in DIR/seed-N."
        ),
        click.option(
            "--ablate",
            type=click.Choice(("pooling",)),
            help="One run each for cls, mean, max and eos.",
        ),
    )
    return lambda command: decorated(command, options)


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
    """Trains once, or once per seed or pooling, and prints the result."""
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train
    from sbertkit.training.sweeps import ablate_pooling, train_seeds

    made = make(data=data, **recipe)
    if seeds is not None:
        results = train_seeds(made, output, seeds)
        print_seeds(results)
        gains = [result.gain for result in results.values()]
    elif ablate is not None:
        by_pooling = ablate_pooling(made, output)
        print_poolings(by_pooling)
        gains = [result.gain for result in by_pooling.values()]
    else:
        result = train(made, output)
        if launch().is_main:
            print_facts(result_facts(result))
        gains = [result.gain]
    if gain_wanted:
        require_gain(gains)
