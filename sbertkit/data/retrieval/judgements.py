"""Relevance judgements (qrels) from files in the forms of BEIR and TREC, and from mappings."""

import operator
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow, is_comment, refuse
from sbertkit.data.formats.jsonl import parse_object
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.metadata import BadRecordError, id_text
from sbertkit.data.streams import source_name
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError, InputTypeError

Qrels = Mapping[str, Mapping[str, int]]
"""Grades by query id and document id; above 0 is relevant."""

_HEADER_GRADES = ("score", "relevance", "rel", "label", "grade", "judgement", "judgment")
_HEADER_QUERIES = ("query-id", "query_id", "queryid", "qid", "query", "topic")
_GRADE = re.compile(r"[+-]?\d+(\.0*)?", re.ASCII)
MAX_GRADE = 10_000
"""Largest grade; trec_eval's code keeps a table with an item for each grade up to the largest."""
_DIGITS = 20  # Python refuses to read numbers of thousands of digits


class _Judgement(NamedTuple):
    line: int
    query: str
    document: str
    grade: int


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    r"""The judgements of a file: grades by query id and document id, both as text.

    A line has three columns (query id, document id, grade) or TREC's four (query id, a column
    without meaning, document id, grade). Columns end at tabs where the file has any, else at blanks
    and tabs. A first line that names its columns is a header; a line that begins with ``#`` and is
    no judgement is a comment. A ``.jsonl`` file has an object with ``query-id``, ``corpus-id`` and
    ``score`` in a line. Ids are text: ``01`` is not ``1``.

    Args:
        path: The file, gzip when its name ends in ``.gz``.

    Raises:
        InputError: Bad lines (one message for all), a grade above `MAX_GRADE`, a pair of ids that
            is judged twice, or no judgement.
        MissingFile: The file does not exist.
    """
    name = source_name(path_text(path))
    lines = [line for line in read_lines(path) if not is_blank(line.text)]
    if not lines:
        raise InputError(f"{name}: expected judgements, found no lines")
    packed = os.fspath(path).lower().removesuffix(".gz")
    rows = [*map(_from_object, lines)] if packed.endswith(".jsonl") else _from_columns(lines)
    bad = [row for row in rows if isinstance(row, BadRow)]
    judgements = [row for row in rows if isinstance(row, _Judgement)]
    refuse(name, sorted([*bad, *_repeats(judgements)]))
    if not judgements:
        raise InputError(f"{name}: expected judgements, found none in its lines")
    result: dict[str, dict[str, int]] = {}
    for row in judgements:
        result.setdefault(row.query, {})[row.document] = row.grade
    return result


def _from_columns(lines: list[Line]) -> list[_Judgement | BadRow]:
    split = _tabs if any("\t" in line.text for line in lines) else _blanks
    read = [(line.text, _judgement(line, split(line.text))) for line in lines]
    kept = [one for one in read if not (isinstance(one[1], BadRow) and is_comment(one[0]))]
    if kept and _is_header(split(kept[0][0])):
        kept = kept[1:]
    return [row for _, row in kept]


def _from_object(line: Line) -> _Judgement | BadRow:
    try:
        content = parse_object(line.text)
        query, document = id_text(content.get("query-id")), id_text(content.get("corpus-id"))
    except BadRecordError as error:
        return BadRow(line.number, error.reason)
    grade = content.get("score")
    if isinstance(grade, bool) or not isinstance(grade, int | float | str):
        return BadRow(line.number, f"grade {printable(str(grade), 40)!r} is no whole number")
    return _judgement(line, [query, document, str(grade)])


def checked_qrels(qrels: object) -> dict[str, dict[str, int]]:
    """Judgements from a mapping of mappings, with ids as text and whole grades.

    Raises:
        InputError: No judgement, an id twice once it is text, or a grade that is no whole number.
        InputTypeError: No mapping of mappings.
    """
    result = {
        query: {document: _whole(query, document, grade) for document, grade in grades}
        for query, grades in checked_pairs(qrels, "qrels", "grade")
    }
    if not any(result.values()):
        raise InputError("expected judgements, found none")
    return result


