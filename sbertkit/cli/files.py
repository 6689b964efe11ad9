"""Results that commands write to files, each in one step."""

import json
from collections.abc import Iterable, Mapping, Sequence
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


def target_of(path: str | None) -> Path | None:
    """The file that an option names, checked before any work is done; None where none is named.

    Raises:
        InputError: Nothing can be written there.
    """
    return None if path is None else output_file(path)


def targets_of(*paths: str | None) -> list[Path | None]:
    """The files that several options name; see `target_of`.

    Raises:
        InputError: Nothing can be written to one, or two are the same.
    """
    targets = [target_of(path) for path in paths]
    named = [target for target in targets if target is not None]
    for target in named:
        if named.count(target) > 1:
            raise InputError(f"{target} is named for two outputs; give each its own file")
    return targets


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
