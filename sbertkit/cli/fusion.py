"""The options of commands that search: by vectors, words or both, and how these become one."""

import functools
from typing import Any

import click

from sbertkit.cli.options import Command, given_options
from sbertkit.retrieval.modes import CONVEX, DENSE, FUSIONS, HYBRID, MODES

_mode_option = click.option(
    "--mode",
    type=click.Choice(MODES),
    default=DENSE,
    show_default=True,
    help="Compare vectors, find documents by their words, which loads no model, or do both.",
)
_method_option = click.option(
    "--fusion",
    "method",
    type=click.Choice(FUSIONS),
    default=CONVEX,
    show_default=True,
    help="In mode hybrid, a convex combination of the scores, or reciprocal ranks.",
)
_weight_option = click.option(
    "--weight",
    type=click.FloatRange(0, 1),
    help="In mode hybrid, what vectors count in a convex combination; words count the rest.  "
    "[default: 0.5]",
)


def mode_options(command: Command) -> Command:
    """Adds the mode of a search and its fusion; the command gets `mode` and `fusion`.

    The latter holds the argument `fusion` of a search; nothing in another mode.
    """

    @functools.wraps(command)
    def with_mode(*, mode: str, method: str, weight: float | None, **others: Any) -> Any:
        given = given_options(click.get_current_context())
        if mode != HYBRID and {"method", "weight"} & given:
            raise click.UsageError("--fusion and --weight are for --mode hybrid")
        if method != CONVEX and weight is not None:
            raise click.UsageError("--weight is for --fusion convex")
        fusion = {}
        if mode == HYBRID:
            from sbertkit.retrieval.fusion import Fusion

            fusion = {"fusion": Fusion(method) if weight is None else Fusion(method, weight)}
        return command(mode=mode, fusion=fusion, **others)

    return _mode_option(_method_option(_weight_option(with_mode)))  # type: ignore[return-value]
