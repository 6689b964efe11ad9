"""The queries of a search, from the command line, standard input and files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sbertkit.errors import InputError, MissingFile
from sbertkit.progress import say

_BEIR_FILES = ("queries.jsonl", "queries.jsonl.gz")


class Query(NamedTuple):
    """A query; its id is its number, from 1, unless a file gives one."""

    id: int | str
    text: str


def given_queries(arguments: Sequence[str]) -> list[Query]:
    """The queries of a command line; ``-`` are the lines of standard input.

    Raises:
        InputError: There is none but blank lines.
    """
    name = "standard input" if "-" in arguments else "the command line"
    queries = _without_blank(_texts(arguments), name)
    if not queries:
        raise InputError(f"{name} has no query that is not blank; give some words")
    return queries


def queries_of(path: str) -> list[Query]:
    """The queries of a file: a table with ids, or lines of text; a BEIR folder has one.

    Raises:
        InputError: Bad lines, a duplicate id, or no query.
        MissingFile: There is no such file.
    """
    from sbertkit.data.lines import read_lines
    from sbertkit.data.retrieval import read_queries
    from sbertkit.data.streams import STDIN, is_folder
    from sbertkit.data.tables import has_suffix

    if is_folder(path):
        files = [file for file in (Path(path) / name for name in _BEIR_FILES) if file.is_file()]
        if not files:
            raise MissingFile(f"{path}: no queries.jsonl in this folder; name a file of queries")
        path = str(files[0])
    if path != STDIN and not has_suffix(path, (".txt",)):
        return [Query(*query) for query in read_queries(path).items()]
    queries = _without_blank((line.text for line in read_lines(path)), path)
    if not queries:
        raise InputError(f"{path}: expected queries, found none")
    return queries


def _texts(arguments: Sequence[str]) -> Iterator[str]:
    from sbertkit.data.lines import read_lines

    for argument in arguments:
        if argument == "-":
            yield from (line.text for line in read_lines("-"))
        else:
            # What the locale of the shell could not decode is most often UTF-8.
            yield os.fsencode(argument).decode("utf-8", "replace")


def _without_blank(texts: Iterator[str], name: str) -> list[Query]:
    """The queries among texts, numbered as they are there; says how many are blank."""
    from sbertkit.data.text import is_blank

    numbered = list(enumerate(texts, 1))
    queries = [Query(number, text) for number, text in numbered if not is_blank(text)]
    blank = len(numbered) - len(queries)
    if blank:
        say(f"{name}: {blank:,} blank {'query' if blank == 1 else 'queries'} left out")
    return queries
