import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbertkit.data.sts import StsPair, read_sts
from sbertkit.data.text import is_blank
from sbertkit.errors import InputError, MissingFile

Write = Callable[..., Path]
HEADER = "split\tscore\tsentence1\tsentence2\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "pairs.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_file_with_a_header_is_read(write: Write) -> None:
    path = write(HEADER + "test\t4.5\tThe kettle sings.\tThe kettle whistles.\n")
    result = read_sts(path)
    assert result.pairs == (StsPair(4.5, "The kettle sings.", "The kettle whistles."),)
    assert (result.split, result.splits, result.source) == ("test", ("test",), str(path))


def test_a_file_without_a_header_is_read(write: Write) -> None:
    result = read_sts(write("1.5\tOne goat.\tTwo goats.\n0\tHay.\tMilk.\n"))
    assert result.pairs == (StsPair(1.5, "One goat.", "Two goats."), StsPair(0.0, "Hay.", "Milk."))
    assert (result.split, result.splits) == (None, ())


@pytest.mark.parametrize(
    "header",
    [
        "sentence2\tgenre\tscore\tsentence1",
        "sentence_B\tpair_ID\trelatedness_score\tsentence_A",
        "Sentence2\tx\tsimilarity_score\tSentence1",
        "text2\tx\tlabel\ttext1",
        " SENTENCE_2 \t\t Score \t SENTENCE_1 ",
    ],
)
def test_columns_come_in_any_order_and_by_their_usual_names(write: Write, header: str) -> None:
    result = read_sts(write(f"{header}\nthe second\textra\t2\tthe first\n"))
    assert result.pairs == (StsPair(2.0, "the first", "the second"),)


def test_the_plainest_of_several_score_columns_counts(write: Write) -> None:
    result = read_sts(write("label\tscore\tsentence1\tsentence2\n1\t4\ta\tb\n"))
    assert result.pairs[0].score == 4.0


def test_a_first_row_with_one_column_name_for_a_sentence_is_no_header(write: Write) -> None:
    assert read_sts(write("3\tscore\tpoints\n")).pairs == (StsPair(3.0, "score", "points"),)


def test_a_header_without_a_needed_column_is_refused(write: Write) -> None:
    with pytest.raises(
        InputError,
        match=r"line 1: .* found split, score, sentence1; rename .* 'sentence2'",
    ):
        read_sts(write("split\tscore\tsentence1\ntest\t3\ta\n"))


@pytest.mark.parametrize(
    "header", ["score\tScore\tsentence1", "score\tSCORE\tsentence1\tsentence2"]
)
def test_a_header_with_a_duplicate_name_is_refused(write: Write, header: str) -> None:
    with pytest.raises(InputError, match=r"pairs\.tsv line 1: duplicate column name"):
        read_sts(write(f"{header}\n1\t2\ta\tb\n"))


def test_quotes_are_part_of_the_sentence(write: Write) -> None:
    text = '"We left\tHe said "no'
    pairs = read_sts(write(f'{HEADER}test\t1\t{text}\ntest\t2\tx\ty"\n')).pairs
    assert pairs == (StsPair(1.0, '"We left', 'He said "no'), StsPair(2.0, "x", 'y"'))


def test_records_end_at_line_feeds_only(write: Write) -> None:
    odd = "a\u2028b\x0bc\x0cd\x85e\x1cf"
    assert read_sts(write(f"1\t{odd}\tz\n2\tg\th\n")).pairs[0].first == odd


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_and_windows_line_ends_are_dropped(
    write: Write, pack: Callable[[bytes], bytes]
) -> None:
    name = "pairs.tsv.gz" if pack is gzip.compress else "pairs.tsv"
    text = "\ufeff" + (HEADER + "test\t1\tred\tblue\n\ntest\t2\tone\ttwo").replace("\n", "\r\n")
    result = read_sts(write(pack(text.encode()), name))
    assert result.pairs == (StsPair(1.0, "red", "blue"), StsPair(2.0, "one", "two"))
    plain = text.removeprefix("\ufeff").split("\r\n", 1)[1].replace("test\t", "")
    assert read_sts(write("\ufeff" + plain)).pairs == result.pairs


