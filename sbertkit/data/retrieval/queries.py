"""Queries with their ids, from JSON Lines as BEIR has them, or from tab-separated lines."""

import os
from pathlib import Path

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow, refuse
from sbertkit.data.formats.jsonl import parse_object
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.metadata import BadRecordError, id_text
from sbertkit.data.records import record_from
from sbertkit.data.streams import source_name
from sbertkit.data.text import has_surrogates, is_blank, printable, repair_surrogates
from sbertkit.errors import InputError


def read_queries(path: str | os.PathLike[str]) -> dict[str, str]:
    """Texts by query id.

    A ``.tsv`` or ``.txt`` file has an id, a tab and the text in a line; any other an object with
    ``_id`` or ``id`` and ``text``.

    Args:
        path: The file, gzip when its name ends in ``.gz``.

    Raises:
        InputError: Bad lines (one message for all), blank text, an id twice, or no query.
        MissingFile: The file does not exist.
    """
    source = path_text(path)
    name = source_name(source)
    suffix = Path(source.lower().removesuffix(".gz")).suffix
    parse = _from_tabs if suffix in (".tsv", ".txt") else _from_json
    queries: dict[str, str] = {}
    lines: dict[str, int] = {}
    bad = []
    for line in read_lines(source):
        if is_blank(line.text):
            continue
        try:
            query, text = parse(line)
        except BadRecordError as error:
            bad.append(BadRow(line.number, error.reason))
            continue
        known = lines.setdefault(query, line.number)
        if known != line.number:
            bad.append(BadRow(line.number, f"query {printable(query, 40)} is in line {known} too"))
        queries[query] = text
    refuse(name, bad)
    if not queries:
        raise InputError(f"{name}: expected queries, found none")
    return queries


def _from_json(line: Line) -> tuple[str, str]:
    record = record_from(parse_object(line.text), line.number)
    return _checked(record.id, record.text)


def _from_tabs(line: Line) -> tuple[str, str]:
    query, tab, text = line.text.partition("\t")
    if not tab:
        raise BadRecordError("no tab between id and text")
    return _checked(query.strip(" "), text)


def _checked(query: object, text: object) -> tuple[str, str]:
    if not isinstance(text, str):
        raise BadRecordError(f"text must be a str, found {type(text).__name__}")
    if is_blank(text):
        raise BadRecordError("the text is blank")
    return id_text(query), repair_surrogates(text) if has_surrogates(text) else text
