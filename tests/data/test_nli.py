"""Labeled pairs from releases, tables and data set folders."""

import csv
import gzip
import hashlib
import io
import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbertkit.data.nli import NLI_LABELS, NliPair, NliSet, parse_label_map, read_nli
from sbertkit.data.text import is_blank
from sbertkit.errors import InputError, InputTypeError, MissingFile

Write = Callable[..., Path]
ORDER = {0: "entailment", 1: "neutral", 2: "contradiction"}
OTHER_ORDER = {0: "contradiction", 1: "entailment", 2: "neutral"}
SNLI_HEADER = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
    "\tsentence1\tsentence2\tcaptionID\tpairID\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5"
)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "pairs.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def objects(*rows: Mapping[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def release(label: object, first: str = "A goat eats.", second: str = "It eats.") -> dict[str, Any]:
    """A record with some of the fields that SNLI and MultiNLI have."""
    return {
        "annotator_labels": ["neutral", "neutral", "contradiction"],
        "genre": "farm",
        "gold_label": label,
        "pairID": "17n",
        "sentence1": first,
        "sentence1_parse": "(ROOT (S (NP (DT A) (NN goat)) (VP (VBZ eats))))",
        "sentence2": second,
    }


def pair(label: object, name: str = "label") -> dict[str, object]:
    return {"premise": "A goat eats.", "hypothesis": "It eats.", name: label}


def only_labels(result: NliSet) -> list[str]:
    return [NLI_LABELS[item.label] for item in result.pairs]


# Formats


def test_release_records_are_read_by_their_gold_label(write: Write) -> None:
    path = write(
        objects(
            release("entailment"),
            release("contradiction", "Two cooks share a pan.", "Nobody cooks."),
            release("neutral", "Two cooks share a pan.", "The pan is new."),
        )
    )
    result = read_nli(path)
    assert result.pairs == (
        NliPair("A goat eats.", "It eats.", 0),
        NliPair("Two cooks share a pan.", "Nobody cooks.", 2),
        NliPair("Two cooks share a pan.", "The pan is new.", 1),
    )
    assert result.labels == NLI_LABELS == ("entailment", "neutral", "contradiction")
    assert result.counts == {"entailment": 1, "neutral": 1, "contradiction": 1}


def test_release_tables_have_many_columns_and_no_quoting(write: Write) -> None:
    def row(label: str, first: str, second: str) -> str:
        return (
            f"{label}\t( a )\t( b )\t(ROOT a)\t(ROOT b)\t{first}\t{second}\tc1\tp1\t{label}\t\t\t\t"
        )

    path = write(
        "\n".join(
            [
                SNLI_HEADER,
                row("neutral", '"We open at six, said the baker.', "The baker is tired."),
                row("contradiction", 'The 12" board broke.', 'No "board" broke.'),
                row("entailment", 'She sang "la.', '"She sang something.'),
            ]
        ),
        "snli_1.0_train.txt",
    )
    assert read_nli(path).pairs == (
        NliPair('"We open at six, said the baker.', "The baker is tired.", 1),
        NliPair('The 12" board broke.', 'No "board" broke.', 2),
        NliPair('She sang "la.', '"She sang something.', 0),
    )


def test_comma_separated_fields_may_be_quoted(write: Write) -> None:
    path = write(
        'id,premise,hypothesis,label\n1,"Hay, and ""oats""",It\'s food,Entailment\n'
        '2,"two\nlines",one,contradiction\n',
        "pairs.csv",
    )
    assert read_nli(path).pairs == (
        NliPair('Hay, and "oats"', "It's food", 0),
        NliPair("two\nlines", "one", 2),
    )


FORMS: dict[str, Callable[[list[tuple[str, str, str]]], bytes]] = {}


def form(suffix: str) -> Callable[..., Any]:
    def keep(make: Callable[[list[tuple[str, str, str]]], bytes]) -> object:
        FORMS[suffix] = make
        return make

    return keep


COLUMNS = ("premise", "hypothesis", "label")


@form(".jsonl")
def as_jsonl(rows: list[tuple[str, str, str]]) -> bytes:
    return objects(*(dict(zip(COLUMNS, row, strict=True)) for row in rows)).encode()


