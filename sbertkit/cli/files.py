"""Results that commands write to files, each in one step."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from sbertkit.arguments import output_file
from sbertkit.cli.output import without_controls
from sbertkit.errors import InputError
from sbertkit.storage import staged_file, storage_errors

json_option = click.option(
    "--json", "json_path", metavar="OUT", help="Write the result as JSON, too."
)

report_option = click.option(
    "--report", "report_path", metavar="OUT", help="Write the result as one HTML page, too."
)


def targets_of(*paths: str | None, inputs: Iterable[str | None] = ()) -> list[Path | None]:
    """The files that options name, checked before any work is done; None where none is named.

    Args:
        paths: The values of the options.
        inputs: What the command reads, files and folders; names that are none do no harm.

    Raises:
        InputError: Nothing can be written to one, two are the same, or one is read.
    """
    targets = [None if path is None else output_file(path) for path in paths]
    named = [target for target in targets if target is not None]
    for target in named:
        if named.count(target) > 1:
            raise InputError(f"{target} is named for two outputs; give each its own file")
        for source in inputs:
            if source is not None and _is_in(target, source):
                raise InputError(
                    f"{target} is read by this command, the result would take its place; choose "
                    "another file for the result"
                )
    return targets


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
    from sbertkit.data.named import NAMED_SETS, find_local

    named = next((one for one in NAMED_SETS if one.name == text), None)
    if named is None or Path(text).exists():
        return text
    place = find_local(named)
    if place is None:
        raise InputError(
            f"{text}: no such file or folder, and the data set of that name is not here yet; get "
            f"it with: sbertkit data get {text}"
        )
    return str(place)


def write_json(path: Path | None, content: Mapping[str, Any]) -> None:
    """Writes strict JSON, where a file was asked for.

    Raises:
        StorageError: The disk is full or the like.
    """
    if path is not None:
        _write(path, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def write_rows(path: Path | None, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes tab-separated rows below a header, where a file was asked for.

    Raises:
        StorageError: The disk is full or the like.
    """
    if path is not None:
        lines = ("\t".join(without_controls(str(cell)) for cell in row) for row in rows)
        _write(path, "".join(f"{line}\n" for line in ("\t".join(columns), *lines)))


def _write(path: Path, text: str) -> None:
    with storage_errors(path), staged_file(path) as staged:
        staged.write_text(text, encoding="utf-8", newline="\n")