def checked_pairs(
    content: object, what: str, value: str
) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """The items of a mapping from query ids to mappings from document ids, ids as text.

    Args:
        content: What the caller passed.
        what: Its name, for messages.
        value: What the inner mappings hold, for messages.

    Raises:
        InputError: An id twice once it is text.
        InputTypeError: No mapping of mappings, or an id that is neither str nor int.
    """
    if not isinstance(content, Mapping):
        raise InputTypeError(
            f"{what} must map query ids to mappings from document ids to a {value}, found "
            f"{type(content).__name__}"
        )
    for query, inner in _as_text(content, f"{what}: query"):
        if not isinstance(inner, Mapping):
            raise InputTypeError(
                f"{what}: query {printable(query)!r} must map document ids to a {value}, found "
                f"{type(inner).__name__}"
            )
        yield query, _as_text(inner, f"{what}: query {printable(query)!r}, document")


def _as_text(items: Mapping[object, object], where: str) -> list[tuple[str, object]]:
    checked: dict[str, object] = {}
    for key, item in items.items():
        try:
            text = id_text(key)
        except BadRecordError as error:
            kind = InputTypeError if error.wrong_type else InputError
            raise kind(f"{where}: {error.reason}") from error
        if text in checked:
            raise InputError(f"{where} {printable(text)!r} is there twice, as text and as number")
        checked[text] = item
    return list(checked.items())


def _whole(query: str, document: str, grade: object) -> int:
    number: object = grade
    if isinstance(grade, float) and grade.is_integer():
        number = int(grade)
    try:
        found = operator.index(number)  # type: ignore[arg-type]
    except TypeError as error:
        raise InputError(
            f"qrels: the grade of document {printable(document)!r} for query {printable(query)!r} "
            f"must be a whole number, found {grade!r}"
        ) from error
    if abs(found) > MAX_GRADE:
        raise InputError(
            f"qrels: the grade of document {printable(document)!r} for query {printable(query)!r} "
            f"is too large; the largest taken is {MAX_GRADE:,}"
        )
    return found


def _tabs(text: str) -> list[str]:
    return [cell.strip(" ") for cell in text.rstrip("\t ").split("\t")]


def _blanks(text: str) -> list[str]:
    return [cell for cell in re.split("[ \t]+", text) if cell]


def _is_header(cells: list[str]) -> bool:
    names = [cell.lower() for cell in cells]
    return names[-1] in _HEADER_GRADES and names[0] in _HEADER_QUERIES


def _judgement(line: Line, cells: list[str]) -> _Judgement | BadRow:
    if len(cells) not in (3, 4):
        return BadRow(line.number, f"{len(cells)} columns, expected 3 or 4")
    query, document, grade = cells[0], cells[-2], cells[-1]
    if not query or not document:
        return BadRow(line.number, "an empty id")
    if not _GRADE.fullmatch(grade):
        return BadRow(line.number, f"grade {printable(grade, 40)!r} is no whole number")
    digits = grade.partition(".")[0]
    number = int(digits) if len(digits) <= _DIGITS else MAX_GRADE + 1
    if abs(number) > MAX_GRADE:
        return BadRow(
            line.number,
            f"grade {printable(grade, 40)} is too large, the largest taken is {MAX_GRADE:,}",
        )
    return _Judgement(line.number, query, document, number)


def _repeats(judgements: list[_Judgement]) -> list[BadRow]:
    first: dict[tuple[str, str], _Judgement] = {}
    bad = []
    for row in judgements:
        known = first.setdefault((row.query, row.document), row)
        if known is not row:
            what = "the same" if known.grade == row.grade else f"with grade {known.grade}"
            bad.append(
                BadRow(
                    row.line,
                    f"query {printable(row.query, 40)} and document {printable(row.document, 40)} "
                    f"are judged in line {known.line} already, {what}",
                )
            )
    return bad