@form(".tsv")
def as_tsv(rows: list[tuple[str, str, str]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in [COLUMNS, *rows]).encode()


@form(".csv")
def as_csv(rows: list[tuple[str, str, str]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([COLUMNS, *rows])
    return buffer.getvalue().encode()


def as_table(rows: list[tuple[str, str, str]]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)})


@form(".parquet")
def as_parquet(rows: list[tuple[str, str, str]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(as_table(rows), buffer)
    return buffer.getvalue()


@form(".arrow")
def as_arrow(rows: list[tuple[str, str, str]]) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, as_table(rows).schema) as writer:
        writer.write_table(as_table(rows), max_chunksize=2)
    return buffer.getvalue()


texts = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda text: not is_blank(text))
rows = st.lists(st.tuples(texts, texts, st.sampled_from(NLI_LABELS)), min_size=1, max_size=6)


@given(rows, st.sampled_from(sorted(FORMS)), st.booleans())
@settings(max_examples=120, deadline=None)
def test_every_format_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[tuple[str, str, str]],
    suffix: str,
    packed: bool,
) -> None:
    path = tmp_path_factory.mktemp("nli") / f"pairs{suffix}{'.gz' if packed else ''}"
    content = FORMS[suffix](written)
    path.write_bytes(gzip.compress(content) if packed else content)
    expected = tuple(NliPair(a, b, NLI_LABELS.index(label)) for a, b, label in written)
    assert read_nli(path).pairs == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".csv"])
def test_a_byte_order_mark_and_windows_line_ends_are_dropped(write: Write, suffix: str) -> None:
    content = FORMS[suffix]([("red", "blue", "neutral"), ("one", "two", "entailment")])
    content = b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")
    result = read_nli(write(content, f"pairs{suffix}"))
    assert result.pairs == (NliPair("red", "blue", 1), NliPair("one", "two", 0))


def test_the_gold_label_and_the_sentences_come_before_other_columns(write: Write) -> None:
    record = {**pair("neutral"), **release("contradiction", "first", "second")}
    expected = (NliPair("first", "second", 2),)
    assert read_nli(write(objects(record))).pairs == expected
    names = ["label", "premise", "hypothesis", "sentence2", "sentence1", "gold_label"]
    cells = ["neutral", "x", "y", "second", "first", "contradiction"]
    for mark, name in (("\t", "pairs.tsv"), (",", "pairs.csv")):
        assert read_nli(write(f"{mark.join(names)}\n{mark.join(cells)}\n", name)).pairs == expected
    table = pa.table({name: [cell] for name, cell in zip(names, cells, strict=True)})
    path = write(b"", "pairs.parquet")
    pq.write_table(table, path)
    assert read_nli(path).pairs == expected


def test_an_annotators_label_never_stands_in_for_the_gold_label(write: Write) -> None:
    without = {"premise": "a", "hypothesis": "b", "label": "neutral"}
    result = read_nli(write(objects(pair("entailment", "gold_label"), without)))
    assert (result.skipped, only_labels(result)) == (1, ["entailment"])


def test_arrow_files_with_a_footer_are_read_too(write: Write) -> None:
    table = as_table([("a", "b", "neutral"), ("c", "d", "entailment")])
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    result = read_nli(write(buffer.getvalue(), "pairs.arrow"))
    assert result.pairs == (NliPair("a", "b", 1), NliPair("c", "d", 0))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_types_of_text_in_tables_make_no_difference(write: Write, kind: pa.DataType) -> None:
    path = write(b"", "pairs.parquet")
    columns = zip(COLUMNS, (["a"] * 9000, ["b"] * 9000, ["neutral"] * 9000), strict=True)
    pq.write_table(pa.table({name: pa.array(cells, kind) for name, cells in columns}), path)
    assert read_nli(path).counts["neutral"] == 9000


# Labels


@pytest.mark.parametrize("label", ["-", " - ", "", "  ", None, -1, "-1"])
def test_rows_without_a_gold_label_are_skipped_and_counted_once(
    write: Write, caplog: pytest.LogCaptureFixture, label: object
) -> None:
    first = write(objects(release("neutral"), release(label, "x", "y")), "a.jsonl")
    second = write(objects(release("entailment"), release(label, "v", "w")), "b.jsonl")
    result = read_nli([first, second])
    assert (result.skipped, only_labels(result)) == (2, ["neutral", "entailment"])
    assert [(source.rows, source.skipped) for source in result.sources] == [(1, 1), (1, 1)]
    said = [record.message for record in caplog.records if "gold" in record.message]
    assert said == ["2 without a gold label skipped"]


def test_a_missing_label_is_none(write: Write) -> None:
    result = read_nli(write(objects(pair("neutral"), {"premise": "a", "hypothesis": "b"})))
    assert (result.skipped, result.counts["neutral"]) == (1, 1)
    result = read_nli(write("premise,hypothesis,label\na,b,\nc,d,neutral\n", "pairs.csv"))
    assert (result.skipped, result.counts["neutral"]) == (1, 1)


def test_the_texts_of_rows_without_a_gold_label_are_not_judged(write: Write) -> None:
    assert read_nli(write(objects(release("-", "", " "), release("neutral")))).skipped == 1


@pytest.mark.parametrize("label", ["-", -1, None])
def test_nothing_but_rows_without_a_gold_label_is_refused(write: Write, label: object) -> None:
    with pytest.raises(InputError, match="no labeled example is left, 3 without a gold label"):
        read_nli(write(objects(*[pair(label)] * 3)))


