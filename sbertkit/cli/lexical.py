"""Options about the lexical index of documents."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_PARAMETERS = (
    click.option(
        "--language",
        metavar="LANGUAGE",
        help="Of most texts, such as english, german, chinese or japanese; none for words without "
        "stems.  [default: detected from a sample]",
    ),
    click.option(
        "--k1",
        type=click.FloatRange(min=0),
        help="Of BM25: how much further occurrences of a word add.  [default: 1.2]",
    ),
    click.option(
        "--b",
        type=click.FloatRange(0, 1),
        help="Of BM25: how much the length of a document counts.  [default: 0.75]",
    ),
)


def lexical_options(default: bool | None, help_text: str) -> Callable[[Command], Command]:
    """Adds what is asked of the lexical index; the command gets `lexical`.

    Args:
        default: Whether there is one without ``--lexical`` and ``--no-lexical``; ``None`` leaves
            `lexical` None unless an option is given.
        help_text: What ``--lexical`` does there.
    """
    choice = click.option(
        "--lexical/--no-lexical", default=default, show_default=default is not None, help=help_text
    )

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_lexical(
            *,
            lexical: bool | None,
            language: str | None,
            k1: float | None,
            b: float | None,
            **others: Any,
        ) -> Any:
            from sbertkit.errors import InputError
            from sbertkit.lexical.options import LexicalOptions

            given = {"language": language, "k1": k1, "b": b}
            chosen = {name: value for name, value in given.items() if value is not None}
            if not chosen:
                return command(lexical=lexical, **others)
            if lexical is False:
                raise click.UsageError(f"--{next(iter(chosen))} goes with no --no-lexical")
            try:
                options = LexicalOptions(**chosen)  # type: ignore[arg-type]
            except InputError as error:
                raise click.UsageError(error.in_shell) from error
            return command(lexical=options, **others)

        decorated: Callable[..., Any] = with_lexical
        for option in reversed((choice, *_PARAMETERS)):  # click lists the last decorated first
            decorated = option(decorated)
        return decorated  # type: ignore[return-value]

    return add
