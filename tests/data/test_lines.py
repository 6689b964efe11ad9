"""Lines from bytes: line ends, byte order marks, encodings, undecodable bytes."""

import codecs
import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data.limits import MAX_TEXT_BYTES
from sbertkit.data.lines import Line, LongLine, TextOptions, bounded_lines, read_lines, read_text
from sbertkit.data.metadata import BadRecordError
from sbertkit.errors import InputError

ENCODINGS = ["utf-8", "utf-16", "utf-16-le", "utf-32-be", "utf-7", "gb18030"]
SEPARATORS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"


def write(tmp_path: Path, data: bytes, name: str = "corpus.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def texts(path: Path, encoding: str = "utf-8", errors: str = "strict") -> list[str]:
    lines = list(read_lines(path, TextOptions(encoding, errors)))
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    return [line.text for line in lines]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\r", ["a", "b"]),
        (b"a\r\r\nb", ["a\r", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\n\r\n\r", ["", "", ""]),
        (b" a \t\n", [" a \t"]),
    ],
)
def test_lines_end_at_a_newline_and_lose_one_carriage_return(
    tmp_path: Path, data: bytes, expected: list[str]
) -> None:
    assert texts(write(tmp_path, data)) == expected
    assert texts(write(tmp_path, data), "latin-1") == expected
    assert texts(write(tmp_path, data.decode().encode("utf-16"), "b"), "utf-16") == expected


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_separators_stay_in_the_text(tmp_path: Path, separator: str, encoding: str) -> None:
    data = f"a{separator}b\nc{separator}".encode(encoding)
    assert texts(write(tmp_path, data), encoding) == [f"a{separator}b", f"c{separator}"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "UTF8", "utf_8"])
def test_a_byte_order_mark_is_dropped_once(tmp_path: Path, encoding: str) -> None:
    data = codecs.BOM_UTF8 + "\ufeffa\n\ufeffb".encode()
    assert texts(write(tmp_path, data), encoding) == ["\ufeffa", "\ufeffb"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-16", "utf-32"])
def test_a_byte_order_mark_of_a_wide_encoding_is_dropped(tmp_path: Path, encoding: str) -> None:
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    data = (mark + "a\nb").encode(encoding)
    assert texts(write(tmp_path, data), encoding) == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_file_of_only_a_byte_order_mark_is_empty(tmp_path: Path, encoding: str) -> None:
    assert texts(write(tmp_path, "\ufeff".encode(encoding)), encoding) == []


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "café\xff"),
        ("cp1252", "“café” €"),
        ("gb18030", "中文\U0001f600"),
        ("shift_jis", "日本語ソ表"),
        ("iso2022_jp", "日本語\nかな"),
        ("euc_kr", "한국어"),
        ("utf-7", "a+b é"),
        ("cp037", "EBCDIC lines"),
    ],
)
def test_other_encodings_are_decoded_across_chunk_borders(
    tmp_path: Path, encoding: str, text: str
) -> None:
    whole = "\n".join([text, "x" * 16381 + text, text * 9000, text])
    path = write(tmp_path, whole.encode(encoding))
    assert texts(path, encoding) == whole.split("\n")


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


@given(TEXT, st.sampled_from(ENCODINGS))
def test_the_lines_are_those_of_a_split_at_newlines(
    tmp_path_factory: pytest.TempPathFactory, text: str, encoding: str
) -> None:
    path = write(tmp_path_factory.mktemp("lines"), text.encode(encoding))
    expected = text.split("\n")
    if not expected[-1]:
        expected.pop()
    assert texts(path, encoding) == [line.removesuffix("\r") for line in expected]
    assert read_text(path, TextOptions(encoding)) == text.replace("\r\n", "\n")