@pytest.mark.parametrize("label", ["Neutral", "NEUTRAL", " neutral ", "\tneutral\u00a0"])
def test_names_count_in_any_case_and_with_blanks_around(write: Write, label: str) -> None:
    assert only_labels(read_nli(write(objects(pair(label))))) == ["neutral"]


@pytest.mark.parametrize(
    "label", ["contradictory", "not_entailment", "e", "neutral.", "0.0", "1e0", "٠", "nan", "--"]
)
@pytest.mark.parametrize("labels", [None, ORDER])
def test_any_other_label_is_refused_with_line_value_and_names(
    write: Write, label: str, labels: dict[int, str] | None
) -> None:
    path = write(objects(pair("neutral"), pair("entailment"), pair(label)))
    with pytest.raises(InputError) as refusal:
        read_nli(path, labels=labels)
    assert str(refusal.value) == (
        f"{path}: 1 bad line: 3 (unknown label '{label}'); a label is one of entailment, neutral,"
        " contradiction; correct or remove it"
    )


@pytest.mark.parametrize("label", [True, False, 0.0, 1.5, ["neutral"], {"a": 1}])
def test_labels_of_other_types_are_refused(write: Write, label: object) -> None:
    with pytest.raises(InputError, match=r"1 bad line: 1 \(unknown label"):
        read_nli(write(objects(pair(label))), labels=ORDER)


@pytest.mark.parametrize("label", [0, "0", " 2 ", 7, -2])
def test_numbers_without_a_mapping_are_refused_and_the_mapping_named(
    write: Write, label: object
) -> None:
    path = write(objects(pair(-1), pair(label)))
    with pytest.raises(InputError) as refusal:
        read_nli(path)
    message = str(refusal.value)
    assert message.startswith(f"{path} line 2: label {str(label).strip()} is a number")
    assert "a mapping to names is needed" in message
    assert "labels 0=entailment,1=neutral,2=contradiction" in message


def test_numbers_mean_what_the_mapping_says(write: Write) -> None:
    path = write(objects(pair(0), pair(" 2"), pair("1"), pair(-1), pair("Neutral")))
    assert only_labels(read_nli(path, labels=ORDER)) == [
        "entailment", "contradiction", "neutral", "neutral",
    ]  # fmt: skip
    assert only_labels(read_nli(path, labels=OTHER_ORDER)) == [
        "contradiction", "neutral", "entailment", "neutral",
    ]  # fmt: skip


def test_a_number_that_the_mapping_lacks_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match=r"2 \(label 3 is not in the mapping 0=entailment, 1=neu"):
        read_nli(write(objects(pair(0), pair(3))), labels=ORDER)


def test_minus_one_is_a_label_where_the_mapping_says_so(write: Write) -> None:
    path = write(objects(pair(-1), pair(1)))
    result = read_nli(path, labels={-1: "contradiction", 0: "neutral", 1: "entailment"})
    assert (result.skipped, only_labels(result)) == (0, ["contradiction", "entailment"])


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        ("0=entailment,1=neutral,2=contradiction", ORDER),
        (" 2 = Contradiction , 0=ENTAILMENT", {2: "contradiction", 0: "entailment"}),
        ("-1=neutral,+4=neutral", {-1: "neutral", 4: "neutral"}),
    ],
)
def test_a_written_mapping_is_understood(text: str, mapping: dict[int, str]) -> None:
    assert parse_label_map(text) == mapping


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected NUMBER=NAME, found ''"),
        ("0", "expected NUMBER=NAME, found '0'"),
        ("0=entailment,", "expected NUMBER=NAME, found ''"),
        ("a=entailment", "expected NUMBER=NAME, found 'a=entailment'"),
        ("1.0=neutral", "expected NUMBER=NAME"),
        ("1_0=neutral", "expected NUMBER=NAME"),
        ("٠=neutral", "expected NUMBER=NAME"),
        ("0:neutral", "expected NUMBER=NAME"),
        ("0=contradictory", "expected one of entailment, neutral, contradiction, found 'contradic"),
        ("0=", "expected one of entailment, neutral, contradiction, found ''"),
        ("0=neutral=1", "expected one of entailment, neutral, contradiction"),
        ("0=neutral,00=entailment", "duplicate number 0"),
        ("0=\x1b[31m\n", r"found '\\x1b\[31m\\n'"),
    ],
)
def test_a_mapping_that_cannot_be_understood_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refusal:
        parse_label_map(text)
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({}, InputError),
        ({0: "yes"}, InputError),
        ({0: 1}, InputTypeError),
        ({"0": "neutral"}, InputTypeError),
        ({True: "neutral"}, InputTypeError),
        (["neutral"], InputTypeError),
    ],
)
def test_a_mapping_of_other_things_is_refused(
    write: Write, labels: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read_nli(write(objects(pair(0))), labels=labels)


# Class names in the schema


def write_classes(
    path: Path, numbers: list[int | None], names: object, kind: str = "Class"
) -> Path:
    """A Parquet file as datasets writes it: numbers, and their names in the schema's metadata."""
    features = {"label": {"names": names, "_type": f"{kind}Label"}}
    about = json.dumps({"info": {"features": features}}).encode()
    table = pa.table({"premise": ["a"] * len(numbers), "hypothesis": ["b"] * len(numbers)})
    table = table.append_column("label", pa.array(numbers, pa.int64()))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({b"huggingface": about}), path)
    return path


