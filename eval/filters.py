"""How long a filter takes, without a search, and what else could evaluate it.

    python eval/filters.py [--documents 300000] [--rounds 15]

Titles are the glosses of the demo, numbered; the other metadata are drawn as articles have them:
few languages and years, many sources, names, prices and times, lists of tags. All ways give a mask
over the documents and must agree. Warm: the median after a first evaluation; cold: the first one
after the file was opened, which the operating system still has in memory. Nothing else should run
meanwhile.
"""

import json
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from recording import Entries, Figures, arguments_of

from sbertkit import Document, InputError
from sbertkit.data import SourcedDocument, read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.retrieval.document_store import DOCUMENTS_FILE, DocumentStore, stage_documents
from sbertkit.retrieval.filters import parse_filter
from sbertkit.retrieval.filters.field_file import FIELDS_FILE, write_fields
from sbertkit.retrieval.filters.segment_fields import SegmentFields

SOURCES = ["sbertkit/retrieval/filters", "sbertkit/retrieval/database.py", "eval/filters.py"]

Mask = npt.NDArray[np.bool_]
Evaluate = Callable[[], Mask]

_TAGS = "SELECT 1 FROM json_each(metadata, '$.tags') WHERE value = ?"


class Case(NamedTuple):
    """A filter in all languages: ours, SQL over JSON with its parameters, and pyarrow's."""

    name: str
    text: str
    sql: str
    values: tuple[Any, ...]
    arrow: Callable[[pa.Table], Any]


def _field(name: str) -> str:
    return f"json_extract(metadata, '$.{name}')"


CASES = (
    Case(
        "number, few values",
        "year >= 2020",
        f"{_field('year')} >= ?",
        (2020,),
        lambda table: pc.greater_equal(table["year"], 2020),
    ),
    Case(
        "number, many values",
        "time < 1600000000",
        f"{_field('time')} < ?",
        (1_600_000_000,),
        lambda table: pc.less(table["time"], 1_600_000_000),
    ),
    Case(
        "string, few values",
        "lang = 'en'",
        f"{_field('lang')} = ?",
        ("en",),
        lambda table: pc.equal(table["lang"], "en"),
    ),
    Case(
        "string, many values",
        "author.name = 'author 1234'",
        f"{_field('author.name')} = ?",
        ("author 1234",),
        lambda table: pc.equal(table["author"], "author 1234"),
    ),
    Case(
        "and of two",
        "lang = 'de' and year >= 2015",
        f"{_field('lang')} = ? AND {_field('year')} >= ?",
        ("de", 2015),
        lambda table: pc.and_(pc.equal(table["lang"], "de"), pc.greater_equal(table["year"], 2015)),
    ),
    Case(
        "in, of 20",
        f"source in ({', '.join(repr(f'source {number}') for number in range(20))})",
        f"{_field('source')} IN ({','.join('?' * 20)})",
        tuple(f"source {number}" for number in range(20)),
        lambda table: pc.is_in(
            table["source"], pa.array([f"source {number}" for number in range(20)])
        ),
    ),
    Case(
        "element of a list",
        "tags contains 'tag 7'",
        f"EXISTS ({_TAGS})",
        ("tag 7",),
        lambda table: _rows_of(table["tags"], "tag 7"),
    ),
    Case(
        "starts with",
        "title starts with 'the '",
        f"{_field('title')} >= ? AND {_field('title')} < ?",
        ("the ", "the!"),
        lambda table: pc.starts_with(table["title"], "the "),
    ),
    Case(
        "part of a string",
        "title contains 'river'",
        f"instr({_field('title')}, ?) > 0",
        ("river",),
        lambda table: pc.match_substring(table["title"], "river"),
    ),
    Case(
        "date, and not null",
        "date >= '2021-03' and doi is not null",
        f"{_field('date')} >= ? AND {_field('doi')} IS NOT NULL",
        ("2021-03",),
        lambda table: pc.and_(
            pc.greater_equal(table["date"], "2021-03"), pc.is_valid(table["doi"])
        ),
    ),
    Case(
        "start of an id",
        "id starts with 'd12'",
        "id >= ? AND id < ?",
        ("d12", "d13"),
        lambda table: pc.starts_with(table["id"], "d12"),
    ),
)
_INDEXED = ("year", "time", "lang", "author.name", "source", "title", "date", "doi")


