"""``recipe``."""

import functools
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.options import quiet_option
from sbertkit.cli.output import print_facts, print_table
from sbertkit.cli.read_options import read_options
from sbertkit.cli.settings import setting_options
from sbertkit.cli.train_options import decorated
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.pipeline.config import RecipeConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from sbertkit import ReadOptions


def _config_options(command: "Callable[..., Any]") -> "Callable[..., Any]":
    """Adds the options of `RecipeConfig`; the command gets the `config`."""
    options = setting_options(RecipeConfig)

    @functools.wraps(command)
    def with_config(**given: Any) -> Any:
        config = RecipeConfig(**{name: given.pop(name) for name in options})
        return command(config=config, **given)

    return decorated(with_config, tuple(options.values()))


@click.command()
@click.argument("corpus", type=PATH)
@click.option(
    "--nli",
    type=PATH,
    multiple=True,
    required=True,
    metavar="DATA",
    help="What train-nli takes; several by repeating the option.",
)
@click.option(
    "-o", "--output", required=True, metavar="DIR", help="A new folder, or that of a recipe."
)
@click.option(
    "--base",
    default=BUNDLED_NAME,
    show_default=True,
    metavar="MODEL",
    help="A model folder or a hub name.",
)
@click.option(
    "--dev",
    metavar="FILE",
    help="Scored sentence pairs or a BEIR folder, or the name of such, as stsb.",
)
@click.option(
    "--eval",
    "collections",
    multiple=True,
    metavar="DATA",
    help="A collection in BEIR's layout to score each encoder on; several by repeating the option.",
)
@_config_options
@read_options
@quiet_option
def recipe(corpus: str, output: str, read: "ReadOptions", *, quiet: bool, **given: Any) -> None:
    """Adapt, train-nli, diagnose and index, with a report of what each step gave.

    CORPUS are your own texts. After each step the encoder is scored on parts of them, and on
    labeled data if there is any. DIR gets the models, the index and report.html. The same command
    again skips the steps whose inputs have not changed, and continues an interrupted one.

    \b
    Example:
      sbertkit recipe notes.txt --nli snli_train.jsonl.gz -o notes
      sbertkit recipe notes.txt --nli all-nli --dev stsb --eval scifact --task wwm -o notes
    """
    from sbertkit.pipeline import run_recipe
    from sbertkit.pipeline.report import index_facts, score_table

    found = run_recipe(corpus, output, read=read, progress=not quiet, **given)
    table = score_table(found)
    print_table(table.columns, table.rows)
    facts = index_facts(found)
    print_facts(
        [
            *(("advice", line) for line in found.advice),
            *((f"index: {name}", value) for name, value in facts.items()),
            ("report", str(found.report)),
        ]
    )