def test_the_class_names_of_a_table_are_its_mapping(tmp_path: Path) -> None:
    names = ["contradiction", "Entailment", "neutral"]
    path = write_classes(tmp_path / "x.parquet", [0, 1, 2, -1, None], names)
    result = read_nli(path)
    assert only_labels(result) == ["contradiction", "entailment", "neutral"]
    assert result.skipped == 2


def test_the_callers_mapping_comes_before_the_class_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_classes(tmp_path / "x.parquet", [0, 1], ["contradiction", "entailment"])
    assert only_labels(read_nli(path, labels=ORDER)) == ["entailment", "neutral"]
    said = caplog.messages[0]
    assert "x.parquet" in said
    assert "not the file's own (contradiction, entailment)" in said


def test_a_class_that_is_none_of_the_three_is_refused_by_its_name(tmp_path: Path) -> None:
    path = write_classes(tmp_path / "x.parquet", [0, 1], ["entailment", "not_entailment"])
    with pytest.raises(InputError, match=r"1 bad row: 2 \(unknown label 'not_entailment'\)"):
        read_nli(path)


def test_a_number_without_a_class_is_refused(tmp_path: Path) -> None:
    path = write_classes(tmp_path / "x.parquet", [0, 3], list(NLI_LABELS))
    with pytest.raises(InputError, match=r"2 \(label 3 is not one of the file's classes ent"):
        read_nli(path)


@pytest.mark.parametrize("names", [None, "entailment", [1, 2], {}])
def test_class_names_that_are_none_leave_the_numbers_unnamed(tmp_path: Path, names: object) -> None:
    path = write_classes(tmp_path / "x.parquet", [0], names)
    with pytest.raises(InputError, match="row 1: label 0 is a number, so a mapping"):
        read_nli(path)
    path = write_classes(tmp_path / "x.parquet", [0], list(NLI_LABELS), kind="Other")
    with pytest.raises(InputError, match="row 1: label 0 is a number, so a mapping"):
        read_nli(path)


# Bad rows


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"premise": "a", ', "not valid JSON"),
        ("[1]", "expected a JSON object, found an array"),
        ('{"premise": "a", "premise": "b"}', "duplicate key 'premise'"),
        (
            '{"label": "neutral", "premise": "a"}',
            "no field 'sentence1' and 'sentence2', or 'premise' and",
        ),
        (
            '{"label": "neutral", "premise": 5, "hypothesis": "b"}',
            "the premise must be text, found",
        ),
        ('{"label": "neutral", "premise": "a", "hypothesis": null}', "must be text, found nothing"),
        ('{"label": "neutral", "premise": "", "hypothesis": "b"}', "the premise is blank"),
        ('{"label": "neutral", "premise": "a", "hypothesis": " \\u3000"}', "hypothesis is blank"),
    ],
)
def test_a_bad_record_is_refused_with_its_line(write: Write, line: str, reason: str) -> None:
    path = write(objects(pair("neutral")) + "\n" + line + "\n")
    with pytest.raises(InputError) as refusal:
        read_nli(path)
    assert str(refusal.value).startswith(f"{path}: 1 bad line: 3 (")
    assert reason in str(refusal.value)


@pytest.mark.parametrize("row", ["neutral\ta", "neutral\ta\tb\tc", "neutral"])
def test_a_row_with_another_number_of_columns_is_refused(write: Write, row: str) -> None:
    path = write(f"label\tpremise\thypothesis\n\nneutral\ta\tb\n{row}\n", "pairs.tsv")
    with pytest.raises(InputError, match=r"1 bad line: 4 \(\d columns?, expected 3\)"):
        read_nli(path)


def test_the_lines_of_a_bad_record_over_several_lines_are_all_named(write: Write) -> None:
    path = write('label,premise,hypothesis\nneutral,"a\nb"\nneutral,c,d\n', "pairs.csv")
    with pytest.raises(InputError, match=r"1 bad line: 2-3 \(2 columns, expected 3\)"):
        read_nli(path)


def test_all_bad_rows_are_counted_and_ten_of_them_shown(write: Write) -> None:
    path = write(objects(pair("neutral"), *[pair("odd")] * 12, {**pair("neutral"), "premise": ""}))
    with pytest.raises(InputError) as refusal:
        read_nli(path)
    message = str(refusal.value)
    assert "13 bad lines: 2 (unknown label 'odd'), 3 (" in message
    assert "11 (unknown label 'odd'), and 3 more; a label is one of" in message
    assert message.count("unknown label") == 10