@pytest.mark.parametrize(
    ("text", "score"),
    [(" 5.000 ", 5.0), ("1e0", 1.0), ("+2", 2.0), (".5", 0.5), ("-0", 0.0), ("3.", 3.0)],
)
def test_scores_are_plain_numbers_with_blanks_around(write: Write, text: str, score: float) -> None:
    assert read_sts(write(f"{text}\ta\tb\n"), scale=(0, 5)).pairs[0].score == score


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("N/A\ta\tb", "score 'N/A' is no number"),
        ("\ta\tb", "score '' is no number"),
        ("3,5\ta\tb", "score '3,5' is no number"),
        ("1_0\ta\tb", "score '1_0' is no number"),
        ("٣\ta\tb", "score '٣' is no number"),
        ("0x1\ta\tb", "score '0x1' is no number"),
        ("nan\ta\tb", "score 'nan' is no finite number"),
        ("-inf\ta\tb", "score '-inf' is no finite number"),
        ("1e999\ta\tb", "score '1e999' is no finite number"),
        ("5.01\ta\tb", "score 5.01 outside 0 to 5"),
        ("-1\ta\tb", "score -1 outside 0 to 5"),
        ("2\ta", "2 columns, expected 3"),
        ("2", "1 column, expected 3"),
        ("2\ta\tb\tc", "4 columns, expected 3"),
        ("2\t\tb", "the first sentence is blank"),
        ("2\ta\t \u3000", "the second sentence is blank"),
        ("\t\t", "score '' is no number"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_reason(write: Write, row: str, reason: str) -> None:
    path = write(f"1\tgood\tfine\n{row}\n2\tgood\tfine\n")
    with pytest.raises(InputError) as refusal:
        read_sts(path, scale=(0, 5))
    scale = "; the scale is 0 to 5" if "outside" in reason else ""
    assert str(refusal.value) == f"{path}: 1 bad line: 2 ({reason}){scale}; correct or remove it"


def test_all_bad_rows_are_named_in_the_order_of_the_file(write: Write) -> None:
    path = write("x\ta\tb\n1\ta\n2\ta\tb\n9\ta\tb\n")
    with pytest.raises(InputError) as refusal:
        read_sts(path, scale=(0, 5))
    assert (
        "3 bad lines: 1 (score 'x' is no number), 2 (2 columns, expected 3), "
        "4 (score 9 outside 0 to 5);"
    ) in str(refusal.value)


def test_at_most_ten_bad_rows_are_listed(write: Write) -> None:
    with pytest.raises(InputError) as refusal:
        read_sts(write("x\ta\tb\n" * 13))
    message = str(refusal.value)
    assert "13 bad lines" in message
    assert message.count("is no number") == 10
    assert "and 3 more" in message


def test_a_message_stays_on_one_line_and_short(write: Write) -> None:
    with pytest.raises(InputError) as refusal:
        read_sts(write("\x1b[31m" + "9" * 500 + "z\x85\ta\tb\n"))
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400


def test_scores_of_any_size_are_taken_without_a_scale(write: Write) -> None:
    assert read_sts(write("-73.5\ta\tb\n")).pairs[0].score == -73.5


@pytest.mark.parametrize("scale", [(5, 0), (1, 1), (0, float("nan")), (float("-inf"), 0)])
def test_a_scale_is_a_lower_and_a_higher_number(write: Write, scale: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="scale: expected a lower and a higher finite number"):
        read_sts(write("1\ta\tb\n"), scale=scale)


SPLITS = HEADER + "train\t1\ta\tb\ndev\t2\tc\td\ntrain\t3\te\tf\n"


def scores(path: Path, split: str | None) -> list[float]:
    return [pair.score for pair in read_sts(path, split=split).pairs]


def test_a_named_split_is_read(write: Write) -> None:
    path = write(SPLITS)
    assert scores(path, "train") == [1.0, 3.0]
    assert scores(path, "dev") == [2.0]
    assert read_sts(path, split="dev").splits == ("train", "dev")


def test_all_reads_every_row(write: Write) -> None:
    assert scores(write(SPLITS), "all") == [1.0, 2.0, 3.0]
    assert read_sts(write(SPLITS), split="all").split == "all"
    assert scores(write("1\ta\tb\n"), "all") == [1.0]


def test_test_is_read_when_no_split_is_named(write: Write) -> None:
    result = read_sts(write(SPLITS + "test\t4\tg\th\n"))
    assert ([pair.score for pair in result.pairs], result.split) == ([4.0], "test")


def test_a_single_split_is_read_when_none_is_named(write: Write) -> None:
    result = read_sts(write(HEADER + "dev\t2\ta\tb\n"))
    assert (len(result.pairs), result.split) == (1, "dev")


@pytest.mark.parametrize(
    ("content", "split", "message"),
    [
        (SPLITS, None, "found 2 splits and no 'test'; pass one as split: train, dev, all"),
        (
            SPLITS,
            "test",
            "expected a test split, found train, dev; pass one of them or all",
        ),
        (SPLITS, "", "expected a  split, found train, dev; pass one of them or all"),
        ("1\ta\tb\n", "test", "found no split column; leave the split out"),
        (HEADER + "\t1\ta\tb\n", None, r"1 bad line: 2 \(blank split\)"),
    ],
)
def test_a_split_that_cannot_be_chosen_is_refused(
    write: Write, content: str, split: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_sts(write(content), split=split)


@pytest.mark.parametrize(("name", "wanted"), [("Validation", "dev"), ("dev", "val")])
def test_a_split_is_found_under_its_usual_names(write: Write, name: str, wanted: str) -> None:
    path = write(SPLITS.replace("\ndev", f"\n{name}"))
    assert read_sts(path, split=wanted).split == name
    assert read_sts(path, prefer=(wanted,)).split == name


def test_the_scores_of_other_splits_are_not_judged(write: Write) -> None:
    path = write(SPLITS + "test\t-\tno gold\thidden\n")
    assert scores(path, "train") == [1.0, 3.0]
    with pytest.raises(InputError, match="1 bad line: 5"):
        read_sts(path, split="all")


def test_a_row_that_may_be_of_any_split_is_refused_for_every_split(write: Write) -> None:
    with pytest.raises(InputError, match=r"1 bad line: 5 \(3 columns, expected 4\)"):
        read_sts(write(SPLITS + "test\t3\tlost\n"), split="train")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", HEADER, "  \n"])
def test_a_file_without_rows_is_refused(write: Write, content: str) -> None:
    with pytest.raises(InputError, match="found no rows"):
        read_sts(write(content))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"):
        read_sts(tmp_path / "absent.tsv")


sentences = st.text(
    st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda text: not is_blank(text))


@given(st.lists(st.tuples(st.floats(0, 5), sentences, sentences), min_size=1, max_size=6))
@settings(max_examples=60)
def test_whatever_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("sts") / "pairs.tsv"
    body = "".join(f"test\t{score!r}\t{first}\t{second}\n" for score, first, second in rows)
    path.write_bytes((HEADER + body).encode())
    assert read_sts(path, scale=(0, 5)).pairs == tuple(StsPair(*row) for row in rows)
