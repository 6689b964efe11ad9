"""The options that say how a corpus is read."""

import functools
from dataclasses import fields
from typing import Any

import click

from sbertkit.cli.options import Command, with_options
from sbertkit.cli.settings import Names
from sbertkit.data.formats import FORMATS
from sbertkit.data.limits import LARGEST_TEXT_BYTES, MAX_TEXT_BYTES

_OPTIONS = (
    click.option(
        "--input-format",
        "format",
        type=click.Choice(tuple(FORMATS)),
        help="By default, by the corpus's file name.",
    ),
    click.option("--whole-file", is_flag=True, help="Take a text file as one document."),
    click.option(
        "--text-column",
        "text_columns",
        type=Names(),
        metavar="NAMES",
        help="Columns that are joined to the text, such as title,body. Dots lead into nested "
        "fields. By default, title and text or a usual name for it.",
    ),
    click.option(
        "--id-column", metavar="NAME", help="By default, id, _id, docid or doc_id, or the line."
    ),
    click.option(
        "--metadata-columns",
        type=Names(),
        metavar="NAMES",
        help="Columns to keep with the text. By default, all others.",
    ),
    click.option(
        "--delimiter", metavar="CHARACTER", help="Of CSV, such as ; or tab. By default, found."
    ),
    click.option("--encoding", default="utf-8", show_default=True, help="Text encoding."),
    click.option(
        "--errors",
        type=click.Choice(("strict", "replace")),
        default="strict",
        show_default=True,
        help="Refuse bytes that cannot be decoded, or replace them by U+FFFD.",
    ),
    click.option("--skip-bad-lines", is_flag=True, help="Leave bad lines out and list them."),
    click.option(
        "--max-text-bytes",
        type=click.IntRange(1, LARGEST_TEXT_BYTES),
        metavar="BYTES",
        default=MAX_TEXT_BYTES,
        show_default=True,
        help="A longer line, row or text file is a bad line.",
    ),
)


def read_options(command: Command) -> Command:
    """Adds the options that say how a corpus is read; the command gets them as `read`."""

    @functools.wraps(command)
    def with_read(*, whole_file: bool, **given: Any) -> Any:
        from sbertkit.data import ReadOptions
        from sbertkit.errors import InputError

        options = {field.name: given.pop(field.name) for field in fields(ReadOptions)}
        if whole_file and options["format"] not in (None, "file"):
            raise click.UsageError("--whole-file goes with no other --input-format")
        options["format"] = "file" if whole_file else options["format"]
        options["text_columns"] = options["text_columns"] or ()
        try:
            read = ReadOptions(**options)
        except InputError as error:
            raise click.UsageError(error.in_shell) from error
        return command(read=read, **given)

    return with_options(with_read, _OPTIONS)  # type: ignore[return-value]
