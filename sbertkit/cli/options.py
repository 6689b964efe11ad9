"""Options that several commands share."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions
    from sbertkit.encoder import Encoder

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_MODEL = "all-MiniLM-L6-v2"

_POOLINGS = ("cls", "mean", "max", "eos", "mean_sqrt_len", "weighted_mean", "first_last")
_FORMATS = ("txt", "jsonl", "tsv", "csv", "parquet", "beir", "folder")

model_option = click.option(
    "--model",
    metavar="MODEL",
    default=DEFAULT_MODEL,
    show_default=True,
    help="A model folder or a hub name.",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress; warnings are still shown.")


def encoder_options(command: Command) -> Command:
    """Adds the options that choose and set up the encoder."""
    for option in (
        click.option("--device", metavar="DEVICE", default="auto", help="auto, cpu, cuda or mps."),
        click.option(
            "--trust-remote-code", is_flag=True, help="Run Python code that comes with the model."
        ),
        click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a text may have."),
        click.option(
            "--pooling", type=click.Choice(_POOLINGS), help="By default, as the model declares."
        ),
        model_option,
    ):
        command = option(command)
    return command


def read_options(command: Command) -> Command:
    """Adds the options that say how a corpus is read."""
    for option in (
        click.option("--skip-bad-lines", is_flag=True, help="Leave bad lines out and list them."),
        click.option(
            "--errors",
            type=click.Choice(("strict", "replace")),
            default="strict",
            show_default=True,
            help="Refuse bytes that cannot be decoded, or replace them by U+FFFD.",
        ),
        click.option("--encoding", default="utf-8", show_default=True, help="Text encoding."),
        click.option(
            "--format",
            "corpus_format",
            type=click.Choice(_FORMATS),
            help="By default, as the corpus's name tells.",
        ),
    ):
        command = option(command)
    return command


def encoder_loader(options: Mapping[str, Any]) -> "Callable[[], Encoder]":
    """A function that loads the encoder which a command's options describe."""

    def load() -> "Encoder":
        from sbertkit.encoder import Encoder

        return Encoder.load(
            options["model"],
            pooling=options["pooling"],
            max_tokens=options["max_tokens"],
            device=options["device"],
            trust_remote_code=options["trust_remote_code"],
        )

    return load


def reading(options: Mapping[str, Any]) -> "ReadOptions":
    """The read options that a command's options describe."""
    from sbertkit.data import ReadOptions

    return ReadOptions(
        format=options["corpus_format"],
        encoding=options["encoding"],
        errors=options["errors"],
        skip_bad_lines=options["skip_bad_lines"],
    )
