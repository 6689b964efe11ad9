"""``data``: public data sets by name."""

import click

from sbertkit.cli.completion import SET
from sbertkit.cli.options import no_progress_option, quiet_option
from sbertkit.cli.output import print_json, print_line, print_table, table_width
from sbertkit.progress import say

_WIDE = 160
"""Columns of a terminal that has room for licences and sources."""


@click.group(name="data")
def data() -> None:
    """Find and fetch public data sets by name.

    \b
    Example:
      sbertkit data list
      sbertkit data get scifact
    """


@data.command(name="list")
@click.option("--task", type=click.Choice(("sts", "retrieval", "nli")), help="Only sets for it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "jsonl")),
    default="table",
    show_default=True,
    help="jsonl: one object a line.",
)
@no_progress_option
def list_sets(task: str | None, form: str) -> None:
    """List the data sets: what for, how large, under which licence, and whether they are here.

    They are looked for below the folder that SBERTKIT_DATA names, then in the hub's cache. A narrow
    terminal leaves licences and sources out.

    \b
    Example:
      sbertkit data list --task sts
    """
    from sbertkit.data.named import NAMED_SETS, find_local

    rows = []
    for one in NAMED_SETS:
        if task not in (None, one.task):
            continue
        place = find_local(one)
        if form == "jsonl":
            known = {
                "name": one.name,
                "title": one.title,
                "task": one.task,
                "rows": one.rows,
                "licence": one.licence,
                "source": one.source,
                "cite": one.cite,
                "hub": None if one.hub is None else one.hub.repository,
                "path": None if place is None else str(place),
            }
            print_json(known)
            continue
        here = "yes" if place else "by hand" if one.hub is None else "no"
        rows.append((one.name, one.task, one.rows, here, one.licence, one.source))
    if form == "table":
        columns = ("name", "task", "rows", "here", "licence", "source")
        width = table_width(None)
        shown = 4 if width is not None and width < _WIDE else len(columns)
        print_table(columns[:shown], (row[:shown] for row in rows))


@data.command(name="get")
@click.argument("names", metavar="NAME...", type=SET, nargs=-1, required=True)
@quiet_option
def get_sets(names: tuple[str, ...], quiet: bool) -> None:
    """Fetch data sets from the hub, unless they are here; a broken download is resumed.

    Files are pinned to a commit and checked by their hashes. They go to hub/ below the folder that
    SBERTKIT_DATA names, else to the hub's own cache. Name and place are printed, separated by a
    tab.

    \b
    Example:
      sbertkit data get stsb scifact
    """
    from sbertkit.data.named import find_named, named_data

    if quiet:
        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()
    for one in [find_named(name) for name in names]:  # a mistyped name is refused first
        print_line(one.name, str(named_data(one)))
        say(f"{one.name}: {one.cite}; licence: {one.licence}")
