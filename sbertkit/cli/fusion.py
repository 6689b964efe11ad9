"""The options of commands that search: by vectors, words or both, and how these become one."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.options import Command, given_options
from sbertkit.retrieval.modes import CONVEX, FUSIONS, HYBRID, MODES

if TYPE_CHECKING:
    from sbertkit.retrieval.results import WeightInfo


class WeightOrAuto(click.ParamType[Any]):
    """A weight of vectors, or ``auto``."""

    name = "weight"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """The weight, 0 to 1, or ``auto``."""
        if value == "auto":
            return "auto"
        weight: float = click.FloatRange(0, 1).convert(value, param, ctx)
        return weight


def weight_text(weight: "WeightInfo") -> str:
    """What vectors count in a hybrid search, in a line."""
    if weight.queries:
        changed = f", {weight.changed:,} vectors changed since" if weight.changed else ""
        source = f"measured with {weight.queries:,} {weight.source}{changed}"
    else:
        source = "given" if weight.source == "given" else "by default, not measured"
    return f"{weight.value:g} of vectors and {1 - weight.value:g} of words, {source}"


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
    "[default: that of the index]",
)


def mode_options(default: str | None) -> Callable[[Command], Command]:
    """Adds the mode of a search and its fusion; the command gets `mode` and `fusion`.

    The latter holds the argument `fusion` of a search, if options say something of it.

    Args:
        default: The mode without ``--mode``; ``None`` for what `mode_taken` says.
    """
    at_default = "  [default: hybrid where DIR has words, dense for passages]"
    mode_option = click.option(
        "--mode",
        type=click.Choice(MODES),
        default=default,
        show_default=default is not None,
        help="Compare vectors, find documents by their words, which loads no model, or do both."
        f"{at_default if default is None else ''}",
    )

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_mode(*, mode: str | None, method: str, weight: float | None, **others: Any) -> Any:
            given = {"method", "weight"} & given_options(click.get_current_context())
            if given and mode not in (None, HYBRID):
                raise click.UsageError("--fusion and --weight are for --mode hybrid")
            if method != CONVEX and weight is not None:
                raise click.UsageError("--weight is for --fusion convex")
            fusion = {}
            if given:
                from sbertkit.retrieval.fusion import Fusion

                fusion = {"fusion": Fusion(method, weight)}
            return command(mode=mode, fusion=fusion, **others)

        return mode_option(_method_option(_weight_option(with_mode)))  # type: ignore[return-value]

    return add
