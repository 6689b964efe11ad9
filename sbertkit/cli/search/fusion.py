"""The options of a search by vectors and words."""

import functools
from typing import Any

import click

from sbertkit.cli.options import Command, given_options

_METHODS = click.Choice(("convex", "rrf"))

_method_option = click.option(
    "--fusion",
    "method",
    type=_METHODS,
    default="convex",
    show_default=True,
    help="In mode hybrid, a convex combination of the scores, or reciprocal ranks.",
)
_weight_option = click.option(
    "--weight",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="In mode hybrid, what vectors count in a convex combination; words count the rest.",
)


def fusion_options(command: Command) -> Command:
    """Adds the options of fusion; the command, which has ``--mode``, gets `fusion`.

    That holds the argument `fusion` of a search; nothing in another mode.
    """

    @functools.wraps(command)
    def with_fusion(*, method: str, weight: float, mode: str, **others: Any) -> Any:
        given = given_options(click.get_current_context())
        if mode != "hybrid" and {"method", "weight"} & given:
            raise click.UsageError("--fusion and --weight are for --mode hybrid")
        if method != "convex" and "weight" in given:
            raise click.UsageError("--weight is for --fusion convex")
        fusion = {}
        if mode == "hybrid":
            from sbertkit.retrieval.fusion import Fusion

            fusion = {"fusion": Fusion(method, weight)}
        return command(fusion=fusion, mode=mode, **others)

    return _method_option(_weight_option(with_fusion))  # type: ignore[return-value]
