"""The corpus.jsonl of BEIR."""

from collections.abc import Iterator

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.formats.base import DOCUMENT_WITH_ID, CorpusFormat
from sbertkit.data.lines import TextOptions
from sbertkit.data.tables import TABLES, Row


def read_beir(path: str, text: TextOptions) -> Iterator[Row | BadRow]:
    """A row for each line, whose text is title and text; the title stays in the metadata."""
    for row in TABLES["jsonl"].read(path, DOCUMENT_WITH_ID, text):
        yield _with_title(row) if isinstance(row, Row) else row


def _with_title(row: Row) -> Row | BadRow:
    title, text = row.others.get("title"), row.values["text"]
    if title is not None and not isinstance(title, str):
        return BadRow(row.number, f"title must be a str, found {type(title).__name__}")
    if title and isinstance(text, str):
        row.values["text"] = f"{title} {text}".strip()
    return row


BEIR = CorpusFormat("beir", read_beir)
