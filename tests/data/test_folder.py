"""Folders of text files."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from sbertkit.data import Document, ReadOptions, ReadReport, read_corpus
from sbertkit.errors import InputError, MissingFile, StorageError


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return root


def read(source: Path, **options: Any) -> list[Document]:
    return [d.document for d in read_corpus(source, ReadOptions(**options))]


def test_files_are_documents_in_the_order_of_their_relative_paths(tmp_path: Path) -> None:
    names = ["a.txt", "a/z.md", "a-b/c.txt", "a/b/c.txt", "B.TXT", "ä.txt", "a0.md", "a/.x/y.txt"]
    fill(tmp_path, {name: name for name in names})
    shown = sorted(name for name in names if ".x" not in name)
    assert read(tmp_path) == [Document(name, name, {}) for name in shown]


def test_hidden_and_other_files_are_left_out(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "x", ".b.txt": "x", ".git/c.txt": "x", "d.py": "x", "txt": "x"})
    assert [d.id for d in read(tmp_path)] == ["a.txt"]


def test_links_to_folders_are_not_followed_but_links_to_files_are(tmp_path: Path) -> None:
    fill(tmp_path, {"corpus/a.txt": "x", "other/b.txt": "y"})
    corpus = tmp_path / "corpus"
    (corpus / "loop").symlink_to(corpus)
    (corpus / "other.txt").symlink_to(tmp_path / "other")
    (corpus / "c.txt").symlink_to(tmp_path / "other" / "b.txt")
    assert read(corpus) == [Document("a.txt", "x", {}), Document("c.txt", "y", {})]


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(MissingFile, match=r"a\.txt"):
        read(tmp_path)


def test_line_ends_become_newlines_and_the_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "\ufeffone\r\n\r\ntwo\rthree\n\u2028\n"})
    assert read(tmp_path) == [Document("a.txt", "one\n\ntwo\rthree\n\u2028\n", {})]


def test_blank_files_are_reported_by_path(tmp_path: Path) -> None:
    fill(tmp_path, {"a/b.txt": " \n\n", "c.md": "", "d.md": "x"})
    report = ReadReport()
    assert [d.line for d in read_corpus(tmp_path, report=report)] == [3]
    assert report.blank.examples == ["a/b.txt", "c.md"]


def test_packed_files_are_documents_too(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt.gz": gzip.compress(b"one")})
    assert read(tmp_path) == [Document("a.txt.gz", "one", {})]


def test_undecodable_bytes_name_the_file(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "x", "sub/b.txt": b"one\ntw\xf6"})
    with pytest.raises(InputError, match=r"sub/b\.txt line 2: not valid utf-8"):
        read(tmp_path)
    assert [d.text for d in read(tmp_path, encoding="latin-1")] == ["x", "one\ntwö"]
    assert [d.text for d in read(tmp_path, errors="replace")] == ["x", "one\ntw\ufffd"]


@pytest.mark.parametrize("files", [{}, {"a.pdf": "x", "sub/.b.txt": "y"}])
@pytest.mark.parametrize("form", [None, "folder"])
def test_a_folder_without_text_is_refused(
    tmp_path: Path, files: dict[str, str | bytes], form: str | None
) -> None:
    fill(tmp_path, files)
    with pytest.raises(InputError, match=r"expected a folder with \.txt or \.md files, with"):
        read(tmp_path, format=form)


def test_the_format_folder_reads_text_beside_a_corpus_file(tmp_path: Path) -> None:
    fill(tmp_path, {"corpus.jsonl": "{}", "a.txt": "x"})
    assert read(tmp_path, format="folder") == [Document("a.txt", "x", {})]


def test_a_name_with_a_line_end_is_a_bad_file(tmp_path: Path) -> None:
    fill(tmp_path, {"a\nb.txt": "x", "c.txt": "y"})
    with pytest.raises(InputError, match=r"file 1: id 'a\\nb\.txt' holds a tab, line end or NUL"):
        read(tmp_path)
    assert read(tmp_path, skip_bad_lines=True) == [Document("c.txt", "y", {})]


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode there")
def test_a_name_that_is_not_unicode_is_repaired(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"a\xff.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only Unicode names")
    report = ReadReport()
    assert [d.document.id for d in read_corpus(tmp_path, report=report)] == ["a\ufffd.txt"]
    assert report.repaired.count == 1


def test_a_folder_that_cannot_be_listed_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(StorageError, match=r"cannot be read \(Permission denied\)"):
        read(tmp_path, format="folder")