def _rows_of(lists: Any, value: str) -> Any:
    """Which lists have an element, as pyarrow has no function for that."""
    joined = lists.combine_chunks()
    parents = np.asarray(pc.list_parent_indices(joined))
    hit = np.asarray(pc.equal(pc.list_flatten(joined), value))
    mask = np.zeros(len(joined), np.bool_)
    mask[parents[hit]] = True
    return mask


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--documents", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    settings = {"documents": arguments.documents, "rounds": arguments.rounds}
    entries = Entries("filters", SOURCES)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        started = time.perf_counter()
        stage_documents(root / DOCUMENTS_FILE, documents(arguments.documents), _duplicate)
        staged = time.perf_counter() - started
        for name, measure in MEASURES.items():
            entries.measure(name, settings, partial(measure, root, staged, arguments.rounds))
    masks = {name: entries.known(name, settings) for name in MEASURES}
    counts = {
        name: [case["matches"] for case in one["cases"]] for name, one in masks.items() if one
    }
    if len({json.dumps(count) for count in counts.values()}) > 1:
        raise SystemExit(f"the ways to evaluate do not agree: {counts}")


def documents(count: int) -> Iterator[SourcedDocument]:
    """Documents with metadata as articles have them."""
    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    draw = random.Random(0)
    for row in range(count):
        year = draw.randint(1990, 2024)
        metadata: dict[str, Any] = {
            "title": f"{glosses[row % len(glosses)]} ({row})",
            "lang": draw.choices(("en", "de", "fr", "zh", "es"), (60, 15, 10, 10, 5))[0],
            "year": year,
            "date": f"{year}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
            "time": draw.randint(10**9, 2 * 10**9),
            "price": round(draw.lognormvariate(3, 1), 2),
            "source": f"source {int(draw.paretovariate(0.5)) % 3_000}",
            "tags": [f"tag {number}" for number in draw.sample(range(200), draw.randint(0, 5))],
            "author": {"name": f"author {draw.randint(0, 50_000)}", "verified": row % 3 == 0},
            "open": draw.random() < 0.3,
        }
        if draw.random() < 0.7:
            metadata["doi"] = f"10.{row % 9_000 + 1_000}/{draw.getrandbits(40):x}"
        yield SourcedDocument(Document(f"d{row}", "a text", metadata), row)


def by_sbertkit(root: Path, staged: float, rounds: int) -> Figures:
    """The file for filters."""
    with closing(DocumentStore(root / DOCUMENTS_FILE)) as store:
        started = time.perf_counter()
        write_fields(root, store.metadata())
        seconds = time.perf_counter() - started

        def opened() -> tuple[SegmentFields, Callable[[], None]]:
            fields = SegmentFields(store, root / FIELDS_FILE)
            return fields, fields.close

        cases = _timed(
            opened, lambda fields, case: fields.matching(parse_filter(case.text)), rounds
        )
    return {
        "seconds": round(seconds, 1),
        "seconds_of_staging": round(staged, 1),
        "bytes": (root / FIELDS_FILE).stat().st_size,
        "bytes_of_documents": (root / DOCUMENTS_FILE).stat().st_size,
        "cases": cases,
    }


def by_json(root: Path, staged: float, rounds: int) -> Figures:
    """SQLite over the metadata as JSON."""
    del staged
    return {"seconds": 0.0, "bytes": 0, "cases": _by_sqlite(root / DOCUMENTS_FILE, rounds)}


