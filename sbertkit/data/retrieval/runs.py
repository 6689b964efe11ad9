"""Runs, what a system found for each query, in TREC's six columns and as mappings."""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import NamedTuple

from sbertkit.arguments import output_file, path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.retrieval.judgements import checked_pairs, is_comment
from sbertkit.data.streams import source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError
from sbertkit.storage import staged_file, storage_errors

Run = Mapping[str, Mapping[str, float]]
"""Scores by query id and document id."""

_COLUMNS = 6
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class _Found(NamedTuple):
    line: int
    query: str
    document: str
    score: float


def read_run(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """The scores of a run file by query id and document id.

    A line has query id, ``Q0``, document id, rank, score and the system's name, with tabs or else
    blanks between; what follows is ignored. The rank and the order of the lines do not count, as in
    trec_eval. A line that begins with ``#`` and is no such row is a comment.

    Args:
        path: The file, gzip when its name ends in ``.gz``.

    Raises:
        InputError: Bad lines (one message for all), a duplicate document of a query, or no line.
        MissingFile: The file does not exist.
    """
    name = source_name(path_text(path))
    result: dict[str, dict[str, float]] = {}
    lines: dict[tuple[str, str], int] = {}
    bad = BadRows(name)
    for line in read_lines(path):
        if is_blank(line.text):
            continue
        row = _found(line)
        if isinstance(row, BadRow):
            if not is_comment(line.text):
                bad.add(row)
            continue
        known = lines.setdefault((row.query, row.document), row.line)
        if known != row.line:
            shown = f"{printable(row.document, 40)} for query {printable(row.query, 40)}"
            bad.add(BadRow(row.line, f"document {shown} is in line {known} already"))
        result.setdefault(row.query, {})[row.document] = row.score
    bad.refuse()
    if not result:
        raise InputError(f"{name}: expected a run of six columns, found no lines")
    return result


def checked_run(run: object) -> dict[str, dict[str, float]]:
    """A run from a mapping of mappings, with ids as text and finite scores.

    Raises:
        InputError: No query, duplicate ids as text, or a score that is no finite number.
        InputTypeError: No mapping of mappings.
    """
    result = {
        query: {document: _score(query, document, score) for document, score in found}
        for query, found in checked_pairs(run, "run", "score")
    }
    if not result:
        raise InputError("expected a run, found no query")
    return result


def write_run(path: str | os.PathLike[str], run: Run, name: str = "sbertkit") -> None:
    """Writes a run file in one step, the best document of each query first.

    Args:
        path: The file.
        run: Scores by query id and document id.
        name: The system's name, one word.

    Raises:
        InputError: An id or name with a blank in it, which the format cannot hold.
        StorageError: The disk is full or the like.
    """
    target = output_file(path)
    lines = run_lines(run, name)
    with (
        storage_errors(target),
        staged_file(target) as staged,
        staged.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{line}\n" for line in lines)


def run_lines(run: Run, name: str = "sbertkit") -> Iterator[str]:
    """The lines of a run file, without their ends, the best document of each query first.

    Raises:
        InputError: An id or name with a blank in it, which the format cannot hold.
    """
    check_run_ids((name, *run, *(document for found in run.values() for document in found)))
    return (
        f"{query} Q0 {document} {rank} {found[document]!r} {name}"
        for query, found in run.items()
        for rank, document in enumerate(ranked(found), 1)
    )


def check_run_ids(ids: Iterable[str]) -> None:
    """Refuses ids that no run file can hold.

    Raises:
        InputError: One that is empty or has a blank in it.
    """
    for word in ids:
        if not word or re.search(r"\s", word):
            raise InputError(
                f"a run file cannot hold {printable(word)!r}: ids must be words without blanks"
            )


def ranked(found: Mapping[str, float]) -> list[str]:
    """Documents as trec_eval orders them: by score, equal ones by id, both descending."""
    return sorted(found, key=lambda document: (found[document], document), reverse=True)


def _found(line: Line) -> _Found | BadRow:
    cells = _cells("\t", line.text)
    if len(cells) < _COLUMNS:
        cells = _cells("[ \t]+", line.text)
    if len(cells) < _COLUMNS:
        noun = "column" if len(cells) == 1 else "columns"
        return BadRow(line.number, f"{len(cells)} {noun}, expected {_COLUMNS}")
    query, _, document, _, text = cells[: _COLUMNS - 1]
    score = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(score):
        return BadRow(line.number, f"score '{printable(text, 40)}' is no finite number")
    return _Found(line.number, query, document, score)


def _cells(between: str, line: str) -> list[str]:
    cells = (cell.strip(" ") for cell in re.split(between, line))
    return [cell for cell in cells if cell]


def _score(query: str, document: str, score: object) -> float:
    number = float(score) if isinstance(score, Real) and not isinstance(score, bool) else math.nan
    if not math.isfinite(number):
        raise InputError(
            f"run: the score of document {printable(document)!r} for query {printable(query)!r} "
            f"must be a finite number, found {score!r}"
        )
    return number