def test_a_quote_never_closed_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="line 2: the quote opened here is never closed"):
        read_nli(write('label,premise,hypothesis\nneutral,"a,b\n', "pairs.csv"))


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
@pytest.mark.parametrize(
    "header", ["label,premise", "neutral,a goat,it eats", "labels,premise,hypothesis", "label,a,b"]
)
def test_a_header_without_the_columns_is_refused(write: Write, suffix: str, header: str) -> None:
    header = header.replace(",", "\t") if suffix == ".tsv" else header
    with pytest.raises(InputError, match="line 1: expected gold_label or label, and sentence1 and"):
        read_nli(write(f"{header}\n", f"pairs{suffix}"))


def test_a_duplicate_column_name_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="duplicate column name"):
        read_nli(write("label\tpremise\thypothesis\tLabel\nneutral\ta\tb\tc\n", "pairs.tsv"))


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".csv", ".parquet", ".arrow"])
def test_a_file_without_rows_is_refused_even_beside_another(write: Write, suffix: str) -> None:
    good = write(objects(pair("neutral")), "good.jsonl")
    empty = write(FORMS[suffix]([]), f"empty{suffix}")
    with pytest.raises(InputError, match=r"empty\.\w+: expected pairs .* found no rows"):
        read_nli([good, empty])


