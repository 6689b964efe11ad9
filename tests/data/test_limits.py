"""Texts that are larger than a text may be, in every format that corpora have."""

import gzip
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbertkit.data import ReadOptions, ReadReport, read_corpus
from sbertkit.data.nli import read_nli
from sbertkit.data.sts import read_sts
from sbertkit.errors import InputError

LIMIT = 1_000
LONG = "y" * 5_000


def parquet(*texts: str) -> bytes:
    buffer = pa.BufferOutputStream()
    ids = [str(number) for number in range(1, len(texts) + 1)]
    pq.write_table(pa.table({"id": ids, "text": list(texts)}), buffer)
    return buffer.getvalue().to_pybytes()


MAKERS: dict[str, Callable[..., bytes]] = {
    "c.txt": lambda *texts: "".join(f"{text}\n" for text in texts).encode(),
    "c.tsv": lambda *texts: "".join(f"{i}\t{t}\n" for i, t in enumerate(texts, 1)).encode(),
    "c.jsonl": lambda *texts: "".join(f'{{"text": "{text}"}}\n' for text in texts).encode(),
    "c.csv": lambda *texts: b"text\n" + "".join(f"{text}\n" for text in texts).encode(),
    "c.parquet": parquet,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_a_text_above_the_limit_is_a_bad_line(tmp_path: Path, name: str, packed: bool) -> None:
    content = MAKERS[name]("one", LONG, "three")
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    number = 3 if name == "c.csv" else 2
    pattern = (
        rf"{name}\S* (line|row) {number}: 5,\d\d\d bytes, more than the 1,000 .*by max_text_bytes"
    )
    with pytest.raises(InputError, match=pattern):
        list(read_corpus(path, ReadOptions(max_text_bytes=LIMIT)))
    report = ReadReport()
    options = ReadOptions(max_text_bytes=LIMIT, skip_bad_lines=True)
    found = [one.document.text for one in read_corpus(path, options, report)]
    assert found == ["one", "three"]
    assert report.bad_lines.examples == [str(number)]
    assert len(list(read_corpus(path, ReadOptions(max_text_bytes=10_000)))) == 3


def test_a_file_of_a_folder_above_the_limit_is_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.txt").write_text("two\n" * 999)
    with pytest.raises(InputError, match=r"file 2: b\.txt has 3,996 bytes, more than the 1,000"):
        list(read_corpus(tmp_path, ReadOptions(max_text_bytes=LIMIT)))
    options = ReadOptions(max_text_bytes=LIMIT, skip_bad_lines=True)
    assert [one.document.id for one in read_corpus(tmp_path, options)] == ["a.txt"]


@pytest.mark.parametrize(
    ("body", "texts", "bad"),
    [
        (f'"one\n{LONG}\ntwo"\nthree\n', ["three"], ["2-4"]),
        (f"{LONG}\none\n", ["one"], ["2"]),
        (f'one\n"{LONG}"\ntwo\n', ["one", "two"], ["3"]),
        (f"one\n{LONG}", ["one"], ["3"]),
        (f'one\n"{LONG[:900]}\n{LONG[:900]}"\ntwo\n', ["one", "two"], ["3-4"]),
    ],
)
def test_a_long_line_makes_its_record_of_csv_a_bad_one(
    tmp_path: Path, body: str, texts: list[str], bad: list[str]
) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"text\n{body}")
    report = ReadReport()
    options = ReadOptions(max_text_bytes=LIMIT, skip_bad_lines=True)
    assert [one.document.text for one in read_corpus(path, options, report)] == texts
    assert report.bad_lines.examples == bad


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f'"{LONG}\none"\ntwo\n', "line 2: 5,001 bytes, .* a quote is open"),
        ('one\n"' + "lost\n" * 300, "line 3: the quote opened here is not closed within"),
    ],
)
def test_records_of_csv_without_a_clear_end_are_refused_also_to_skip(
    tmp_path: Path, body: str, reason: str
) -> None:
    (tmp_path / "c.csv").write_text(f"text\n{body}")
    with pytest.raises(InputError, match=reason):
        list(
            read_corpus(tmp_path / "c.csv", ReadOptions(max_text_bytes=LIMIT, skip_bad_lines=True))
        )


