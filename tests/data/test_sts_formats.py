"""Scored pairs from the formats in which data sets are released."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from sbertkit.data.sts import StsPair, read_sts
from sbertkit.errors import InputError

Write = Callable[..., Path]
ROWS = [
    {"split": "dev", "score": 1.5, "sentence1": "One goat.", "sentence2": 'Two "goats".'},
    {"split": "test", "score": 3, "sentence1": "Hay, wet", "sentence2": "Dry hay"},
    {"split": "test", "score": 0.0, "sentence1": "Milk", "sentence2": "A train"},
]
PAIRS = (StsPair(3.0, "Hay, wet", "Dry hay"), StsPair(0.0, "Milk", "A train"))
HEADER = "split\tscore\tsentence1\tsentence2\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def as_csv(rows: list[dict[str, Any]]) -> str:
    def cell(value: object) -> str:
        text = str(value).replace('"', '""')
        return f'"{text}"' if "," in text or '"' in text else text

    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(",".join(cell(value) for value in line) + "\n" for line in lines)


def as_jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_parquet(rows: list[dict[str, Any]], path: Path) -> Path:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    columns["score"] = [float(value) for value in columns["score"]]
    pyarrow.parquet.write_table(pyarrow.table({"other": [1] * len(rows), **columns}), path)
    return path


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.csv.gz", "pairs.jsonl", "pairs.ndjson.gz"])
def test_pairs_are_the_same_in_every_format(write: Write, name: str) -> None:
    content = (as_csv if "csv" in name else as_jsonl)(ROWS).encode()
    path = write(gzip.compress(content) if name.endswith("gz") else content, name)
    found = read_sts(path)
    assert (found.pairs, found.split, found.splits) == (PAIRS, "test", ("dev", "test"))
    assert read_sts(path, split="dev").pairs == (StsPair(1.5, "One goat.", 'Two "goats".'),)


def test_parquet_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    found = read_sts(as_parquet(ROWS, tmp_path / "pairs.parquet"))
    assert (found.pairs, found.split) == (PAIRS, "test")


def test_the_released_sts_benchmark_is_read_though_it_is_named_csv(write: Write) -> None:
    lines = [
        'main-captions\tMSRvid\t2012test\t0024\t2.500\tA girl\'s "hair".\tA girl, hair.',
        "main-news\theadlines\t2015\t0001\t5.0\tOne\tTwo\tsource one\tsource two",
    ]
    for name in ("sts-test.csv", "sts-test.tsv"):
        found = read_sts(write("\n".join(lines) + "\n", name))
        assert found.pairs == (
            StsPair(2.5, 'A girl\'s "hair".', "A girl, hair."),
            StsPair(5.0, "One", "Two"),
        )
        assert found.splits == ()


def test_a_short_line_of_the_released_benchmark_is_refused(write: Write) -> None:
    lines = "a\tb\tc\td\t2.5\tone\ttwo\na\tb\tc\td\t2.5\tone\n"
    with pytest.raises(InputError, match=r"1 bad line: 2 \(6 columns, expected 7\)"):
        read_sts(write(lines, "sts-dev.csv"))


@pytest.fixture
def release(write: Write) -> Path:
    write("One\tTwo\nThree\tFour\tsource\nFive\tSix\n", "2016/STS.input.news.txt")
    write("4.5\n\n0\n", "2016/STS.gs.news.txt")
    write("a\tb\n", "2016/STS.input.forum.txt")
    return write("2\n", "2016/STS.gs.forum.txt").parent


def test_a_semeval_release_is_read_with_its_sub_corpora(release: Path) -> None:
    found = read_sts(release)
    assert found.pairs == (
        StsPair(2.0, "a", "b"),
        StsPair(4.5, "One", "Two"),  # the second was not judged
        StsPair(0.0, "Five", "Six"),
    )
    assert found.subsets == {"forum": (0,), "news": (1, 2)}
    assert (found.split, found.splits) == (None, ())


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("STS.gs.news.txt", "4.5\n0\n", "expected a score for each of the 3 lines"),
        ("STS.gs.news.txt", "4.5\nx\n0\n", r"STS.input.news.txt: 1 bad line: 2 \(score 'x'"),
        ("STS.input.forum.txt", "a\n", r"STS.input.forum.txt: 1 bad line: 1 \(1 column, expected"),
        ("STS.input.odd.txt", "a\tb\n", "the scores of STS.input.odd.txt are missing"),
    ],
)
def test_a_bad_release_is_refused_with_its_file(
    release: Path, name: str, content: str, reason: str
) -> None:
    (release / name).write_text(content)
    with pytest.raises(InputError, match=reason):
        read_sts(release)


def test_a_release_has_no_splits(release: Path) -> None:
    assert len(read_sts(release, split="all").pairs) == 3
    with pytest.raises(InputError, match="no splits"):
        read_sts(release, split="test")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected files of splits, such as test\.jsonl"):
        read_sts(tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"score": None}, "score 'None' is no number"),
        ({"score": True}, "score 'True' is no number"),
        ({"score": "x"}, "score 'x' is no number"),
        ({"score": [1]}, "is no number"),
        ({"score": 10**400}, "is no number"),
        ({"sentence1": None}, "the first sentence must be text, found nothing"),
        ({"sentence2": 5}, "the second sentence must be text, found int"),
        ({"sentence2": " "}, "the second sentence is blank"),
    ],
)
def test_bad_values_of_json_are_refused_with_their_line(
    write: Write, change: dict[str, Any], reason: str
) -> None:
    path = write(as_jsonl([ROWS[1], {**ROWS[2], **change}]), "pairs.jsonl")
    with pytest.raises(InputError, match=r"1 bad line: 2 \(") as caught:
        read_sts(path)
    assert reason in str(caught.value)


def test_all_bad_lines_of_json_are_reported(write: Write) -> None:
    path = write('{"score": 1}\n[]\n' + as_jsonl(ROWS[1:2]) + "{\n", "pairs.jsonl")
    with pytest.raises(
        InputError, match=r"3 bad lines: 1 \(no field 'sentence1' and 'sentence2'\), 2 \("
    ):
        read_sts(path)


def test_a_score_that_is_no_number_is_refused_with_its_row_of_parquet(tmp_path: Path) -> None:
    table = pyarrow.table({"score": [1.0, None], "sentence1": ["a", "b"], "sentence2": ["c", "d"]})
    pyarrow.parquet.write_table(table, tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match=r"1 bad row: 2 \(score 'None' is no number"):
        read_sts(tmp_path / "pairs.parquet")


def test_csv_and_parquet_without_the_names_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: expected columns named score, sentence1"):
        read_sts(write("1.5,a,b\n", "pairs.csv"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0]}), tmp_path / "pairs.parquet")
    with pytest.raises(InputError, match="expected columns named score"):
        read_sts(tmp_path / "pairs.parquet")


def test_damaged_parquet_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_sts(write(b"PAR1 and no more", "pairs.parquet"))


# --- sub-corpora beside a file

LIST = "subset\tsplit\tfirst_row\trows\n"


@pytest.fixture
def parts(write: Write) -> Path:
    rows = [("dev", 1, "a"), ("test", 2, "b"), ("test", 3, "c"), ("test", 4, "d"), ("dev", 5, "e")]
    lines = (f"{split}\t{score}\t{text} one\t{text} two\n" for split, score, text in rows)
    write(f"{LIST}news\ttest\t1\t2\nforum\ttest\t3\t1\nother\tdev\t0\t1\n", "sts.subsets.tsv")
    return write(HEADER + "".join(lines), "sts.tsv")


def test_a_list_beside_the_file_names_its_sub_corpora(parts: Path) -> None:
    assert read_sts(parts).subsets == {"news": (0, 1), "forum": (2,)}
    assert read_sts(parts, split="dev").subsets == {"other": (0,)}
    assert read_sts(parts, split="all").subsets == {"news": (1, 2), "forum": (3,), "other": (0,)}


def test_the_list_counts_for_a_gzipped_file_too(parts: Path) -> None:
    packed = parts.with_name("sts.tsv.gz")
    packed.write_bytes(gzip.compress(parts.read_bytes()))
    assert read_sts(packed).subsets == read_sts(parts).subsets


def test_a_file_without_a_list_has_no_sub_corpora(write: Write) -> None:
    assert read_sts(write("1\ta\tb\n", "alone.tsv")).subsets == {}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "expected the columns subset, split, first_row, rows"),
        ("name\tfirst\trows\n", "expected the columns"),
        (f"{LIST}news\ttest\t1\n", "line 2: expected a name, a split and two numbers"),
        (f"{LIST}news\ttest\t-1\t2\n", "line 2"),
        (f"{LIST}news\ttest\t1\tx\n", "line 2"),
        (f"{LIST}news\ttest\t1\t9\n", "has rows 1 to 9, but there are 5 rows"),
        (f"{LIST}news\ttest\t1\t2\nforum\ttest\t2\t1\n", "row 2 is in news and in forum"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(parts: Path, content: str, reason: str) -> None:
    parts.with_name("sts.subsets.tsv").write_text(content)
    with pytest.raises(InputError, match=reason):
        read_sts(parts)


# --- a folder with a file for each split


def test_a_folder_with_a_file_for_each_split_is_read(write: Write, tmp_path: Path) -> None:
    write(as_jsonl(ROWS[:1]), "hub/validation.jsonl")
    write(gzip.compress(as_jsonl(ROWS[1:]).encode()), "hub/test.jsonl.gz")
    write("anything", "hub/README.md")
    data = read_sts(tmp_path / "hub")
    assert (data.pairs, data.split, data.splits) == (PAIRS, "test", ("test", "validation"))
    assert len(read_sts(tmp_path / "hub", split="all").pairs) == 3
    assert read_sts(tmp_path / "hub", split="validation").pairs[0].first == "One goat."
    with pytest.raises(InputError, match="expected a train split, found test, validation;"):
        read_sts(tmp_path / "hub", split="train")
    assert read_sts(tmp_path / "hub", split="dev").split == "validation"


def test_the_parts_of_a_split_belong_together(write: Write, tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    for number, row in enumerate(ROWS[1:]):
        as_parquet([row], tmp_path / f"hub/test-{number:05}-of-00002.parquet")
    assert read_sts(tmp_path / "hub").pairs == PAIRS


def test_bad_rows_of_a_split_name_their_file_and_line(write: Write, tmp_path: Path) -> None:
    write(as_jsonl([{**ROWS[1], "score": "high"}]), "hub/test.jsonl")
    with pytest.raises(InputError, match=r"test\.jsonl: 1 bad line: 1 \(score 'high' is no number"):
        read_sts(tmp_path / "hub")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_pairs_from_a_pipe_are_read_once(tmp_path: Path, suffix: str) -> None:
    contents = {".csv": as_csv(ROWS), ".jsonl": as_jsonl(ROWS), ".tsv": f"{HEADER}test\t3\ta\tb\n"}
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=[contents[suffix]], daemon=True).start()
    assert read_sts(pipe).pairs == ((StsPair(3.0, "a", "b"),) if suffix == ".tsv" else PAIRS)


def test_rows_without_a_split_beside_rows_with_one_are_refused(write: Write) -> None:
    rows = [dict(row) for row in ROWS]
    del rows[1]["split"]
    with pytest.raises(InputError, match=r"1 bad line: 2 \(no split\)"):
        read_sts(write(as_jsonl(rows), "pairs.jsonl"))


def test_parts_of_a_split_are_read_together_and_folders_below_are_left(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name, score in (("test-news", 1), ("test.images", 2), ("dev", 3), ("raw/dev", 4)):
        (tmp_path / f"{name}.tsv").write_text(f"score\tsentence1\tsentence2\n{score}\ta\tb\n")
    assert [pair.score for pair in read_sts(tmp_path, split="test").pairs] == [1, 2]
    assert [pair.score for pair in read_sts(tmp_path, split="dev").pairs] == [3]


def test_lists_of_sub_corpora_in_a_folder_are_no_splits(tmp_path: Path) -> None:
    rows = "score\tsentence1\tsentence2\n1\ta\tb\n4\tc\td\n"
    (tmp_path / "test.tsv").write_text(rows)
    (tmp_path / "test.subsets.tsv").write_text(f"{LIST}news\ttest\t1\t2\n")
    assert len(read_sts(tmp_path).pairs) == 2