@given(
    st.lists(st.sampled_from([b"\xff", b"\xc3", b"\x81", b"\xa9", b"a", b"\n", b"\xef\xbf\xbd"])),
    st.sampled_from(["utf-8", "gb18030", "shift_jis", "cp1252", "ascii", "utf-16-le"]),
)
def test_replaced_bytes_are_those_that_python_replaces(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], encoding: str
) -> None:
    data = b"x\n" + b"".join(parts)
    if encoding == "utf-16-le":
        data = data.decode("latin-1").encode("utf-16-le") + b"\x00\xdc\n"
    path = write(tmp_path_factory.mktemp("lines"), data)
    assert read_text(path, TextOptions(encoding, "replace")) == data.decode(encoding, "replace")


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_lines_with_replaced_bytes_are_reported_once_each(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, b"good\n\xff\xfe bad \xff\ngood\n\xffbad")
    numbers: list[int | str] = []
    lines = list(read_lines(path, TextOptions(encoding, "replace", on_replaced=numbers.append)))
    assert numbers == [2, 4]
    assert [line.text for line in lines] == [
        "good", "\ufffd\ufffd bad \ufffd", "good", "\ufffdbad",
    ]  # fmt: skip


def test_a_replacement_character_of_the_text_is_not_counted(tmp_path: Path) -> None:
    numbers: list[int | str] = []
    path = write(tmp_path, "\ufffd\n".encode())
    assert (
        len(list(read_lines(path, TextOptions(errors="replace", on_replaced=numbers.append)))) == 1
    )
    assert numbers == []


def test_undecodable_bytes_are_refused_with_both_offsets(tmp_path: Path) -> None:
    path = write(tmp_path, codecs.BOM_UTF8 + b"one\ntwo\nab\xe9cd\n")
    with pytest.raises(InputError) as caught:
        texts(path)
    message = str(caught.value)
    assert "corpus.txt line 3" in message
    assert "byte 0xe9 at offset 2 in the line, 13 in the file" in message
    assert "pass its encoding, or errors replace" in message
    assert "\n" not in message


def test_undecodable_bytes_of_another_encoding_name_line_and_offset(tmp_path: Path) -> None:
    path = write(tmp_path, b"a" * 20_000 + b"\nok\nab\x81")
    with pytest.raises(InputError, match=r"line 3: not valid cp1252 \(byte 0x81 at offset 20006 "):
        texts(path, "cp1252")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gb18030"])
def test_a_truncated_character_at_the_end_is_refused(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "ab\n中文".encode(encoding)[:-1])
    with pytest.raises(InputError, match="line 2: not valid"):
        texts(path, encoding)


WIDE = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
WORDS = {
    "latin": "plain words\nmore",
    "short": "a\n",
    "one": "ab",
    "blank": " \n\n",
    "cyrillic": "и так далее в том же духе, и снова\n" * 9,
    "table": '1\t"a", {"text": "b"}\r\n' * 9,
}


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS)
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("codec", ["utf-8", "latin-1", "cp1252", "gb18030", "ascii"])
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_wide_encodings_read_as_another_are_refused_by_their_name(
    tmp_path: Path, text: str, wide: str, codec: str, errors: str
) -> None:
    path = write(tmp_path, text.encode(wide))
    with pytest.raises(InputError, match=f"looks like {wide}; .* encoding {wide},"):
        texts(path, codec, errors)
    with pytest.raises(InputError, match=f"looks like {wide};"):
        read_text(path, TextOptions(codec, errors))
    assert "\n".join(texts(path, wide)).rstrip() == text.replace("\r", "").rstrip()


@pytest.mark.parametrize("wide", ["utf-16", "utf-32"])
def test_a_wide_encoding_is_not_taken_for_another_one(tmp_path: Path, wide: str) -> None:
    other = ({"utf-16", "utf-32"} - {wide}).pop()
    with pytest.raises(InputError, match=f"looks like {wide}"):
        texts(write(tmp_path, "words".encode(wide)), other)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_text_without_mark_and_blanks_is_refused_where_it_cannot_be_decoded(
    tmp_path: Path, encoding: str
) -> None:
    with pytest.raises(InputError, match="not valid utf-8"):
        texts(write(tmp_path, "中文\n文".encode(encoding)))


@pytest.mark.parametrize("data", [b"a\0b and more", b"\0\0\0\0 x", b"ab\0cd\0efg\0hi\0jklm" * 9])
def test_nuls_in_plain_text_are_no_sign_of_another_encoding(tmp_path: Path, data: bytes) -> None:
    assert len(texts(write(tmp_path, data), errors="replace")) == 1