@pytest.mark.parametrize("limit", [0, -1, 10**9 + 1, 10**30])
def test_a_limit_that_is_none_is_refused(limit: int) -> None:
    with pytest.raises(InputError, match="max_text_bytes must be at"):
        ReadOptions(max_text_bytes=limit)


def test_values_of_a_dictionary_count_in_each_row(tmp_path: Path) -> None:
    indices = pa.array([0, 1, 0, 1] * 500, pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["one", LONG]))
    pq.write_table(pa.table({"text": texts}), tmp_path / "c.parquet")
    options = ReadOptions(max_text_bytes=LIMIT, skip_bad_lines=True)
    report = ReadReport()
    found = list(read_corpus(tmp_path / "c.parquet", options, report))
    assert (len(found), report.bad_lines.count) == (1_000, 1_000)
    assert {one.document.text for one in found} == {"one"}


@pytest.fixture
def small_memory() -> Callable[[str, Path], subprocess.CompletedProcess[str]]:
    """Runs a line of Python about a path with 1.2 GB of memory and 60 seconds."""

    def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
        size = 1_200 * 2**20
        return subprocess.run(
            [sys.executable, "-c", f"import sys; path = sys.argv[1]\n{code}", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    return run


READ = "from sbertkit.data import *\nprint(len(list(read_corpus(path, ReadOptions({})))))"


def test_a_packed_bomb_is_refused_in_little_memory(
    tmp_path: Path, small_memory: Callable[[str, Path], subprocess.CompletedProcess[str]]
) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"z" * 2**20)
    ran = small_memory(READ.format(""), path)
    assert ran.returncode == 1
    assert "line 1: 209,715,200 bytes, more than the 16,777,216" in ran.stderr


def test_a_bomb_of_one_text_for_many_rows_is_read_in_little_memory(
    tmp_path: Path, small_memory: Callable[[str, Path], subprocess.CompletedProcess[str]]
) -> None:
    rows = pa.array([0] * 150, pa.int32())
    text = pa.DictionaryArray.from_arrays(rows, pa.array(["z" * (12 * 2**20)]))
    pq.write_table(pa.table({"text": text}), tmp_path / "b.parquet", store_schema=False)
    code = READ.format("max_text_bytes=2**20, skip_bad_lines=True")
    ran = small_memory(code, tmp_path / "b.parquet")
    assert (ran.stdout, ran.returncode) == ("0\n", 0), ran.stderr


def test_pairs_above_the_limit_are_refused_with_their_row(tmp_path: Path) -> None:
    long = "z" * (17 * 2**20)
    nli = {"premise": ["a", long], "hypothesis": ["b", "c"], "label": ["neutral", "neutral"]}
    pq.write_table(pa.table(nli), tmp_path / "n.parquet")
    with pytest.raises(
        InputError, match=r"n\.parquet: 1 bad row: 2 \(17,825,\d\d\d bytes, more than the"
    ):
        read_nli(tmp_path / "n.parquet")
    sts = {"sentence1": ["a", long], "sentence2": ["b", "c"], "score": [1.0, 2.0]}
    pq.write_table(pa.table(sts), tmp_path / "s.parquet")
    with pytest.raises(InputError, match=r"s\.parquet: 1 bad row: 2 \(17,825,\d\d\d bytes, more"):
        read_sts(tmp_path / "s.parquet")
    (tmp_path / "s.tsv").write_text(f"1\ta\tb\n2\t{long}\tc\n")
    with pytest.raises(InputError, match=r"s\.tsv: 1 bad line: 2 \(17,825,\d\d\d bytes, more"):
        read_sts(tmp_path / "s.tsv")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/full"])
@pytest.mark.parametrize("form", ["txt", "jsonl", "csv", "tsv", "parquet"])
def test_devices_are_refused_and_not_read(device: str, form: str) -> None:
    with pytest.raises(InputError, match="expected a file or a pipe, found a device"):
        list(read_corpus(device, ReadOptions(format=form)))


@pytest.mark.parametrize("name", MAKERS)
def test_a_pipe_is_read_once_in_every_format(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    content = MAKERS[name]("one", "two")
    threading.Thread(target=pipe.write_bytes, args=[content], daemon=True).start()
    assert [one.document.text for one in read_corpus(pipe)] == ["one", "two"]
