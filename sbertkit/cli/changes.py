"""``add``, ``upsert`` and ``delete``."""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import INDEX, MODEL, PATH
from sbertkit.cli.options import (
    device_option,
    filter_option,
    no_progress_option,
    quiet_option,
    trust_option,
    wait_option,
)
from sbertkit.cli.output import print_line
from sbertkit.cli.read_options import read_options
from sbertkit.formatting import counted

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions
    from sbertkit.retrieval import Changes

Change = Callable[[str], None]


def _change_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the arguments of add and upsert; the command gets `change`, which applies a mode."""

    @click.argument("directory", metavar="DIR", type=INDEX)
    @click.argument("corpus", type=PATH)
    @click.option(
        "--model",
        metavar="MODEL",
        type=MODEL,
        help="By default, the one that the index bundles or names.",
    )
    @device_option
    @trust_option
    @read_options
    @wait_option
    @quiet_option
    @functools.wraps(command)
    def with_change(
        *,
        directory: str,
        corpus: str,
        model: str | None,
        device: str,
        trust_remote_code: bool,
        read: "ReadOptions",
        quiet: bool,
    ) -> None:
        def change(mode: str) -> None:
            from sbertkit.retrieval import change_documents
            from sbertkit.retrieval.opening import load_encoder

            changes = change_documents(
                directory,
                corpus,
                lambda view: load_encoder(
                    Path(directory).absolute(),
                    view.manifest,
                    model=model,
                    device=device,
                    trust_remote_code=trust_remote_code,
                ),
                mode=mode,
                read=read,
                progress=not quiet,
            )
            print_changes(changes, directory)

        command(change)

    return with_change


@click.command()
@_change_options
def add(change: Change) -> None:
    """Add the documents of CORPUS to the index DIR.

    Their ids must be new. CORPUS is as for index. All of them are added, or none.

    \b
    Example:
      sbertkit add indexes/articles new.jsonl
    """
    change("add")


@click.command()
@_change_options
def upsert(change: Change) -> None:
    """Add documents to the index DIR, or replace them by their ids.

    Documents that are stored exactly as given are left unchanged and not encoded again.

    \b
    Example:
      sbertkit upsert indexes/articles changed.jsonl
    """
    change("upsert")


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@filter_option
@click.option("--missing-ok", is_flag=True, help="Ignore ids that are not in the index.")
@wait_option
@no_progress_option
def delete(directory: str, ids: tuple[str, ...], condition: str | None, missing_ok: bool) -> None:
    """Delete documents by their IDs from the index DIR, all or none.

    - reads ids, one per line, from standard input. Or those that match --filter. No model is
    loaded.

    \b
    Example:
      sbertkit delete indexes/articles a17 a18
      sbertkit delete indexes/articles - --missing-ok < gone.txt
      sbertkit delete indexes/articles --filter 'lang = "en" and year < 1990'
    """
    from sbertkit.retrieval import delete_documents

    if bool(ids) == (condition is not None):
        raise click.UsageError("give either IDs or --filter")
    if condition is None:
        changes = delete_documents(directory, _ids(ids), missing_ok=missing_ok)
    else:
        changes = delete_documents(directory, filter=condition)
    print_changes(changes, directory)


def print_changes(changes: "Changes", directory: str) -> None:
    """Prints what a change did."""
    parts = [
        f"{count:,} {name}"
        for name, count in (
            ("added", changes.added),
            ("changed", changes.changed),
            ("deleted", changes.deleted),
            ("moved to other lines", changes.moved),
            ("unchanged", changes.unchanged),
        )
        if count
    ]
    encoded = f"; {changes.encoded:,} encoded" if changes.added or changes.changed else ""
    print_line(
        f"{', '.join(parts) or 'nothing to change'}{encoded}: "
        f"{counted(changes.documents, 'document')} in {directory}"
    )


def _ids(given: Sequence[str]) -> Iterator[str]:
    from sbertkit.data.lines import read_lines

    for one in given:
        if one == "-":
            yield from (line.text for line in read_lines("-") if line.text)
        else:
            yield one
