"""Databases of documents that are prepared, with hashes made right, are refused in one line."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from index_cases import documents, write_manifest

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex

CORPUS = documents(60)
DEEP = "[" * 100_000
ENDLESS = (
    "ALTER TABLE documents RENAME TO others;"
    "CREATE VIEW documents AS WITH RECURSIVE n(row) AS (SELECT 0 UNION ALL SELECT row + 1 FROM n)"
    " SELECT row, 'id' || row AS id, 'text' AS text, '{}' AS metadata, 1 AS line FROM n;"
)
MADE = {
    "endless view": ENDLESS,
    "view of another name": "CREATE VIEW other AS SELECT 1",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON documents BEGIN SELECT 1; END",
    "virtual table": "DROP TABLE documents; CREATE VIRTUAL TABLE documents USING fts5(row, id)",
    "no table": "DROP TABLE documents",
    "other columns": "ALTER TABLE documents ADD COLUMN other DEFAULT 1",
    "no first row": "DELETE FROM documents WHERE row = 0",
    "no last row": "DELETE FROM documents WHERE row = 59",
    "no rows": "DELETE FROM documents",
    "far row": "UPDATE documents SET row = 1000000000000 WHERE row = 59",
    "negative row": "UPDATE documents SET row = -1 WHERE row = 30",
}
WORDS = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content='documents', content_rowid='row');"
    "INSERT INTO words(words) VALUES ('rebuild')"
)
ROWS = {
    "lost": "DELETE FROM documents WHERE row = 30",
    "id": "UPDATE documents SET id = x'00ff' WHERE row = 30",
    "text": "UPDATE documents SET text = zeroblob(9) WHERE row = 30",
    "no UTF-8": "UPDATE documents SET text = CAST(x'ff41' AS TEXT) WHERE row = 30",
    "metadata blob": "UPDATE documents SET metadata = x'7b7d' WHERE row = 30",
    "metadata list": "UPDATE documents SET metadata = '[]' WHERE row = 30",
    "metadata cut": "UPDATE documents SET metadata = '{\"a\": ' WHERE row = 30",
    "metadata deep": f"UPDATE documents SET metadata = '{{\"a\": {DEEP}' WHERE row = 30",
    "line": "UPDATE documents SET line = 'x' WHERE row = 30",
}


@pytest.fixture(scope="module")
def built(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path, with_encoder=False).close()
    return path


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def prepare(index: Path, script: str) -> None:
    """Runs SQL on the documents, and makes the hashes right."""
    (path,) = index.rglob("documents.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    accept(index, path)


def accept(index: Path, path: Path) -> None:
    """Makes the manifest name a file as it is now."""
    manifest = json.loads((index / "manifest.json").read_text())
    for entry in (entry for segment in manifest["segments"] for entry in segment["files"]):
        if index / entry["path"] == path:
            entry["bytes"] = path.stat().st_size
            entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    write_manifest(index, manifest)


def test_a_database_with_a_table_of_words_beside_the_documents_is_read_and_changed(
    index: Path, tiny_encoder: Encoder
) -> None:
    prepare(index, WORDS)  # as earlier versions wrote it
    with SearchIndex.open(index, tiny_encoder) as opened:
        assert [document.id for document in opened.documents()] == [id_ for id_, _ in CORPUS]
        opened.add([("new", "one more")])
        opened.compact()
        assert len(opened) == len(CORPUS) + 1
        assert opened.verify() == ()


@pytest.mark.parametrize("script", MADE.values(), ids=MADE)
def test_what_is_no_table_of_documents_is_refused(
    index: Path, tiny_encoder: Encoder, script: str
) -> None:
    prepare(index, script)
    with pytest.raises(DamagedIndex) as caught:
        SearchIndex.open(index, tiny_encoder)
    assert "\n" not in str(caught.value)
    assert "segments/" in str(caught.value)


READS: dict[str, Callable[[SearchIndex], object]] = {
    "search": lambda index: index.search("anything", k=60),
    "documents": lambda index: list(index.documents()),
    "get": lambda index: index.get("d30"),
    "upsert": lambda index: index.upsert([("d30", CORPUS[30][1])]),
}
# Without its id a row is not looked for, and a search does not read the line.
READ = {"lost": ("search", "documents"), "id": ("search", "documents"), "line": ("documents",)}


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_row_is_reported_with_its_file_by_all_that_read_it(
    index: Path, tiny_encoder: Encoder, name: str
) -> None:
    prepare(index, ROWS[name])
    with SearchIndex.open(index, tiny_encoder) as opened:
        for read in READ.get(name, READS):
            with pytest.raises(DamagedIndex, match=r"documents\.db.*(row|decode)") as caught:
                READS[read](opened)
            assert "\n" not in str(caught.value)
