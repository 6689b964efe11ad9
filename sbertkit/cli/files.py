"""Results that commands write to files, each in one step, or to standard output."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sbertkit.arguments import output_file
from sbertkit.cli.output import print_json, print_text
from sbertkit.errors import InputError
from sbertkit.storage import staged_file, storage_errors
from sbertkit.terminal import visible_json, visible_text

if TYPE_CHECKING:
    from sbertkit.data.retrieval import Run
    from sbertkit.evaluation.report.page import Page

STANDARD_OUTPUT = Path("-")
"""The target of a result that takes the place of the tables; a file of that name is ``./-``."""

json_option = click.option(
    "--json",
    "json_path",
    metavar="OUT",
    help="Write the result as JSON, too; - prints it in place of the tables.",
)

report_option = click.option(
    "--report",
    "report_path",
    metavar="OUT",
    help="Write the result as one HTML page, too; - prints it in place of the tables.",
)


def targets_of(*paths: str | None, inputs: Iterable[str | None] = ()) -> list[Path | None]:
    """The files that options name, checked before any work is done; None where none is named.

    Args:
        paths: The values of the options; ``-`` gives `STANDARD_OUTPUT`.
        inputs: What the command reads, files and folders; names that are none do no harm.

    Raises:
        InputError: Nothing can be written to one, two are the same, or one is read.
    """
    targets = [_target(path) for path in paths]
    named = [target for target in targets if target is not None]
    for target in named:
        if named.count(target) > 1:
            name = "standard output" if target is STANDARD_OUTPUT else target
            raise InputError(f"{name} is named for two outputs; give each its own file")
        for source in () if target is STANDARD_OUTPUT else inputs:
            if source is not None and _is_in(target, source):
                raise InputError(
                    f"{target} is read by this command, the result would take its place; choose "
                    "another file for the result"
                )
    return targets


def _target(path: str | None) -> Path | None:
    if path == "-":
        return STANDARD_OUTPUT
    return None if path is None else output_file(path)


def _is_in(target: Path, source: str) -> bool:
    """Whether a file that is there is the source, or lies in the folder that it is."""
    with suppress(OSError, ValueError):
        if Path(source).is_dir():
            return target.exists() and Path(source).resolve() in target.resolve().parents
        return target.samefile(source)
    return False


def set_or_path(text: str) -> str:
    """The place of a data set that is named, or the path that was given.

    Raises:
        InputError: There is no such file, and the data set of that name is not here yet.
    """
    from sbertkit.data.named import local_path

    return local_path(text)


def write_json(path: Path | None, content: Mapping[str, Any]) -> None:
    """Writes strict JSON, where a file was asked for.

    Raises:
        StorageError: The disk is full or the like.
    """
    if path is STANDARD_OUTPUT:
        print_json(content, indent=2)
    elif path is not None:
        _write(path, visible_json(content, indent=2) + "\n")


def write_rows(path: Path | None, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes tab-separated rows below a header, where a file was asked for.

    Raises:
        StorageError: The disk is full or the like.
    """
    if path is not None:
        lines = ("\t".join(visible_text(str(cell)) for cell in row) for row in rows)
        _write(path, "".join(f"{line}\n" for line in ("\t".join(columns), *lines)))


def write_run(path: Path | None, run: "Run") -> None:
    """Writes a run in TREC's six columns, where a file was asked for.

    Raises:
        InputError: The format cannot hold an id, or standard output should not.
        StorageError: The disk is full or the like.
    """
    from sbertkit.data.retrieval import run_lines
    from sbertkit.data.retrieval import write_run as write_run_file

    if path is STANDARD_OUTPUT:
        lines = list(run_lines(run))
        for line in lines:
            if visible_text(line) != line:
                raise InputError(
                    f"{line!r} holds control codes, which a terminal would obey; write the run to "
                    "a file"
                )
        print_text("".join(f"{line}\n" for line in lines))
    elif path is not None:
        write_run_file(path, run)


def write_report(path: Path | None, page: "Callable[[], Page]") -> None:
    """Writes a page as HTML, where a file was asked for.

    Args:
        path: Of `targets_of`.
        page: Makes the page, which takes a while.

    Raises:
        StorageError: The disk is full or the like.
        MissingDependency: A package for reports is not installed.
    """
    from sbertkit.evaluation.report.page import render, write_page

    if path is STANDARD_OUTPUT:
        print_text(render(page()))
    elif path is not None:
        write_page(path, page())


def _write(path: Path, text: str) -> None:
    if path is STANDARD_OUTPUT:
        print_text(text)
        return
    with storage_errors(path), staged_file(path) as staged:
        staged.write_text(text, encoding="utf-8", newline="\n")
