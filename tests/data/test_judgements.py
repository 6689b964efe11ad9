"""Judgements, queries, runs and collections from files and mappings."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data.retrieval import (
    checked_qrels,
    checked_run,
    read_collection,
    read_qrels,
    read_queries,
    read_run,
    write_run,
)
from sbertkit.data.retrieval.runs import ranked
from sbertkit.errors import InputError, InputTypeError, MissingFile, SbertkitError

Write = Callable[..., Path]
THREE = {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 1}}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "file.tsv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(read: Callable[..., Any], *arguments: Any) -> str:
    """The one line with which something is refused."""
    with pytest.raises(SbertkitError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- judgements

FORMS = {
    "plain": "q1\td1\t1\nq1\td2\t2\nq2\td1\t1\n",
    "header": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t2\nq2\td1\t1\n",
    "other header": "query_id\tdoc_id\trelevance\nq1\td1\t1\nq1\td2\t2\nq2\td1\t1\n",
    "trec": "q1 0 d1 1\nq1 0 d2 2\nq2 0 d1 1\n",
    "trec, tabs": "q1\t0\td1\t1\nq1\t0\td2\t2\nq2\t0\td1\t1\n",
    "trec, many blanks": "  q1   0  d1   1 \nq1 0 d2 2\n\nq2 0 d1 1",
    "trec header": "query-id Q0 corpus-id score\nq1 0 d1 1\nq1 0 d2 2\nq2 0 d1 1\n",
    "windows": "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t1\r\nq1\td2\t2\r\nq2\td1\t1\r\n",
    "decimals": "q1\td1\t1.0\nq1\td2\t2.000\nq2\td1\t+1\n",
    "comments": "# judged by hand\nq1\td1\t1\n#\nq1\td2\t2\n# the rest\nq2\td1\t1\n",
    "comment, header": "# by hand\nqid\tdocid\trel\nq1\td1\t1\nq1\td2\t2\nq2\td1\t1\n",
    "blank lines": "\nq1\td1\t1\n \nq1\td2\t2\nq2\td1\t1\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_judgements_are_the_same_in_every_form(write: Write, form: str) -> None:
    assert read_qrels(write(FORMS[form])) == THREE


def test_gzipped_judgements_are_read(write: Write) -> None:
    assert read_qrels(write(gzip.compress(FORMS["plain"].encode()), "test.tsv.gz")) == THREE


def test_ids_stay_text(write: Write) -> None:
    content = "1\t01\t1\n01\t1\t2\n1\t1\t0\n1\t1.0\t3\n"
    assert read_qrels(write(content)) == {"1": {"01": 1, "1": 0, "1.0": 3}, "01": {"1": 2}}


def test_ids_with_blanks_are_kept_where_columns_end_at_tabs(write: Write) -> None:
    assert read_qrels(write("the query\tthe document\t1\n")) == {"the query": {"the document": 1}}


def test_negative_grades_are_kept_as_they_are(write: Write) -> None:
    assert read_qrels(write("q\td\t-1\nq\te\t-2\n")) == {"q": {"d": -1, "e": -2}}


@pytest.mark.parametrize("first", ["query 0 document 1", "qid\tscore\t1", "a b score"])
def test_a_first_line_that_could_be_a_judgement_is_no_header(write: Write, first: str) -> None:
    path = write(f"{first}\nq1\td1\t1\n" if "\t" in first else f"{first}\nq1 d1 1\n")
    if first.endswith("1"):
        assert sum(map(len, read_qrels(path).values())) == 2
    else:
        assert "1 (grade 'score' is no whole number)" in refusal(read_qrels, path)


def test_all_bad_lines_are_reported_at_once(write: Write) -> None:
    lines = ["q1\td1\t1", "q1\td2", "q1\td3\tx", "\td4\t1", "q1\t\t1", "q1\td5\t1.5", "q1\td6\t1e3"]
    message = refusal(read_qrels, write("\n".join([*lines, "q1\td7\tnan", "a\tb\tc\td\t1"])))
    assert "8 bad lines: 2 (2 columns, expected 3 or 4), 3 (grade 'x' is no whole" in message
    assert "4 (an empty id), 5 (an empty id), 6 (grade '1.5'" in message
    assert "9 (5 columns" in message


def test_of_many_bad_lines_ten_are_listed(write: Write) -> None:
    message = refusal(read_qrels, write("q\td\tx\n" * 25))
    assert "25 bad lines" in message
    assert message.count("grade 'x'") == 10
    assert "and 15 more" in message


def test_a_pair_judged_twice_is_refused_with_both_lines(write: Write) -> None:
    message = refusal(read_qrels, write("q\td\t1\nq\te\t1\nq\td\t1\nq\te\t0\n"))
    assert "3 (query q and document d are judged in line 1 already, the same)" in message
    assert "4 (query q and document e are judged in line 2 already, with grade 1)" in message


@pytest.mark.parametrize("content", ["", "\n \n", "query-id\tcorpus-id\tscore\n"])
def test_a_file_without_judgements_is_refused(write: Write, content: str) -> None:
    assert "expected judgements" in refusal(read_qrels, write(content))


@pytest.mark.parametrize("grade", ["10001", "-10001", "2000000000", "9" * 5_000, "1" + "0" * 99])
def test_a_grade_beyond_the_largest_is_refused_with_its_line(write: Write, grade: str) -> None:
    message = refusal(read_qrels, write(f"q\ta\t1\nq\td\t{grade}\n"))
    assert "1 bad line: 2 (grade" in message
    assert "too large, the largest taken is 10,000" in message
    line = f'{{"query-id": "q", "corpus-id": "d", "score": {grade}}}'
    assert "1 bad line: 1 (" in refusal(read_qrels, write(line, "qrels.jsonl"))


def test_the_largest_grade_is_taken(write: Write) -> None:
    assert read_qrels(write("q\td\t10000\nq\te\t-10000.0\n")) == {"q": {"d": 10_000, "e": -10_000}}


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_qrels(tmp_path / "nowhere.tsv")


def test_bytes_that_are_no_utf_8_are_refused_with_their_line(write: Write) -> None:
    assert "line 2" in refusal(read_qrels, write(b"q\td\t1\nq\t\xff\t1\n"))


def test_judgements_come_as_mappings_too() -> None:
    grades = {"q1": {"d1": 1.0, 2: np.int64(3)}, 7: {"d": True}, "empty": {}}
    assert checked_qrels(grades) == {"q1": {"d1": 1, "2": 3}, "7": {"d": 1}, "empty": {}}


@pytest.mark.parametrize(
    ("grades", "kind", "reason"),
    [
        ({}, InputError, "expected judgements, found none"),
        ({"q": {}}, InputError, "expected judgements, found none"),
        ([("q", "d", 1)], InputTypeError, "must map query ids"),
        ({"q": ["d"]}, InputTypeError, "must map document ids"),
        ({"q": {"d": 1.5}}, InputError, "must be a whole number"),
        ({"q": {"d": "1"}}, InputError, "must be a whole number"),
        ({"q": {"d": 2**40}}, InputError, "too large"),
        ({"q": {"1": 1, 1: 1}}, InputError, "duplicate"),
        ({"1": {"d": 1}, 1: {"d": 1}}, InputError, "duplicate"),
        ({1.5: {"d": 1}}, InputTypeError, "query"),
    ],
)
def test_mappings_that_are_no_judgements_are_refused(
    grades: Any, kind: type[SbertkitError], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        checked_qrels(grades)


def test_a_row_whose_id_begins_as_a_comment_does_is_a_row(write: Write) -> None:
    assert read_qrels(write("#1\td\t1\n# no row\n")) == {"#1": {"d": 1}}
    assert read_run(write("#1 Q0 d 1 0.5 name\n# no row\n")) == {"#1": {"d": 0.5}}


def test_ids_of_a_run_with_tabs_may_have_blanks(write: Write) -> None:
    rows = "q 1\tQ0\td 1\t1\t9.5\tx\nq 1\tQ0\td2\t2\t8.5\tsome name\n"
    assert read_run(write(rows)) == {"q 1": {"d 1": 9.5, "d2": 8.5}}
    assert read_run(write("q1 Q0\td 1 0.5 name\n")) == {"q1": {"d": 0.5}}


# --- runs

RUN = "q1 Q0 d1 1 0.5 name\nq1 Q0 d2 2 1e-1 name\nq2\tQ0\td1\t1\t-3\tname\n"


def test_a_run_is_its_scores(write: Write) -> None:
    expected = {"q1": {"d1": 0.5, "d2": 0.1}, "q2": {"d1": -3.0}}
    assert read_run(write(RUN)) == expected
    assert read_run(write(RUN.replace("name", "name of several words"))) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q Q0 d 1 0.5", "5 columns, expected 6"),
        ("q Q0 d 1 nan name", "score 'nan' is no finite number"),
        ("q Q0 d 1 inf name", "no finite number"),
        ("q Q0 d 1 1e999 name", "no finite number"),
        ("q Q0 d 1 0,5 name", "no finite number"),
        ("q Q0 d 1 1_0 name", "no finite number"),
        ("q Q0 d 1 0x1p3 name", "no finite number"),
    ],
)
def test_a_bad_line_of_a_run_is_refused(write: Write, line: str, reason: str) -> None:
    message = refusal(read_run, write(f"{RUN}{line}\n"))
    assert f"1 bad line: 4 ({reason}" in message or reason in message


def test_a_document_twice_for_a_query_is_refused_with_both_lines(write: Write) -> None:
    message = refusal(read_run, write(f"{RUN}q1 Q0 d1 3 0.1 name\n"))
    assert "4 (document d1 for query q1 is in line 1 already)" in message


def test_an_empty_run_is_refused(write: Write) -> None:
    assert "expected a run of six columns, found no lines" in refusal(read_run, write("\n"))


@pytest.mark.parametrize(
    ("run", "kind", "reason"),
    [
        ({}, InputError, "found no query"),
        ({"q": {"d": float("nan")}}, InputError, "finite"),
        ({"q": {"d": "0.5"}}, InputError, "finite"),
        ({"q": {"d": True}}, InputError, "finite"),
        ({"q": 0.5}, InputTypeError, "must map document ids"),
        ("run", InputTypeError, "must map query ids"),
    ],
)
def test_mappings_that_are_no_run_are_refused(
    run: Any, kind: type[SbertkitError], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        checked_run(run)


def test_a_run_may_hold_numbers_of_numpy_and_queries_without_hits() -> None:
    run = {"q": {"d": np.float32(0.5), 3: np.int64(2)}, "none": {}}
    assert checked_run(run) == {"q": {"d": 0.5, "3": 2.0}, "none": {}}


def test_a_written_run_has_ranks_by_score_then_id_both_descending(tmp_path: Path) -> None:
    write_run(tmp_path / "a.trec", {"q": {"d1": 1.0, "d3": 1.0, "x": 2.0, "d10": 0.5}}, "mine")
    assert (tmp_path / "a.trec").read_text(encoding="utf-8") == (
        "q Q0 x 1 2.0 mine\nq Q0 d3 2 1.0 mine\nq Q0 d1 3 1.0 mine\nq Q0 d10 4 0.5 mine\n"
    )


@pytest.mark.parametrize("word", ["a b", "", "a\tb", "a\u00a0b", "a\nb"])
@pytest.mark.parametrize("place", ["query", "document", "name"])
def test_an_id_that_the_format_cannot_hold_is_refused_and_nothing_written(
    tmp_path: Path, word: str, place: str
) -> None:
    words = {"query": "q", "document": "d", "name": "n", place: word}
    run = {words["query"]: {words["document"]: 1.0}}
    message = refusal(write_run, tmp_path / "a.trec", run, words["name"])
    assert "cannot hold" in message
    assert not list(tmp_path.iterdir())


word = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=4)
score = st.floats(allow_nan=False, allow_infinity=False)


@given(run=st.dictionaries(word, st.dictionaries(word, score, min_size=1), min_size=1))
def test_a_run_is_read_as_it_was_written(
    run: dict[str, dict[str, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("run") / "a.trec"
    write_run(path, run)
    assert read_run(path) == run


def test_equal_scores_are_ordered_by_id_as_text() -> None:
    assert ranked({"a10": 1.0, "a9": 1.0, "d": 2.0, "z": 0.5}) == ["d", "a9", "a10", "z"]


# --- queries


def test_queries_are_json_lines_as_beir_has_them(write: Write) -> None:
    lines = ['{"_id": "q1", "text": "One?", "metadata": {}}', "", '{"id": 2, "text": "Two?"}']
    assert read_queries(write("\n".join(lines), "queries.jsonl")) == {"q1": "One?", "2": "Two?"}


def test_queries_are_tab_separated_too(write: Write) -> None:
    assert read_queries(write("1\tOne?\n02\tTwo\tparts?\n")) == {"1": "One?", "02": "Two\tparts?"}


def test_queries_are_tables_too(write: Write) -> None:
    table = write('query-id,text\n1,"One, or two?"\n', "queries.csv")
    assert read_queries(table) == {"1": "One, or two?"}
    assert read_queries(write("query-id\ttext\n1\tOne?\n")) == {"1": "One?"}
    with pytest.raises(InputError, match="unknown format"):
        read_queries(write("1 One?", "queries.md"))


def test_blank_lines_between_queries_are_skipped(write: Write) -> None:
    assert read_queries(write("1\tOne?\n\n  \n\t\n2\tTwo?\n")) == {"1": "One?", "2": "Two?"}


def test_all_bad_queries_are_reported_at_once(write: Write) -> None:
    lines = [
        '{"_id": "a", "text": "x"}',
        "[]",
        '{"_id": "b", "text": " "}',
        '{"_id": "a", "text": "y"}',
    ]
    message = refusal(
        read_queries, write("\n".join([*lines, '{"text": "no id"}']), "queries.jsonl")
    )
    assert "4 bad lines: 2 (" in message
    assert "3 (the text is blank)" in message
    assert "4 (query a is in line 1 too)" in message
    assert "5 (" in message


def test_a_file_without_queries_is_refused(write: Write) -> None:
    assert "expected queries, found none" in refusal(read_queries, write("\n", "queries.jsonl"))


# --- collections


@pytest.fixture
def folder(write: Write) -> Path:
    rows = [{"_id": f"d{number}", "title": "T", "text": f"text {number}"} for number in range(3)]
    write("".join(json.dumps(row) + "\n" for row in rows), "set/corpus.jsonl")
    queries = [{"_id": f"q{number}", "text": f"query {number}"} for number in range(4)]
    write("".join(json.dumps(row) + "\n" for row in queries), "set/queries.jsonl")
    write("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\nq9\td1\t1\n", "set/qrels/test.tsv")
    return write("q2\td0\t1\n", "set/qrels/dev.tsv").parent.parent


def test_a_collection_has_the_judged_queries_of_a_split(folder: Path) -> None:
    found = read_collection(folder)
    assert found.queries == {"q0": "query 0", "q1": "query 1"}
    assert list(found.qrels) == ["q0", "q1", "q9"]
    assert found.without_text == ("q9",)
    assert found.unjudged == ("q3",)  # q2 is judged in another split
    assert read_collection(folder, "dev").queries == {"q2": "query 2"}


@pytest.mark.parametrize("name", ["._test.tsv", "._test.jsonl", ".test.tsv.gz", "._dev.tsv"])
def test_hidden_files_are_no_judgements(
    folder: Path, write: Write, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    expected = read_collection(folder)
    write(b"\0\5\x16\7 Mac OS X \xff", f"set/qrels/{name}")
    assert read_collection(folder) == expected
    assert not caplog.messages
    assert "found dev, test" in refusal(read_collection, folder, "._test")


@pytest.mark.parametrize(
    "content", ["query-id\tcorpus-id\tscore\n", "q5\td1\t1\nq5\td1\t1\n", b"\xff\xfe\n", ""]
)
def test_what_is_wrong_with_other_splits_is_a_warning(
    folder: Path, write: Write, caplog: pytest.LogCaptureFixture, content: str | bytes
) -> None:
    expected = read_collection(folder)
    write(content, "set/qrels/train.tsv")
    assert read_collection(folder) == expected
    (message,) = caplog.messages
    assert "train.tsv" in message
    assert message.endswith("ignored, since the split test is read")
    refusal(read_collection, folder, "train")


def test_a_gzipped_collection_is_read(folder: Path) -> None:
    expected = read_collection(folder)
    for path in [*folder.glob("*.jsonl"), *folder.glob("qrels/*.tsv")]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_collection(folder) == expected


def test_an_unknown_split_is_refused_with_the_known_ones(folder: Path) -> None:
    assert "no split 'train'; found dev, test" in refusal(read_collection, folder, "train")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_folder_without_a_needed_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"no {name} in this folder" in refusal(read_collection, folder)


def test_a_folder_without_judgements_is_refused(folder: Path) -> None:
    for path in folder.glob("qrels/*"):
        path.unlink()
    assert "no qrels/*.tsv in this folder" in refusal(read_collection, folder)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="BEIR"):
        read_collection(tmp_path / "nowhere")


def test_ids_that_differ_as_text_are_refused_with_examples(folder: Path, write: Write) -> None:
    write("0\td0\t1\n", "set/qrels/test.tsv")
    message = refusal(read_collection, folder)
    assert "none of the 1 judged queries" in message
    assert "'0' and 'q0'" in message


# --- judgements as JSON Lines


def test_judgements_are_read_from_json_lines(write: Write) -> None:
    lines = [
        {"query-id": "q1", "corpus-id": "d1", "score": 1},
        {"query-id": "q1", "corpus-id": "d2", "score": 2.0},
        {"query-id": "q2", "corpus-id": "d1", "score": "1"},
    ]
    path = write("".join(json.dumps(line) + "\n" for line in lines), "test.jsonl")
    assert read_qrels(path) == THREE


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"query-id": "q1", "corpus-id": "d1"}', "grade 'None' is no whole number"),
        ('{"query-id": "q1", "corpus-id": "d1", "score": true}', "grade 'True' is no whole"),
        ('{"query-id": "q1", "corpus-id": "d1", "score": 0.5}', "grade '0.5' is no whole number"),
        ('{"corpus-id": "d1", "score": 1}', "id must be a str or int, found NoneType"),
        ("q1\td1\t1", "not valid JSON"),
    ],
)
def test_bad_judgements_of_json_lines_are_refused(write: Write, line: str, reason: str) -> None:
    good = '{"query-id": "q0", "corpus-id": "d1", "score": 1}'
    message = refusal(read_qrels, write(f"{good}\n{line}\n", "test.jsonl"))
    assert "1 bad line: 2 (" in message
    assert reason in message


def test_a_collection_may_have_its_judgements_as_json_lines(write: Write, tmp_path: Path) -> None:
    write('{"_id": "d1", "text": "One."}\n', "beir/corpus.jsonl")
    write('{"_id": "q1", "text": "Who?"}\n', "beir/queries.jsonl")
    write('{"query-id": "q1", "corpus-id": "d1", "score": 1}\n', "beir/qrels/test.jsonl")
    assert read_collection(tmp_path / "beir").qrels == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    "content",
    [
        "text\tqid\nhow to reset\t17\nred\t18\n",
        "id\tlang\ttext\n17\ten\thow to reset\n18\ten\tred\n",
        "qid\tquery\n17\thow to reset\n18\tred\n",
        "17\thow to reset\n18\tred\n",
    ],
)
def test_tabbed_queries_follow_their_header(write: Write, content: str) -> None:
    assert read_queries(write(content, "queries.tsv")) == {"17": "how to reset", "18": "red"}


def test_a_text_of_tabbed_queries_without_a_header_may_have_tabs(write: Write) -> None:
    assert read_queries(write("17\thow to\treset\n", "queries.tsv")) == {"17": "how to\treset"}
