"""Queries with their ids, from JSON Lines as BEIR has them, tab-separated lines or a table."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.limits import MAX_LINE_BYTES
from sbertkit.data.lines import Line, TextOptions, read_lines
from sbertkit.data.metadata import BadRecordError, id_text
from sbertkit.data.streams import STDIN, is_folder, source_name
from sbertkit.data.tables import Columns, Row, has_suffix, table_of
from sbertkit.data.tables.csv import tab_separated
from sbertkit.data.text import has_surrogates, is_blank, printable, repair_surrogates
from sbertkit.errors import InputError, MissingFile
from sbertkit.progress import say

_BEIR_FILES = ("queries.jsonl", "queries.jsonl.gz")
_COLUMNS = Columns(
    {"id": ("_id", "id", "query_id", "query-id", "qid"), "text": ("text", "query")},
    needed=("text", "id"),
    expected="the columns '_id' and 'text'",
)


def read_queries(path: str | os.PathLike[str]) -> dict[str, str]:
    """Texts by query id.

    A ``.tsv`` or ``.txt`` file has an id, a tab and the text in a line; JSON Lines, CSV, Parquet
    and Arrow have ``_id``, ``id``, ``query_id`` or ``qid`` and ``text`` or ``query``.

    Args:
        path: The file, gzip when its name ends in ``.gz``.

    Raises:
        InputError: Bad lines (one message for all), blank text, a duplicate id, or no query.
        MissingFile: The file does not exist.
    """
    source = path_text(path)
    rows: Iterable[Row | BadRow]
    if has_suffix(source, (".tsv", ".txt")):
        rows = _tabbed_rows(source)
    else:
        rows = table_of(source).read(source, _COLUMNS, TextOptions())
    queries: dict[str, str] = {}
    lines: dict[str, int] = {}
    bad = BadRows(source_name(source))
    for row in bad.removed_from(rows):
        try:
            query, text = _query(row)
        except BadRecordError as error:
            bad.add(BadRow(row.number, error.reason))
            continue
        known = lines.setdefault(query, row.number)
        if known != row.number:
            bad.add(BadRow(row.number, f"query {printable(query, 40)} is in line {known} too"))
        queries[query] = text
    bad.refuse()
    if not queries:
        raise InputError(f"{bad.name}: expected queries, found none")
    return queries


def read_query_source(path: str | os.PathLike[str]) -> dict[int | str, str]:
    """The queries of a BEIR folder, of a table as `read_queries` takes it, or of lines of text.

    Returns:
        Texts by id; of a ``.txt`` file or standard input (``-``) by line number from 1, blank lines
        left out and reported.

    Raises:
        InputError: Bad lines, a duplicate id, or no query.
        MissingFile: There is no such file, or none of queries in the folder.
    """
    source = path_text(path)
    if is_folder(source):
        files = [file for file in (Path(source) / name for name in _BEIR_FILES) if file.is_file()]
        if not files:
            raise MissingFile(f"{source}: no queries.jsonl in this folder; name a file of queries")
        source = str(files[0])
    if source != STDIN and not has_suffix(source, (".txt",)):
        return dict(read_queries(source).items())
    queries = numbered_queries((line.text for line in read_lines(source)), source_name(source))
    if not queries:
        raise InputError(f"{source_name(source)}: expected queries, found none")
    return queries


def numbered_queries(texts: Iterable[str], name: str) -> dict[int | str, str]:
    """Texts by their number from 1; blank ones are left out, and reported as of `name`."""
    numbered = dict[int | str, str](enumerate(texts, 1))
    queries = {number: text for number, text in numbered.items() if not is_blank(text)}
    blank = len(numbered) - len(queries)
    if blank:
        say(f"{name}: {blank:,} blank {'query' if blank == 1 else 'queries'} left out")
    return queries


def _tabbed_rows(source: str) -> Iterator[Row | BadRow]:
    """A row per line that is not blank; its columns are those of the header if there is one."""
    lines = (line for line in read_lines(source) if not is_blank(line.text))
    first = next(lines, None)
    if first is None:
        return
    every = chain([first], lines)
    if _COLUMNS.fits(first.text.split("\t")):
        yield from tab_separated(every, _COLUMNS, source_name(source), MAX_LINE_BYTES)
    else:
        yield from map(_from_tabs, every)


def _from_tabs(line: Line) -> Row | BadRow:
    query, tab, text = line.text.partition("\t")
    if not tab:
        return BadRow(line.number, "no tab between id and text")
    return Row(line.number, {"id": query.strip(" "), "text": text})


def _query(row: Row) -> tuple[str, str]:
    query, text = row.values["id"], row.values["text"]
    if not isinstance(text, str):
        raise BadRecordError(f"text must be a str, found {type(text).__name__}")
    if is_blank(text):
        raise BadRecordError("the text is blank")
    text = repair_surrogates(text) if has_surrogates(text) else text
    return id_text(query), text
