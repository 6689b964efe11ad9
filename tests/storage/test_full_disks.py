"""A full disk is reported with the path and the words "no space left", whoever was writing."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sbertkit import Encoder, SearchIndex
from sbertkit.data.vector_files import open_vector_writer
from sbertkit.errors import StorageError
from sbertkit.storage import replace_file, storage_errors, writer_errors

Mount = Callable[..., None]

VECTORS = np.random.default_rng(0).random((500, 256), np.float32)

TEXTS = [(f"d{number}", f"text {number} " + "word " * 40) for number in range(2_000)]


def write_vectors(path: Path) -> None:
    with open_vector_writer(path, 256) as writer:
        for _ in range(4):
            writer.write(["a"] * 500, ["text"] * 500, VECTORS)


def write_file(path: Path) -> None:
    with storage_errors(path):
        replace_file(path, bytes(3_000_000))


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "index"
    SearchIndex.build(TEXTS, tiny_encoder, path).close()
    return path


@pytest.fixture
def writers(tiny_encoder: Encoder, index: Path) -> dict[str, Callable[[Path], object]]:
    return {
        "model": tiny_encoder.save,
        "export": lambda path: tiny_encoder.export(path),
        "index": lambda path: SearchIndex.build(TEXTS, tiny_encoder, path),
        "vectors.npy": write_vectors,
        "vectors.parquet": write_vectors,
        "dump.parquet": lambda path: SearchIndex.dump_at(index, path),
        "dump.faiss": lambda path: SearchIndex.dump_at(index, path),
        "report.json": write_file,
    }


@pytest.mark.parametrize("size", ["16k", "64k", "128k", "192k"])
def test_every_writer_says_that_no_space_is_left_and_where(
    writers: dict[str, Callable[[Path], object]], tmp_path: Path, mount: Mount, size: str
) -> None:
    disk = tmp_path / "disk"
    mount(disk, size=size)
    said = {name: outcome(write, disk / name) for name, write in writers.items()}
    messages = {name: message for name, message in said.items() if message is not None}
    for name, message in messages.items():
        assert message.startswith(f"cannot write {disk / name}: no space left"), (name, message)
        assert "\n" not in message
    assert len(messages) >= 4
    assert list(disk.iterdir()) == []


def outcome(write: Callable[[Path], object], path: Path) -> str | None:
    """The message of the error, if there is one; what was written is removed."""
    try:
        write(path)
    except StorageError as error:
        return str(error)
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.with_suffix(".ids.json").unlink(missing_ok=True)
    return None


class LibraryError(Exception):
    """What a library raises."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LibraryError("I/O error: No space left on device (os error 28)"), "no space left"),
        (LibraryError("[Errno 122] quota"), "no space left in the disk quota"),
        (LibraryError("write failed: os error 27"), "larger than allowed"),
        (
            LibraryError("unexpected pos 3 vs 4\nat line 5"),
            r"unexpected pos 3 vs 4 at line 5; check",
        ),
    ],
)
def test_a_librarys_own_words_are_understood(tmp_path: Path, error: Exception, words: str) -> None:
    with (
        pytest.raises(StorageError, match=rf"^cannot write model: .*{words}"),
        storage_errors("model"),
        writer_errors(tmp_path, LibraryError),
    ):
        raise error


def test_a_lack_of_space_behind_another_error_is_found(tmp_path: Path) -> None:
    def fail() -> None:
        try:
            raise OSError(errno.ENOSPC, "full")
        except OSError as error:
            raise LibraryError("could not write") from error

    with (
        pytest.raises(OSError, match="could not write") as caught,
        writer_errors(tmp_path, LibraryError),
    ):
        fail()
    assert caught.value.errno == errno.ENOSPC


def test_where_the_library_does_not_say_so_the_disk_is_asked(tmp_path: Path, mount: Mount) -> None:
    mount(tmp_path / "disk", size="64k")
    with (
        pytest.raises(StorageError, match="cannot write model: no space left, the disk is full"),
        storage_errors("model"),
        writer_errors(tmp_path / "disk", RuntimeError),
    ):
        raise RuntimeError("unexpected pos 306432 vs 306320")


def test_errors_of_other_kinds_are_not_those_of_a_disk(tmp_path: Path) -> None:
    class Derived(LibraryError):
        pass

    for error in (Derived("x"), ValueError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)), writer_errors(tmp_path, LibraryError):
            raise error
