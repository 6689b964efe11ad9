"""The queries of a search, from the command line, standard input and files."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sbertkit.errors import InputError


class Query(NamedTuple):
    """A query; its id is its number, from 1, unless a file gives one."""

    id: int | str
    text: str


def given_queries(arguments: Sequence[str]) -> list[Query]:
    """The queries of a command line; ``-`` are the lines of standard input.

    Raises:
        InputError: There is none but blank lines.
    """
    from sbertkit.data.retrieval.queries import numbered_queries

    name = "standard input" if "-" in arguments else "the command line"
    queries = numbered_queries(_texts(arguments), name)
    if not queries:
        raise InputError(f"{name} has no query that is not blank; give some words")
    return [Query(*query) for query in queries.items()]


def queries_of(path: str) -> list[Query]:
    """The queries of a file or BEIR folder; raises as `read_query_source`."""
    from sbertkit.data.retrieval import read_query_source

    return [Query(*query) for query in read_query_source(path).items()]


def _texts(arguments: Sequence[str]) -> Iterator[str]:
    from sbertkit.data.lines import read_lines

    for argument in arguments:
        if argument == "-":
            yield from (line.text for line in read_lines("-"))
        else:
            # What the locale of the shell could not decode is most often UTF-8.
            yield os.fsencode(argument).decode("utf-8", "replace")
