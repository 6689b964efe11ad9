"""Options that several commands share, and what they describe."""

import functools
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbertkit.cli.completion import MODEL
from sbertkit.encoder.backends import BACKEND_CHOICES, PRECISIONS
from sbertkit.encoder.long_options import DEFAULT_LONG, LONG_CHOICES, LongOptions
from sbertkit.encoder.pooling import POOLINGS

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

Command = TypeVar("Command", bound=Callable[..., Any])
LoadEncoder = Callable[[], "Encoder"]

DEFAULT_MODEL = "all-MiniLM-L6-v2"

device_option = click.option(
    "--device",
    metavar="DEVICE",
    default="auto",
    show_default=True,
    help="auto, cpu, cuda, cuda:1 or mps.",
)
dim_option = click.option(
    "--dim",
    type=click.IntRange(min=1),
    help="Truncate vectors to this size; for models trained for it (Matryoshka).",
)
trust_option = click.option(
    "--trust-remote-code", is_flag=True, help="Run Python code that comes with the model."
)
resume_option = click.option(
    "--resume",
    is_flag=True,
    help="Go on with what a killed run has done; keep what this one does if it is interrupted.",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress; warnings are still shown.")


no_progress_option = click.option(
    "--quiet",
    is_flag=True,
    expose_value=False,
    help="Taken by every command; this has no progress.",
)


def _wait(context: click.Context, _: click.Parameter, seconds: float | None) -> None:
    from sbertkit.lock import waiting

    context.with_resource(waiting(seconds))


wait_option = click.option(
    "--wait",
    type=click.FloatRange(0, clamp=False),
    metavar="SECONDS",
    callback=_wait,
    expose_value=False,
    help="Wait so long for another process that writes the index; by default not at all.",
)


def _filter(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    from sbertkit.retrieval.filters import parse_filter

    # What the locale of the shell could not decode is most often UTF-8.
    text = os.fsencode(given).decode("utf-8", "replace")
    parse_filter(text)  # refused before anything is loaded
    return text


filter_option = click.option(
    "--filter",
    "condition",
    metavar="FILTER",
    callback=_filter,
    help="""Only documents that match it, such as 'lang = "en" and year >= 2020'.""",
)


def _measures(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    names = (re.split(r",(?![^(]*\))", one) for one in given)  # at no comma within brackets
    return tuple(name.strip() for group in names for name in group)


measure_option = click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAMES",
    callback=_measures,
    help="As ir-measures spells them, such as nDCG@10,P(rel=2)@5; may be given several times.",
)

_ENCODER_OPTIONS = (
    click.option(
        "--model",
        metavar="MODEL",
        type=MODEL,
        default=DEFAULT_MODEL,
        show_default=True,
        help="A model folder or a hub name.",
    ),
    click.option(
        "--pooling", type=click.Choice(tuple(POOLINGS)), help="By default, as the model declares."
    ),
    click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a text may have."),
    dim_option,
    click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default="fp32",
        show_default=True,
        help="auto: the fastest that changes the vectors next to nothing.",
    ),
    click.option(
        "--backend",
        type=click.Choice(BACKEND_CHOICES),
        default="auto",
        show_default=True,
        help="auto: what suits device and job.",
    ),
    device_option,
    trust_option,
)


_OVERLAP_OPTION = click.option(
    "--overlap",
    type=click.IntRange(min=0),
    metavar="TOKENS",
    default=0,
    show_default=True,
    help="Of the passage before that a passage begins with.",
)


def long_options(default: str | None, help_text: str) -> Callable[[Command], Command]:
    """Adds what is done with long texts; the command gets `long`.

    Args:
        default: The default of ``--long``; without one, `long` is None unless an option is given.
        help_text: What each choice does there.
    """
    choice = click.option(
        "--long",
        type=click.Choice(tuple(LONG_CHOICES)),
        default=default,
        show_default=default is not None,
        help=help_text,
    )

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_long(*, long: str | None, overlap: int, **others: Any) -> Any:
            from sbertkit.errors import InputError

            if long is None and not overlap:
                return command(long=None, **others)
            try:
                options = LongOptions(long or DEFAULT_LONG, overlap)
            except InputError as error:
                raise click.UsageError(error.in_shell) from error
            return command(long=options, **others)

        return with_options(with_long, (choice, _OVERLAP_OPTION))  # type: ignore[return-value]

    return add


def given_options(context: click.Context) -> set[str]:
    """The parameters that stand on the command line, by their names in the program."""
    return {
        name
        for name in context.params
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }


def encoder_options(command: Command) -> Command:
    """Adds the options that choose an encoder; the command gets `load_encoder`, which loads it."""

    @functools.wraps(command)
    def with_encoder(
        *,
        model: str,
        pooling: str | None,
        max_tokens: int | None,
        dim: int | None,
        precision: str,
        backend: str,
        device: str,
        trust_remote_code: bool,
        **others: Any,
    ) -> Any:
        def load() -> "Encoder":
            from sbertkit.encoder import Encoder

            return Encoder.load(
                model,
                pooling=pooling,
                max_tokens=max_tokens,
                dim=dim,
                precision=precision,
                backend=backend,
                device=device,
                trust_remote_code=trust_remote_code,
            )

        return command(load_encoder=load, **others)

    return with_options(with_encoder, _ENCODER_OPTIONS)  # type: ignore[return-value]


def with_options(
    command: Callable[..., Any], options: tuple[Callable[[Command], Command], ...]
) -> Callable[..., Any]:
    """A command with options, in their order."""
    for option in reversed(options):  # click lists the last decorated first
        command = option(command)
    return command
