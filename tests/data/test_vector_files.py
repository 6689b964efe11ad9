"""Vectors to .npy and Parquet, chunk by chunk."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sbertkit.data.vector_files import open_vector_writer, vector_file
from sbertkit.errors import InputError, StorageError

DIM = 5


def rows(count: int) -> tuple[list[str], list[str], np.ndarray]:
    vectors = np.random.default_rng(count).normal(size=(count, DIM)).astype(np.float32)
    return (
        [f"{row:03d}" for row in range(count)],
        [f"text\n{row}\0é" for row in range(count)],
        vectors,
    )


def write(path: Path, chunks: list[int]) -> np.ndarray:
    written = []
    with open_vector_writer(path, DIM) as writer:
        for count in chunks:
            ids, texts, vectors = rows(count)
            writer.write(ids, texts, vectors)
            written.append(vectors)
        assert not path.exists() or path.read_bytes() == b"old"
    return np.concatenate([np.empty((0, DIM), np.float32), *written])


@pytest.mark.parametrize("chunks", [[], [0], [1], [3, 0, 4], [1] * 12, [999, 9001, 123_456]])
def test_a_npy_file_holds_all_parts_in_order(tmp_path: Path, chunks: list[int]) -> None:
    path = tmp_path / "vectors.npy"
    written = write(path, chunks)
    for mode in (None, "r") if len(written) else (None,):
        found = np.load(path, mmap_mode=mode, allow_pickle=False)
        assert found.dtype == np.float32
        assert found.shape == written.shape
        np.testing.assert_array_equal(found, written)


def test_vectors_of_another_layout_or_precision_are_stored_as_float32_rows(tmp_path: Path) -> None:
    matrix = np.arange(30, dtype=np.float64).reshape(DIM, 6).T
    for suffix in (".npy", ".parquet"):
        with open_vector_writer(tmp_path / f"x{suffix}", DIM) as writer:
            writer.write(["a"] * 6, ["b"] * 6, matrix)  # type: ignore[arg-type]
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), matrix.astype(np.float32))
    column = pyarrow.parquet.read_table(tmp_path / "x.parquet")["vector"]
    assert column.to_pylist() == matrix.tolist()


@pytest.mark.parametrize("chunks", [[], [1], [3, 4]])
def test_a_parquet_file_holds_ids_texts_and_vectors(tmp_path: Path, chunks: list[int]) -> None:
    path = tmp_path / "new" / "vectors.parquet"
    written = write(path, chunks)
    table = pyarrow.parquet.read_table(path)
    assert table.schema.names == ["id", "text", "vector"]
    assert table.schema.field("vector").type == pa.list_(pa.float32(), DIM)
    assert table["id"].to_pylist() == [f"{row:03d}" for size in chunks for row in range(size)]
    assert table["text"].to_pylist() == [
        f"text\n{row}\0é" for size in chunks for row in range(size)
    ]
    assert table["vector"].to_pylist() == written.tolist()


def test_the_suffix_names_the_format_in_any_case() -> None:
    assert vector_file("a/b.NPY").name == "b.NPY"
    assert vector_file(Path("x.parquet")).suffix == ".parquet"


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    with open_vector_writer(tmp_path / "link.npy", DIM) as writer:
        writer.write(*rows(2))
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (2, DIM)


def test_a_pipe_is_refused_and_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npy")
    with (
        pytest.raises(InputError, match="pipe or a device"),
        open_vector_writer(tmp_path / "pipe.npy", DIM),
    ):
        pytest.fail("never reached")
    assert (tmp_path / "pipe.npy").is_fifo()


@pytest.mark.parametrize("name", ["vectors", "vectors.txt", "vectors.npz", ".npy", "npy", ""])
def test_another_suffix_is_refused_with_those_that_work(tmp_path: Path, name: str) -> None:
    path = tmp_path / (name or "x/y")
    with pytest.raises(InputError, match=r"\.npy or \.parquet"), open_vector_writer(path, DIM):
        pytest.fail("never reached")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_way_is_refused_and_left(tmp_path: Path) -> None:
    (tmp_path / "x.npy").mkdir()
    with pytest.raises(InputError, match="is a folder"), open_vector_writer(tmp_path / "x.npy", 5):
        pytest.fail("never reached")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def write_and_fail(path: Path, error: BaseException) -> None:
    with open_vector_writer(path, DIM) as writer:
        writer.write(*rows(10))
        raise error


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError, ConnectionError])
def test_a_failure_in_the_block_leaves_nothing_and_stays_what_it_is(
    tmp_path: Path, suffix: str, error: type[BaseException]
) -> None:
    old = tmp_path / f"old{suffix}"
    old.write_bytes(b"old")
    for path in (old, tmp_path / "new" / f"x{suffix}"):
        with pytest.raises(error, match="mine"):
            write_and_fail(path, error("mine"))
    assert [path.name for path in tmp_path.rglob("*")] == [old.name]
    assert old.read_bytes() == b"old"


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_an_existing_file_is_replaced(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"old")
    write(path, [3])
    assert path.stat().st_size > 3
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_a_file_in_the_place_of_a_folder_of_the_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "deeper" / "x.npy"
    with pytest.raises(StorageError, match="a file, not a folder"), open_vector_writer(path, DIM):
        pytest.fail("never reached")


_FULL_DISK = """
import resource, sys
from pathlib import Path
import numpy as np
from sbertkit.data.vector_files import open_vector_writer
from sbertkit.errors import StorageError

path = Path(sys.argv[1])
if path.suffix == ".parquet":
    import pyarrow.parquet
refused = 0
for limit in (0, 60, 200, 1000, 5000, 20_000, 39_000, 40_100, 100_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        with open_vector_writer(path, 5) as writer:
            for part in range(20):
                noise = np.random.default_rng(part).normal(size=(100, 5)).astype(np.float32)
                writer.write(["i"] * 100, ["t"] * 100, noise)
    except StorageError as error:
        assert str(path) in str(error) and "\\n" not in str(error), error
        refused += 1
    else:
        path.unlink()
        path.parent.rmdir()
    assert not path.parent.exists(), list(path.parent.iterdir())
print(refused)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on the size of files there")
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_a_full_disk_at_any_byte_is_reported_without_traces(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"vectors{suffix}"
    command = [sys.executable, "-c", _FULL_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 7  # 2,000 rows of 20 bytes need about 40,000


def test_reading_of_corpora_stays_light() -> None:
    code = "import sys, sbertkit.data.vector_files; print({'pyarrow', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
