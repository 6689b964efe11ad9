"""Bytes of files, gzip files and standard input, and the errors for what cannot be read."""

import errno
import gzip
import io
import os
import sys
from pathlib import Path

import pytest

from sbertkit.arguments import path_text
from sbertkit.data import streams
from sbertkit.data.streams import open_bytes, open_seekable
from sbertkit.errors import InputError, InputTypeError, MissingFile, StorageError


def read(source: str | os.PathLike[str]) -> bytes:
    with open_bytes(source) as stream:
        return stream.read()


@pytest.mark.parametrize("name", ["a.gz", "a.txt.gz", "A.TXT.GZ"])
def test_a_name_in_gz_is_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(tmp_path / name) == b"one\ntwo\n"


@pytest.mark.parametrize("data", [b"", b"\x1f", b"plain text", b"PK\x03\x04"])
def test_a_file_named_gz_that_is_not_gzip_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt.gz").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.txt\.gz: not a gzip file"):
        read(tmp_path / "a.txt.gz")


PACKED = gzip.compress(os.urandom(5000))


@pytest.mark.parametrize(
    "data",
    [
        PACKED[:5],
        PACKED[:2000],
        PACKED[:-1],
        PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:],
        PACKED[:10] + b"\xff" * 50 + PACKED[60:],
        PACKED + b"garbage",
    ],
    ids=["header", "middle", "end", "checksum", "data", "trailing"],
)
def test_a_broken_gzip_stream_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.txt.gz").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.txt\.gz: broken gzip stream"):
        read(tmp_path / "a.txt.gz")


@pytest.mark.parametrize("name", ["nothing.txt", "nothing.gz", "file/inside.txt", "nowhere/a.txt"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MissingFile, match=name):
        read(tmp_path / name)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file, found a folder"):
        read(tmp_path)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_failure_of_the_system_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*_args: object, **_more: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(StorageError, match=r"a\.txt: cannot be read \(") as caught:
        read(tmp_path / "a.txt")
    assert os.strerror(code) in str(caught.value)


def test_a_name_that_is_too_long_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read(tmp_path / ("x" * 5000))


@pytest.mark.parametrize("source", ["", "a\0b", "\ud800"])
def test_a_path_that_names_nothing_is_refused(source: str) -> None:
    with pytest.raises(InputError, match="expected the path"):
        path_text(source)


@pytest.mark.parametrize("source", [b"a.txt", 3, None, ["a.txt"]])
def test_a_source_that_is_not_a_path_is_a_type_error(source: object) -> None:
    with pytest.raises(InputTypeError, match="expected the path of a file or folder as str"):
        path_text(source)  # type: ignore[arg-type]


def test_a_path_with_a_line_end_gives_a_message_of_one_line(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        read(tmp_path / "a\nb\x1b[31m.txt")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("stdin", [None, io.StringIO("text")])
def test_standard_input_without_bytes_is_refused(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match="standard input"):
        read("-")


def test_packed_and_piped_bytes_can_be_read_in_any_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"0123456789"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0123456789")))
    for source in (tmp_path / "a", tmp_path / "a.gz", "-"):
        with open_seekable(source) as stream:
            stream.seek(-3, os.SEEK_END)
            assert stream.read() == b"789"
            stream.seek(1)
            assert stream.read(2) == b"12"


def test_a_file_that_unpacks_to_far_more_than_it_has_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_UNPACKED_BYTES", 2**20)
    (tmp_path / "a.parquet.gz").write_bytes(gzip.compress(bytes(2**23)))
    with (
        pytest.raises(InputError, match=r"a\.parquet\.gz: expected at most .* bytes once unpacked"),
        open_seekable(tmp_path / "a.parquet.gz"),
    ):
        pass