def test_a_single_nul_in_a_text_is_kept(tmp_path: Path) -> None:
    assert texts(write(tmp_path, b"some words \0 and more\n")) == ["some words \0 and more"]


def test_nul_heavy_lines_are_replaced_when_that_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, b"some words\na\0\0b\n")
    assert texts(path, errors="replace") == ["some words", "a\ufffd\ufffdb"]
    with pytest.raises(InputError, match=r"line 2: .* so many NUL bytes look like utf-16"):
        texts(path)


def test_utf16_without_a_byte_order_mark_is_refused_when_it_needs_one(tmp_path: Path) -> None:
    path = write(tmp_path, "ab".encode("utf-16-le"))
    with pytest.raises(InputError, match="BOM"):
        texts(path, "utf-16")


@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_gzip_without_its_name_is_recognized_in_the_refusal(tmp_path: Path, errors: str) -> None:
    with pytest.raises(InputError, match="looks like gzip"):
        texts(write(tmp_path, gzip.compress(b"words")), errors=errors)


@pytest.mark.parametrize("encoding", ["klingon", "", "hex", "rot13", "undefined", "utf\0"])
def test_an_unknown_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(InputError, match=r"encoding .* is not known; pass the name"):
        texts(write(tmp_path, b"a"), encoding)


def test_an_unknown_way_to_treat_errors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'strict' or 'replace', not 'ignore'"):
        texts(write(tmp_path, b"a"), errors="ignore")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_line_of_ten_million_characters_is_whole(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, ("a\n" + "x" * 10_000_000 + "\nb").encode(encoding))
    assert [len(text) for text in texts(path, encoding)] == [1, 10_000_000, 1]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "gb18030"])
@pytest.mark.parametrize("length", [10, 11, 12, 200_000])
@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_line_longer_than_the_limit_is_reported_and_not_kept(
    tmp_path: Path, end: str, mark: str, encoding: str, length: int, letter: str
) -> None:
    text = letter * (length // len(letter.encode()) + length % len(letter.encode()))
    size = len(text.encode())
    path = write(tmp_path, f"{mark}ok{end or chr(10)}{text}{end}".encode(encoding))
    first, second = bounded_lines(path, TextOptions(encoding, max_bytes=10))
    assert first == Line(1, "ok")
    if size <= 10:
        assert second == Line(2, text)
    else:
        assert isinstance(second, LongLine)
        assert (second.number, second.quoted) == (2, False)
        assert size <= second.bytes <= size + 1  # with a carriage return
    path.write_bytes(f"{text}{end}last".encode(encoding))
    if end:
        assert [
            line.number for line in bounded_lines(path, TextOptions(encoding, max_bytes=10))
        ] == [1, 2]


def test_a_long_line_where_none_may_be_left_out_is_refused_with_its_size(tmp_path: Path) -> None:
    path = write(tmp_path, b"a\n" + b"x" * (MAX_TEXT_BYTES + 1) + b"\n")
    with pytest.raises(InputError, match=r"line 2: 16,777,217 bytes, more than the 16,777,216 "):
        texts(path)


def test_a_line_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sbertkit.data.lines.MAX_LINE_BYTES", 2**21)
    path = write(tmp_path, b"x" * 2**22)
    for encoding in ("utf-8", "latin-1"):
        with pytest.raises(InputError, match=r"line 1: more than 2,097,152 bytes without a line"):
            list(bounded_lines(path, TextOptions(encoding, max_bytes=10)))


def test_a_text_file_longer_than_the_limit_is_refused_with_its_size(tmp_path: Path) -> None:
    path = write(tmp_path, b"abc\n" * 5)
    assert len(read_text(path, TextOptions(max_bytes=20))) == 20
    with pytest.raises(BadRecordError, match="20 bytes, more than the 19 "):
        read_text(path, TextOptions(max_bytes=19))


def test_the_whole_text_of_a_file_keeps_its_inner_lines(tmp_path: Path) -> None:
    path = write(tmp_path, codecs.BOM_UTF8 + b"a\r\n\r\nb\rc\n\n")
    assert read_text(path) == "a\n\nb\rc\n\n"


def test_a_dash_reads_standard_input_and_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"a\r\nb\n"), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert texts(Path("-")) == ["a", "b"]
    assert not stdin.closed