def by_indexed_json(root: Path, staged: float, rounds: int) -> Figures:
    """SQLite over the metadata as JSON, with an index on each field."""
    del staged
    path = root / "indexed.db"
    shutil.copyfile(root / DOCUMENTS_FILE, path)
    started = time.perf_counter()
    with closing(sqlite3.connect(path)) as connection:
        for number, name in enumerate(_INDEXED):
            connection.execute(f"CREATE INDEX field{number} ON documents ({_field(name)})")
        connection.commit()
        connection.execute("ANALYZE")
        connection.commit()
    seconds = time.perf_counter() - started
    size = path.stat().st_size - (root / DOCUMENTS_FILE).stat().st_size
    return {"seconds": round(seconds, 1), "bytes": size, "cases": _by_sqlite(path, rounds)}


def by_arrow(root: Path, staged: float, rounds: int) -> Figures:
    """Columns of pyarrow in a file of its IPC format."""
    del staged
    path = root / "columns.arrow"
    started = time.perf_counter()
    with closing(DocumentStore(root / DOCUMENTS_FILE)) as store:
        rows = [(one.document.id, one.document.metadata) for one in store.documents()]
    names = ("title", "lang", "year", "date", "time", "price", "source", "tags", "open", "doi")
    columns = {name: pa.array([fields.get(name) for _, fields in rows]) for name in names}
    columns["id"] = pa.array([one for one, _ in rows])
    columns["author"] = pa.array([fields["author"]["name"] for _, fields in rows])
    for name in ("lang", "source"):
        columns[name] = columns[name].dictionary_encode()
    table = pa.table(columns)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    seconds = time.perf_counter() - started
    del rows, columns, table

    def opened() -> tuple[pa.Table, Callable[[], None]]:
        mapped = pa.memory_map(str(path))
        return pa.ipc.open_file(mapped).read_all(), mapped.close

    def mask(table: pa.Table, case: Case) -> Mask:
        found = case.arrow(table)
        if isinstance(found, np.ndarray):
            return found
        return np.asarray(pc.fill_null(found.combine_chunks(), False))

    cases = _timed(opened, mask, rounds)
    return {"seconds": round(seconds, 1), "bytes": path.stat().st_size, "cases": cases}


MEASURES: dict[str, Callable[[Path, float, int], Figures]] = {
    "sbertkit": by_sbertkit,
    "json": by_json,
    "indexed json": by_indexed_json,
    "arrow": by_arrow,
}


def _by_sqlite(path: Path, rounds: int) -> list[Figures]:
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM documents").fetchone()

    def opened() -> tuple[sqlite3.Connection, Callable[[], None]]:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        return connection, connection.close

    def mask(connection: sqlite3.Connection, case: Case) -> Mask:
        query = f"SELECT row FROM documents WHERE {case.sql}"  # noqa: S608  # ours
        found = connection.execute(query, case.values).fetchall()
        masked = np.zeros(count, np.bool_)
        masked[np.fromiter((row for (row,) in found), np.int64, len(found))] = True
        return masked

    return _timed(opened, mask, rounds)


def _timed(
    opened: Callable[[], tuple[Any, Callable[[], None]]],
    mask: Callable[[Any, Case], Mask],
    rounds: int,
) -> list[Figures]:
    """Milliseconds of each filter, cold and warm, and how many documents it matches."""
    figures = []
    for case in CASES:
        cold = []
        for _ in range(3):
            state, close = opened()
            started = time.perf_counter()
            matches = int(np.count_nonzero(mask(state, case)))
            cold.append(time.perf_counter() - started)
            close()
        state, close = opened()
        warm = []
        for _ in range(rounds + 1):
            started = time.perf_counter()
            mask(state, case)
            warm.append(time.perf_counter() - started)
        close()
        figures.append(
            {
                "name": case.name,
                "filter": case.text if len(case.text) < 60 else f"{case.text[:50]}...",
                "matches": matches,
                "cold_ms": round(1_000 * statistics.median(cold), 3),
                "warm_ms": round(1_000 * statistics.median(warm[1:]), 3),
            }
        )
    return figures


def _duplicate(document_id: str, *_lines: int) -> InputError:
    return InputError(f"duplicate id {document_id}")


if __name__ == "__main__":
    main()
