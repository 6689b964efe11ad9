"""Relevance judgements (qrels) from files in the forms of BEIR and TREC, and from mappings."""

import operator
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.lines import TextOptions, read_lines
from sbertkit.data.metadata import BadRecordError, id_text
from sbertkit.data.streams import source_name
from sbertkit.data.tables import TABLES, Columns, Row, has_suffix
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError, InputTypeError

Qrels = Mapping[str, Mapping[str, int]]
"""Grades by query id and document id; above 0 is relevant."""

_HEADER_GRADES = ("score", "relevance", "rel", "label", "grade", "judgement", "judgment")
_HEADER_QUERIES = ("query-id", "query_id", "queryid", "qid", "query", "topic")
_GRADE = re.compile(r"[+-]?\d+(\.0*)?", re.ASCII)
MAX_GRADE = 10_000
"""Largest grade; trec_eval's code keeps a table with an item for each grade up to the largest."""
_COLUMNS = Columns(
    {"query": ("query-id",), "document": ("corpus-id",), "grade": ("score",)},
    needed=(),
    expected="the columns query-id, corpus-id and score",
    exact=True,
)
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
        InputError: Bad lines (one message for all), a grade above `MAX_GRADE`, a duplicate pair of
            ids, or no judgement.
        MissingFile: The file does not exist.
    """
    source = path_text(path)
    table = has_suffix(source, (".jsonl",))
    found = _from_objects(source) if table else _from_columns(source)
    bad = BadRows(source_name(source))
    result: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in bad.removed_from(found):
        line = lines.setdefault((row.query, row.document), row.line)
        known = result.setdefault(row.query, {}).setdefault(row.document, row.grade)
        if line != row.line:
            what = "the same" if known == row.grade else f"with grade {known}"
            shown = f"query {printable(row.query, 40)} and document {printable(row.document, 40)}"
            bad.add(BadRow(row.line, f"{shown} are judged in line {line} already, {what}"))
    bad.refuse()
    if not result:
        raise InputError(f"{bad.name}: expected judgements, found none")
    return result


def is_comment(text: str) -> bool:
    """Whether a line that cannot be read is a comment, as trec_eval 10 has them."""
    return text.startswith("#")


def _from_columns(path: str) -> Iterator[_Judgement | BadRow]:
    lines = [line for line in read_lines(path) if not is_blank(line.text)]
    split = _tabs if any("\t" in line.text for line in lines) else _blanks
    first = True
    for line in lines:
        cells = split(line.text)
        row = _judgement(line.number, cells)
        if isinstance(row, BadRow) and is_comment(line.text):
            continue
        if not (first and _is_header(cells)):
            yield row
        first = False


def _from_objects(path: str) -> Iterator[_Judgement | BadRow]:
    for row in TABLES["jsonl"].read(path, _COLUMNS, TextOptions()):
        yield _from_object(row) if isinstance(row, Row) else row


def _from_object(row: Row) -> _Judgement | BadRow:
    try:
        query, document = (id_text(row.values.get(field)) for field in ("query", "document"))
    except BadRecordError as error:
        return BadRow(row.number, error.reason)
    grade = row.values.get("grade")
    if isinstance(grade, bool) or not isinstance(grade, int | float | str):
        return BadRow(row.number, f"grade {printable(str(grade), 40)!r} is no whole number")
    return _judgement(row.number, [query, document, str(grade)])


def checked_qrels(qrels: object) -> dict[str, dict[str, int]]:
    """Judgements from a mapping of mappings, with ids as text and whole grades.

    Raises:
        InputError: No judgement, duplicate ids as text, or a grade that is no whole number.
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
        InputError: Duplicate ids as text.
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
            raise InputError(f"{where} {printable(text)!r} is a duplicate, as text and as number")
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


def _judgement(line: int, cells: list[str]) -> _Judgement | BadRow:
    if len(cells) not in (3, 4):
        return BadRow(line, f"{len(cells)} columns, expected 3 or 4")
    query, document, grade = cells[0], cells[-2], cells[-1]
    if not query or not document:
        return BadRow(line, "an empty id")
    if not _GRADE.fullmatch(grade):
        return BadRow(line, f"grade {printable(grade, 40)!r} is no whole number")
    digits = grade.partition(".")[0]
    number = int(digits) if len(digits) <= _DIGITS else MAX_GRADE + 1
    if abs(number) > MAX_GRADE:
        shown = printable(grade, 40)
        return BadRow(line, f"grade {shown} is too large, the largest taken is {MAX_GRADE:,}")
    return _Judgement(line, query, document, number)
