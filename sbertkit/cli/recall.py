"""Options about the recall of an index, and how a recall is shown."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.output import print_table
from sbertkit.formatting import decimal

if TYPE_CHECKING:
    from sbertkit.retrieval.results import MeasuredRecall

memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help="What a search may have in memory, without the encoder, such as 2GB; by default any.",
)

tuning_queries_option = click.option(
    "--queries",
    metavar="FILE",
    type=PATH,
    help="Queries to tune with, which should be like those to come: lines of text or a table; by "
    "default parts of documents.",
)

factory_option = click.option(
    "--factory", metavar="STRING", help="For kind factory, what faiss makes an index of."
)


def recall_text(measured: "MeasuredRecall") -> str:
    """A measured recall in a line."""
    age = f"{measured.changed:,} vectors changed since" if measured.changed else "nothing changed"
    return (
        f"recall@10 {decimal(measured.recall, 4)} (at least {decimal(measured.bound, 4)} at 95 % "
        f"confidence) with {measured.chosen.width} {measured.width_name} and "
        f"{measured.chosen.rescored} re-scored, on {measured.queries:,} queries of "
        f"{measured.source}, at generation {measured.generation}; {age}"
    )


def print_tried(measured: "MeasuredRecall") -> None:
    """Prints a table of the settings whose time was measured."""
    rows = [
        (
            str(one.width),
            str(one.rescored),
            decimal(one.recall, 4),
            decimal(one.bound, 4),
            decimal(one.milliseconds, 3),
            f"{measured.index_bytes:,}",
        )
        for one in measured.tried
        if one.milliseconds is not None
    ]
    print_table(
        (measured.width_name, "re-scored", "recall@10", "at least", "ms a query", "bytes"), rows
    )
