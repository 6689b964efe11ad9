"""A system that searches lines by their words, in a process of its own; bench_lexical.py asks it.

    python eval/lexical_worker.py SYSTEM LINES FOLDER

Each line of standard input is a JSON list, the name of a method of the system and its arguments;
each answer is a line, what the method gave and the seconds that it took. The systems import what
they need alone, so that the peers' environment needs nothing of sbertkit.
"""

import json
import re
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Protocol

K = 10
WORD = re.compile(r"\w+")


class System(Protocol):
    """What is measured; queries are words with blanks between, and any of them is enough."""

    def build(self) -> int:
        """Builds the index over the lines; gives its bytes on the disk."""
        ...

    def search(self, query: str) -> list[int]:
        """The numbers of the `K` best lines of a query."""
        ...

    def search_all(self, queries: list[str]) -> list[list[int]]:
        """Those of many queries at once."""
        ...


class Sbertkit:
    """The words of a segment, without the documents."""

    def __init__(self, lines: list[str], folder: Path) -> None:
        from sbertkit.lexical.analyzer import Analyzer

        self._lines = lines
        self._path = folder / "words.bin"
        self._analyzer = Analyzer("english")

    def build(self) -> int:
        """See `System`."""
        from sbertkit.lexical.bm25 import Bm25
        from sbertkit.lexical.postings_file import PostingsFile
        from sbertkit.lexical.postings_writer import write_postings
        from sbertkit.lexical.search import LexicalSearch, LexicalSegment

        write_postings(self._path, self._lines, self._analyzer)
        file = PostingsFile(self._path, len(self._lines))
        self._search = LexicalSearch([LexicalSegment(file, None)], Bm25())
        return self._path.stat().st_size

    def search(self, query: str) -> list[int]:
        """See `System`."""
        from sbertkit.lexical.query import parse_query

        numbers = self._search.search(parse_query(query, self._analyzer), K).numbers
        return list(map(int, numbers))

    def search_all(self, queries: list[str]) -> list[list[int]]:
        """See `System`."""
        return list(map(self.search, queries))


class Fts5:
    """SQLite's full-text index, with Porter's stems."""

    def __init__(self, lines: list[str], folder: Path) -> None:
        self._lines = lines
        self._path = folder / "fts5.db"

    def build(self) -> int:
        """See `System`."""
        self._path.unlink(missing_ok=True)
        self._database = sqlite3.connect(self._path, isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE VIRTUAL TABLE lines USING "
            "fts5(text, content='', tokenize='porter unicode61'); BEGIN"
        )
        rows = enumerate(self._lines)
        self._database.executemany("INSERT INTO lines (rowid, text) VALUES (?, ?)", rows)
        self._database.execute("INSERT INTO lines (lines) VALUES ('optimize')")
        self._database.execute("COMMIT")
        return self._path.stat().st_size

    def search(self, query: str) -> list[int]:
        """See `System`."""
        words = " OR ".join(f'"{word}"' for word in query.split())
        found = self._database.execute(
            "SELECT rowid FROM lines WHERE lines MATCH ? ORDER BY rank LIMIT ?", (words, K)
        )
        return [row for (row,) in found]

    def search_all(self, queries: list[str]) -> list[list[int]]:
        """See `System`."""
        return list(map(self.search, queries))


class Bm25s:
    """bm25s with the same stems and stop words, in memory."""

    def __init__(self, lines: list[str], folder: Path) -> None:
        import Stemmer

        self._lines = lines
        self._folder = folder / "bm25s"
        self._stemmer = Stemmer.Stemmer("english")

    def build(self) -> int:
        """See `System`."""
        import bm25s

        tokens = self._tokens(self._lines)
        self._search = bm25s.BM25(k1=1.2, b=0.75)
        self._search.index(tokens, show_progress=False)
        self._search.save(self._folder, show_progress=False)
        return sum(file.stat().st_size for file in self._folder.iterdir())

    def search(self, query: str) -> list[int]:
        """See `System`."""
        return self.search_all([query])[0]

    def search_all(self, queries: list[str]) -> list[list[int]]:
        """See `System`."""
        tokens = self._tokens(queries)
        found, _ = self._search.retrieve(tokens, k=K, n_threads=0, show_progress=False)
        return [list(map(int, rows)) for rows in found]

    def _tokens(self, texts: list[str]) -> Any:
        import bm25s

        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class Tantivy:
    """Tantivy through its Python package, with its English stems and one writer."""

    def __init__(self, lines: list[str], folder: Path) -> None:
        self._lines = lines
        self._folder = folder / "tantivy"
        self._folder.mkdir(exist_ok=True)

    def build(self) -> int:
        """See `System`."""
        import tantivy

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", tokenizer_name="en_stem")
        schema.add_unsigned_field("row", fast=True)
        index = tantivy.Index(schema.build(), str(self._folder), reuse=False)
        writer = index.writer(128_000_000, 1)
        for row, line in enumerate(self._lines):
            document = tantivy.Document()
            document.add_text("text", line)
            document.add_unsigned("row", row)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._index, self._searcher = index, index.searcher()
        return sum(file.stat().st_size for file in self._folder.iterdir())

    def search(self, query: str) -> list[int]:
        """See `System`."""
        parsed = self._index.parse_query(query, ["text"])
        hits = self._searcher.search(parsed, K, count=False).hits
        return self._searcher.fast_field_values("row", [address for _, address in hits])

    def search_all(self, queries: list[str]) -> list[list[int]]:
        """See `System`."""
        return list(map(self.search, queries))


SYSTEMS: dict[str, Any] = {
    "sbertkit": Sbertkit,
    "fts5": Fts5,
    "bm25s": Bm25s,
    "tantivy": Tantivy,
}
PEERS = ("bm25s", "tantivy")
"""Those that are in the peers' environment."""


def main() -> None:
    """Answers until the end of standard input."""
    name, lines, folder = sys.argv[1:]
    texts = Path(lines).read_text(encoding="utf-8").split("\n")
    system: System = SYSTEMS[name](texts[:-1] if not texts[-1] else texts, Path(folder))
    for order in sys.stdin:
        method, *given = json.loads(order)
        started = time.perf_counter()
        answer = getattr(system, method)(*given)
        print(json.dumps([answer, time.perf_counter() - started]), flush=True)


if __name__ == "__main__":
    main()