def test_a_table_with_a_missing_text_is_refused_with_its_row(write: Write) -> None:
    path = write(b"", "pairs.parquet")
    table = {"label": ["neutral"] * 3, "premise": ["a", None, " "], "hypothesis": ["b"] * 3}
    pq.write_table(pa.table(table), path)
    with pytest.raises(
        InputError, match=r"2 bad rows: 2 \(the premise must .*, 3 \(the premise is"
    ):
        read_nli(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_damaged_tables_are_refused_in_one_line(write: Write, suffix: str) -> None:
    content = FORMS[suffix]([("a", "b", "neutral")] * 50)
    for cut in range(1, len(content) - 1, len(content) // 50):
        path = write(content[:cut], f"pairs{suffix}")
        with pytest.raises(InputError, match=r"not a readable (Parquet|Arrow) file") as refusal:
            read_nli(path)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_changed_bytes_in_tables_never_end_in_anything_but_a_refusal(
    write: Write, suffix: str
) -> None:
    content = FORMS[suffix]([("a goat", "it eats", "neutral")] * 4)
    messages = []
    for place in range(0, len(content), max(1, len(content) // 150)):
        changed = bytearray(content)
        changed[place] ^= 0x80  # wrong offsets and sizes, and text that is not UTF-8
        try:
            read_nli(write(bytes(changed), f"pairs{suffix}"))
        except InputError as refusal:
            messages.append(str(refusal))
    assert len(messages) > 10
    assert all(message.isprintable() for message in messages)


def test_an_arrow_stream_truncated_between_two_batches_is_refused(write: Write) -> None:
    content = FORMS[".arrow"]([("a", "b", "neutral")] * 4)
    end = len(content) - 8
    assert content[end:] == b"\xff\xff\xff\xff\0\0\0\0"
    with pa.ipc.open_stream(content[:end]) as reader:
        assert reader.read_all().num_rows == 4  # pyarrow itself does not mind
    with pytest.raises(InputError, match="not a readable Arrow file"):
        read_nli(write(content[:end], "pairs.arrow"))


def test_bytes_that_are_no_text_are_refused_with_their_row(write: Write) -> None:
    path = write(b"", "pairs.parquet")
    odd = pa.array([b"fine", b"\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"premise": odd, "hypothesis": odd, "label": ["neutral"] * 2}), path)
    with pytest.raises(InputError, match=r"1 bad row: 2 \('premise' cannot be read"):
        read_nli(path)


def test_unpaired_surrogates_are_repaired_and_counted(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    line = '{"premise": "a\\ud800b \\ud83d\\udc4d", "hypothesis": "\\udfff", "label": "neutral"}\n'
    result = read_nli(write(line + objects(pair("neutral"))))
    assert result.pairs[0] == NliPair("a\ufffdb \U0001f44d", "\ufffd", 1)
    assert caplog.messages == ["2 texts with unpaired surrogates, which became U+FFFD"]


# Repeats


def test_duplicates_are_kept_counted_by_source_and_logged_once(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    a, b, c = (release("neutral", text) for text in "abc")
    first = write(objects(a, b, a, c), "first.jsonl")
    second = write(objects(c, {**a, "gold_label": "entailment"}, b), "second.jsonl")
    result = read_nli([first, second])
    assert len(result.pairs) == 7
    assert [(source.rows, source.duplicates) for source in result.sources] == [(4, 1), (3, 2)]
    assert caplog.messages == [
        "3 rows repeat earlier ones exactly",
        "1 pair of premise and hypothesis has more than one label",
    ]


@given(st.lists(st.tuples(*[st.sampled_from("ab")] * 2, st.sampled_from(NLI_LABELS)), min_size=1))
@settings(max_examples=60, deadline=None)
def test_duplicates_are_those_that_a_plain_count_finds(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("nli") / "pairs.tsv"
    path.write_bytes(as_tsv(written))
    logging.disable()
    try:
        result = read_nli(path)
    finally:
        logging.disable(logging.NOTSET)
    assert result.sources[0].duplicates == len(written) - len(set(written))


def test_a_set_without_trouble_warns_of_nothing(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    read_nli(write(objects(pair("neutral"), release("neutral", "other"))))
    assert caplog.messages == []


# Sources


def test_a_source_has_the_path_as_given_and_the_hash_of_its_bytes(write: Write) -> None:
    content = gzip.compress(objects(pair("neutral")).encode())
    path = write(content, "pairs.jsonl.gz")
    for given_path in (path, str(path), [path]):
        (source,) = read_nli(given_path).sources
        assert source.source == str(path)
        assert source.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("paths", "error", "reason"),
    [
        ([], InputError, "at least one file"),
        ("-", InputError, "standard input"),
        (["-"], InputError, "standard input"),
        ("", InputError, "expected the path"),
        (5, InputTypeError, "a path or a list of paths, found int"),
        ([5], InputTypeError, "found int"),
        (b"x.jsonl", InputTypeError, "found int"),
    ],
)
def test_what_is_no_source_is_refused(paths: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        read_nli(paths)


def test_a_name_of_unknown_format_is_refused(write: Write) -> None:
    with pytest.raises(
        InputError, match=r"unknown format; expected .* \.jsonl, \.ndjson, \.json, \.tsv"
    ):
        read_nli(write("x", "pairs.dat"))


def test_a_missing_file_is_refused_before_any_is_read(write: Write, tmp_path: Path) -> None:
    bad = write("not JSON at all\n")
    with pytest.raises(MissingFile, match=r"absent\.jsonl: no such file"):
        read_nli([bad, tmp_path / "absent.jsonl"])


def test_progress_counts_all_rows(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    class Track:
        def __init__(self, label: str, total: int | None, *, shown: bool) -> None:
            assert shown

        def __enter__(self) -> Callable[[int], None]:
            return counted.append

        def __exit__(self, *_: object) -> None:
            """Nothing to close."""

    monkeypatch.setattr("sbertkit.data.nli.reading.track", Track)
    read_nli(write(FORMS[".tsv"]([("a", "b", "neutral")] * 2500), "pairs.tsv"), progress=True)
    assert counted == [1000, 1000, 500]


# Folders


def write_split(folder: Path, name: str, *texts: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FORMS[path.suffix]([(text, "b", "neutral") for text in texts]))
    return path


def premises(path: Path) -> list[str]:
    return [item.premise for item in read_nli(path).pairs]


@pytest.mark.parametrize(
    "names",
    [
        ("data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"),
        ("train-00000-of-00002-2a1df75c6bce91ab.parquet", "train-00001-of-00002-9f0c.parquet"),
        ("default/train/0000.parquet", "default/train/0001.parquet"),
        ("train-0.parquet", "train-1.parquet"),
        ("train_0.parquet", "train_1.parquet"),
    ],
)
def test_the_train_shards_of_a_folder_are_read_in_order(tmp_path: Path, names: Any) -> None:
    root = tmp_path / "set"
    second = write_split(root, names[1], "two")
    first = write_split(root, names[0], "one")
    other = names[0].replace("train", "validation").replace("-of-00002", "-of-00001")
    write_split(root, other, "other")
    (root / "README.md").write_text("about")
    write_split(root, ".cache/train-00000-of-00001.parquet", "hidden")
    result = read_nli(root)
    assert [item.premise for item in result.pairs] == ["one", "two"]
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (first, second)]
    listing = "".join(f"{sha}  {name}\n" for sha, name in zip(hashes, names, strict=True))
    (source,) = result.sources
    assert (source.source, source.rows) == (str(root), 2)
    assert source.sha256 == hashlib.sha256(listing.encode()).hexdigest()


def test_the_hash_of_a_folder_does_not_depend_on_its_place(tmp_path: Path) -> None:
    write_split(tmp_path / "here", "train.parquet", "one")
    shutil.copytree(tmp_path / "here", tmp_path / "there" / "copy")
    first, second = (read_nli(tmp_path / name).sources[0] for name in ("here", "there/copy"))
    assert first.sha256 == second.sha256


def test_links_to_files_are_followed_as_in_the_hubs_cache(tmp_path: Path) -> None:
    blob = write_split(tmp_path, "blob.parquet", "one")
    (tmp_path / "snapshot" / "data").mkdir(parents=True)
    (tmp_path / "snapshot" / "data" / "train-00000-of-00001.parquet").symlink_to(blob)
    assert premises(tmp_path / "snapshot") == ["one"]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["pair/train.parquet", "triplet/train.parquet"], "found 2: pair, triplet; pass the"),
        (["data/dev.parquet", "data/test.parquet"], "expected a train split, found dev, test;"),
        (["train_r1-00000-of-00001.parquet"], "a train split, found train_r1"),
        (["train-00000-of-00002.parquet"], "are not the shards of one data set"),
        (["train.parquet", "train-00000-of-00001.parquet"], "are not the shards of one data set"),
        (["snli_train.jsonl", "snli_dev.tsv"], "found snli_dev.tsv, snli_train.jsonl; pass the"),
    ],
)
def test_a_folder_without_one_clear_train_split_is_refused(
    tmp_path: Path, names: list[str], reason: str
) -> None:
    for name in names:
        write_split(tmp_path / "set", name, "one")
    with pytest.raises(InputError, match=reason):
        read_nli(tmp_path / "set")


def test_the_split_of_a_folder_can_be_named(tmp_path: Path) -> None:
    for name in ("train", "validation"):
        write_split(tmp_path / "files", f"{name}.parquet", name)
        save(tmp_path / "saved" / name, name)
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    save(tmp_path / "one", "validation", _split="validation")
    for folder in ("files", "saved"):
        assert read_first(tmp_path / folder, "dev") == ["validation"]
        assert read_first(tmp_path / folder, "all") == ["train", "validation"]
    assert read_first(tmp_path / "one", "dev") == read_first(tmp_path / "one", None)
    with pytest.raises(InputError, match="expected a test split, found validation"):
        read_nli(tmp_path / "one", split="test")


def read_first(path: Path, split: str | None) -> list[str]:
    """The premises of a split."""
    return [item.premise for item in read_nli(path, split=split).pairs]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found nothing; pass the files themselves"):
        read_nli(tmp_path)


def test_the_messages_for_a_shard_name_the_shard(tmp_path: Path) -> None:
    path = tmp_path / "set" / "train-00000-of-00001.parquet"
    write_classes(path, [0, 5], list(NLI_LABELS))
    with pytest.raises(InputError, match=r"train-00000-of-00001\.parquet: 1 bad row: 2 "):
        read_nli(tmp_path / "set")


def save(folder: Path, *texts: str, **more: object) -> None:
    """What save_to_disk of Hugging Face's datasets writes, a shard for each text."""
    files = [f"data-{i:05}-of-{len(texts):05}.arrow" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        write_split(folder, file, text)
    state = {"_data_files": [{"filename": file} for file in files], "_split": None, **more}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")


def test_a_saved_data_set_is_read(tmp_path: Path) -> None:
    save(tmp_path / "set", "one", "two")
    write_split(tmp_path / "set", "cache-12ab.arrow", "stale")
    assert premises(tmp_path / "set") == ["one", "two"]


def test_the_train_split_of_saved_splits_is_read(tmp_path: Path) -> None:
    save(tmp_path / "set" / "train", "one")
    save(tmp_path / "set" / "validation", "other", _split="validation")
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    assert premises(tmp_path / "set") == ["one"]
    assert premises(tmp_path / "set" / "validation") == ["other"]


def test_saved_splits_without_train_are_refused(tmp_path: Path) -> None:
    save(tmp_path / "validation", "other")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["validation", "test"]}')
    with pytest.raises(InputError, match="expected a train split, found test, validation; pass"):
        read_nli(tmp_path)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object, found list"),
        ("{}", "expected the names of splits or data files"),
        ('{"_data_files": ["x.arrow"]}', "expected the names of splits or data files"),
        ('{"_data_files": [{"filename": "../x.arrow"}]}', "expected the names"),
        ('{"_data_files": [{"filename": ".."}]}', "expected the names"),
        ('{"_data_files": [{"filename": 5}]}', "expected the names"),
        ('{"_data_files": [{"filename": "x.arrow"}], "_indices_files": [1]}', "flatten_indices"),
        ('{"_data_files": [{"filename": "gone.arrow"}]}', "gone.arrow: no such file"),
        ('{"_data_files": [{"filename": "gone"}]}', "unknown format"),
    ],
)
def test_a_saved_data_set_that_cannot_be_understood_is_refused(
    tmp_path: Path, state: str, reason: str
) -> None:
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(InputError, match=reason):
        read_nli(tmp_path)


def test_what_datasets_itself_writes_is_read(tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    script = """
import sys
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
names = ["neutral", "contradiction", "entailment"]
text = Value("string")
features = Features({"premise": text, "hypothesis": text, "label": ClassLabel(names=names)})
rows = {"premise": ["a", "b", "c"], "hypothesis": ["x", "y", "z"], "label": [0, 2, -1]}
made = Dataset.from_dict(rows, features=features)
DatasetDict(train=made, test=made.select([1])).save_to_disk(sys.argv[1] + "/splits")
made.select([1, 0]).save_to_disk(sys.argv[1] + "/one", num_shards=2)
made.to_parquet(sys.argv[1] + "/one.parquet")
"""
    made = [sys.executable, "-c", script, str(tmp_path)]
    subprocess.run(made, check=True, capture_output=True)
    expected = (NliPair("a", "x", 1), NliPair("b", "y", 0))
    for name in ("splits", "one.parquet"):
        result = read_nli(tmp_path / name)
        assert (result.pairs, result.skipped) == (expected, 1)
    assert read_nli(tmp_path / "one").pairs == expected[::-1]


def test_reading_needs_neither_torch_nor_datasets(write: Write) -> None:
    path = write(FORMS[".parquet"]([("a", "b", "neutral")]), "pairs.parquet")
    script = (
        "import sys; from sbertkit.data.nli import read_nli; read_nli(sys.argv[1]);"
        "sys.exit(bool({'torch', 'transformers', 'datasets', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 0


# Splits in a column

SPLIT_ROWS = [
    {"split": "train", "sentence1": "a", "sentence2": "b", "label": "neutral"},
    {"split": "dev", "sentence1": "c", "sentence2": "d", "label": "entailment"},
    {"split": "train", "sentence1": "e", "sentence2": "f", "label": "contradiction"},
    {"split": "test", "sentence1": "g", "sentence2": "h", "label": "no label at all"},
]


def split_table(rows: list[dict[str, str]], suffix: str) -> bytes:
    """The rows in the format that a suffix tells."""
    buffer = io.BytesIO()
    table = pa.Table.from_pylist(rows)
    if suffix == ".parquet":
        pq.write_table(table, buffer)
    elif suffix == ".arrow":
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)
    elif suffix == ".jsonl":
        buffer.write(objects(*rows).encode())
    else:
        mark = "," if suffix == ".csv" else "\t"
        lines = [mark.join(rows[0]), *(mark.join(row.values()) for row in rows)]
        buffer.write("".join(f"{line}\n" for line in lines).encode())
    return buffer.getvalue()


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".csv", ".jsonl", ".parquet", ".arrow"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["train", "Train", "training"])
def test_the_train_rows_of_a_split_column_are_read_and_the_others_counted(
    write: Write, caplog: pytest.LogCaptureFixture, suffix: str, packed: bool, name: str
) -> None:
    rows = [{**row, "split": row["split"].replace("train", name)} for row in SPLIT_ROWS]
    content = split_table(rows, suffix)
    path = write(gzip.compress(content) if packed else content, f"p{suffix}{'.gz' * packed}")
    with caplog.at_level(logging.WARNING):
        result = read_nli(path)
    assert [pair.premise for pair in result.pairs] == ["a", "e"]
    assert result.sources[0].other_splits == 2
    assert caplog.messages == ["2 rows of other splits left out (1 dev, 1 test)"]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl", ".parquet", ".arrow"])
def test_another_split_is_read_by_its_name(write: Write, suffix: str) -> None:
    path = write(split_table(SPLIT_ROWS, suffix), f"p{suffix}")
    assert read_first(path, "dev") == read_first(path, "validation") == ["c"]
    assert read_first(path, "train") == ["a", "e"]
    with pytest.raises(InputError, match="unknown label 'no label at all'"):
        read_nli(path, split="all")
    with pytest.raises(InputError, match="expected a other split, found train, dev, test;"):
        read_nli(path, split="other")


def test_files_without_a_train_row_are_refused_naming_their_splits(write: Write) -> None:
    path = write(split_table(SPLIT_ROWS[1:2], ".tsv"), "p.tsv")
    with pytest.raises(InputError, match=r"p\.tsv: expected a train split, found dev; pass one"):
        read_nli(path)


def test_a_split_is_not_asked_of_a_file_that_has_none(write: Write) -> None:
    path = write(objects(pair("neutral")))
    assert read_first(path, "all") == read_first(path, None)
    with pytest.raises(InputError, match="found no split column"):
        read_nli(path, split="train")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"split": ""}, r"1 bad line: 2 \(blank split\)"),
        ({"split": None}, r"1 bad line: 2 \(blank split\)"),
        ({}, "1 of 4 lines have no split, the others have one"),
    ],
)
def test_rows_without_a_split_beside_rows_with_one_are_refused(
    write: Write, changed: dict[str, Any], reason: str
) -> None:
    rows: list[dict[str, Any]] = [dict(row) for row in SPLIT_ROWS]
    del rows[1]["split"]
    with pytest.raises(InputError, match=reason):
        read_nli(write(objects(rows[0], rows[1] | changed, *rows[2:])))
