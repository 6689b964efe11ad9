"""Corpora that programs get wrong, from the file to the hit."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from index_cases import documents, ids_in

from sbertkit import BuildOptions, Encoder, ReadOptions, SearchIndex
from sbertkit.errors import InputError, InputTypeError, MissingFile


@pytest.fixture
def built(tiny_encoder: Encoder, tmp_path: Path) -> Callable[..., SearchIndex]:
    """Builds an index over a corpus that is written first."""

    def build(name: str, content: bytes | str, **options: Any) -> SearchIndex:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return SearchIndex.build(path, tiny_encoder, tmp_path / f"{name}-index", **options)

    return build


@pytest.fixture
def refused(tiny_encoder: Encoder, tmp_path: Path) -> Callable[..., str]:
    """The message with which a corpus is refused before the encoder is asked for."""

    def refuse(name: str, content: bytes | str, **options: Any) -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)

        def never() -> Encoder:
            pytest.fail("the encoder was loaded before the corpus was accepted")

        with pytest.raises(InputError) as caught:
            SearchIndex.build(path, never, tmp_path / "index", **options)
        assert [left.name for left in tmp_path.iterdir()] == [name]
        message = str(caught.value)
        assert "\n" not in message
        return message

    return refuse


def jsonl(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def found(index: SearchIndex) -> dict[str, str]:
    """All documents, each of which the text of its passages finds first."""
    hits = index.search("anything", k=10**6, hits="passages")
    texts = {hit.id: hit.text for hit in hits}
    assert len(texts) == len(index)
    for hit in hits:
        first = index.search(hit.passage.text, k=1)[0]
        assert (first.id, first.text) == (hit.id, hit.text)
        assert first.score == pytest.approx(1, abs=1e-4)
    return texts


LINES = ["First line, with a comma", "Second: größer", "", "Fourth line", "Fifth and last"]


def test_windows_files_and_byte_order_marks_make_no_difference(
    built: Callable[..., SearchIndex], caplog: pytest.LogCaptureFixture
) -> None:
    plain = built("plain.txt", "\n".join(LINES) + "\n")
    expected = plain.search_batch(["first", "größer"], k=9)
    forms: list[tuple[bytes, dict[str, Any]]] = [
        (b"\xef\xbb\xbf" + "\r\n".join(LINES).encode(), {}),
        ("\r\n".join(LINES).encode("utf-16"), {"read": ReadOptions(encoding="utf-16")}),
        ("\n".join(LINES).encode("cp1252"), {"read": ReadOptions(encoding="cp1252")}),
    ]
    for number, (content, options) in enumerate(forms):
        caplog.clear()
        index = built(f"{number}.txt", content, **options)
        assert len(index) == 4
        assert index.search_batch(["first", "größer"], k=9) == expected
        assert [record.message for record in caplog.records if "1 blank (3)" in record.message]
    assert found(plain) == {str(n): line for n, line in enumerate(LINES, 1) if line}


SEPARATORS = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"


def test_only_a_line_feed_ends_a_line(built: Callable[..., SearchIndex]) -> None:
    texts = [f"number {char!r} before{char}and after" for char in SEPARATORS]
    for index in (
        built("x.txt", "\n".join(texts)),
        built("x.jsonl", jsonl(*({"id": n, "text": t} for n, t in enumerate(texts, 1)))),
    ):
        assert found(index) == {str(n): text for n, text in enumerate(texts, 1)}


BAD = """{"id": "a", "text": "good"}

{"id": "b", "te
{"id": "c"}
["list"]
{"id": "d", "text": "too"}
"""


def test_a_bad_line_is_refused_by_its_number(refused: Callable[..., str]) -> None:
    message = refused("bad.jsonl", BAD)
    assert "bad.jsonl" in message
    assert "line 3" in message


def test_bad_lines_are_skipped_on_demand_and_counted(
    built: Callable[..., SearchIndex], caplog: pytest.LogCaptureFixture
) -> None:
    index = built("bad.jsonl", BAD, read=ReadOptions(skip_bad_lines=True))
    assert sorted(found(index)) == ["a", "d"]
    (message,) = [record.message for record in caplog.records if "bad lines" in record.message]
    assert "3 bad lines skipped (3, 4, 5)" in message


def test_text_after_the_first_tab_is_kept_whole(built: Callable[..., SearchIndex]) -> None:
    rows = {"t1": "one\ttwo\tthree", "t2": "plain text", "t3": "\tbegins with a tab", "t4": "end\t"}
    index = built("x.tsv", "".join(f"{key}\t{text}\n" for key, text in rows.items()))
    assert found(index) == rows


@pytest.mark.parametrize("other", ["same text", "another text"])
def test_a_duplicate_id_is_refused_with_both_places(
    refused: Callable[..., str], tmp_path: Path, tiny_encoder: Encoder, other: str
) -> None:
    records = [
        {"id": "a", "text": "same text"},
        {"id": "b", "text": "x"},
        {"id": "a", "text": other},
    ]
    message = refused("dup.jsonl", "\n" + jsonl(*records))
    assert "'a'" in message
    assert "lines 2 and 4" in message
    with pytest.raises(InputError, match="duplicate id 'a' on rows 0 and 2"):
        SearchIndex.build(records, tiny_encoder, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_the_first_of_many_double_ids_is_named_however_far_apart(
    refused: Callable[..., str],
) -> None:
    lines = [f"id{number}\ttext {number}" for number in range(3_000)]
    lines[2_999] = "id17\tother"
    assert "lines 18 and 3000" in refused("far.tsv", "\n".join(lines))


@pytest.mark.parametrize("identifier", ["{id}", "{0}", "%s", "{", "\\1"])
def test_an_id_that_looks_like_a_pattern_is_named_as_it_is(
    refused: Callable[..., str], identifier: str
) -> None:
    record = {"id": identifier, "text": "x"}
    assert f"duplicate id {identifier!r} on lines 1 and 2" in refused(
        "x.jsonl", jsonl(record, record)
    )


def test_blank_texts_are_left_out_and_named(
    built: Callable[..., SearchIndex], caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["kept one", "", "   ", "\t\n", "\u00a0\u3000", "kept two", "\u200b\ufeff"]
    index = built("x.jsonl", jsonl(*({"id": f"w{n}", "text": t} for n, t in enumerate(texts))))
    assert ids_in(index) == {"w0", "w5"}
    (message,) = [record.message for record in caplog.records if "blank" in record.message]
    assert "5 blank (w1, w2, w3, w4, w6)" in message


@pytest.mark.parametrize("content", ["", "\n", "\r\n \n\t\n", "\ufeff", "\u3000\n\u200b\n"])
def test_a_corpus_without_a_text_is_refused(refused: Callable[..., str], content: str) -> None:
    assert "no documents to index" in refused("x.txt", content)


@pytest.mark.parametrize("corpus", [[], (), iter([]), [("a", " ")]])
def test_an_iterable_without_a_text_is_refused(
    tiny_encoder: Encoder, tmp_path: Path, corpus: Any
) -> None:
    with pytest.raises(InputError, match="no documents to index"):
        SearchIndex.build(corpus, tiny_encoder, tmp_path / "index")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("corpus", [None, 3, {"a": "text"}, b"text", [3], [["a", "b"]]])
def test_a_corpus_of_something_else_is_a_wrong_type(
    tiny_encoder: Encoder, tmp_path: Path, corpus: Any
) -> None:
    with pytest.raises(InputTypeError):
        SearchIndex.build(corpus, tiny_encoder, tmp_path / "index")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["none.txt", "none/none.jsonl", "none"])
def test_a_missing_corpus_is_reported(tiny_encoder: Encoder, tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingFile, match=name):
        SearchIndex.build(tmp_path / name, tiny_encoder, tmp_path / "deep" / "index")
    assert not list(tmp_path.iterdir())


def test_unpaired_surrogates_are_repaired_and_counted(
    built: Callable[..., SearchIndex], caplog: pytest.LogCaptureFixture
) -> None:
    content = (
        b'{"id": "s1", "text": "cut \\ud83d off"}\n{"id": "s2", "text": "whole \\ud83d\\udc4d"}\n'
        b'{"id": "s3", "text": "\\udc00 low"}\n{"id": "s4", "text": "cut \\ufffd off"}\n'
        b'{"id": "s5", "text": "plain", "note": "\\ud800"}\n'
    )
    index = built("x.jsonl", content)
    texts = {key: index.get(key).text for key in ("s1", "s2", "s3", "s4", "s5")}
    assert texts["s1"] == texts["s4"] == "cut \ufffd off"
    assert texts["s2"] == "whole \U0001f44d"
    assert texts["s3"] == "\ufffd low"
    assert index.get("s5").metadata == {"note": "\ufffd"}
    twice = index.search("cut \ufffd off", k=2)
    assert [(hit.id, hit.score) for hit in twice] == [
        ("s1", twice[0].score),
        ("s4", twice[0].score),
    ]
    (message,) = [record.message for record in caplog.records if "surrogates" in record.message]
    assert "3 documents" in message


def test_texts_of_many_scripts_and_lengths_are_all_found(
    built: Callable[..., SearchIndex],
) -> None:
    texts = ["word", "這是一隻貓", "ねこがいます", "قطة سوداء", "חתול cat", "👩‍👩‍👧 family"]
    texts += ["cafe\u0301", "caf\u00e9 too", "many words " * 30, "a"]
    index = built("x.txt", "\n".join(texts))
    assert set(found(index).values()) == set(texts)


def test_a_line_of_ten_million_characters_is_a_document(
    built: Callable[..., SearchIndex],
) -> None:
    line = "y" * 10_000_000
    index = built("x.txt", f"short one\n{line}\nshort two\n", long="truncate")
    assert index.get("2").text == line
    (hit,) = index.search(line, k=1)
    assert (hit.id, hit.text == line) == ("2", True)
    assert hit.score == pytest.approx(1, abs=1e-4)
    assert index.search("short two", k=1)[0].id == "3"


def test_a_long_line_without_a_space_is_passages(built: Callable[..., SearchIndex]) -> None:
    line = "y" * 300_000
    index = built("x.txt", f"short one\n{line}\nshort two\n")
    (hit,) = index.search("y" * 50, k=1)
    assert (hit.id, hit.text == line) == ("2", True)
    assert set(hit.passage.text) == {"y"}


def test_texts_are_stored_as_they_are(built: Callable[..., SearchIndex]) -> None:
    texts = {
        "nul": "before\0after \0",
        "script": "<script>alert(1)</script>",
        "escaped": "a &amp;lt; b &quot;",
        "control": "\x1b[31mred\x1b[0m \x07 bell",
        "quotes": "it's \"quoted\" -- '; DROP TABLE documents; --",
        "edges": "  spaces around\t ",
        "lines": "one\r\ntwo\rthree\n",
        "noncharacter": "\ufffe and \uffff here",
    }
    index = built("x.jsonl", jsonl(*({"id": key, "text": text} for key, text in texts.items())))
    assert {key: index.get(key).text for key in texts} == texts
    for key, text in texts.items():
        assert index.search(text, k=1)[0].text == text, key


def test_corpora_from_memory_take_documents_mappings_and_pairs(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    pairs = documents(30)
    mappings = [{"id": key, "text": text, "row": row} for row, (key, text) in enumerate(pairs)]
    corpora: list[Any] = [pairs, iter(pairs), mappings, (mapping for mapping in mappings)]
    for number, corpus in enumerate(corpora):
        with SearchIndex.build(corpus, tiny_encoder, tmp_path / str(number)) as index:
            assert found(index) == dict(pairs)
            assert index.get("d3").metadata == ({} if number < 2 else {"row": 3})


def test_forty_documents_build_by_default_and_not_in_256_clusters(
    built: Callable[..., SearchIndex], refused: Callable[..., str]
) -> None:
    content = "".join(f"{text}\n" for _, text in documents(40))
    message = refused("forty.txt", content, kind="ivf", options=BuildOptions(clusters=256))
    assert "256" in message
    assert "40" in message
    works = int(message.rsplit(" ", 1)[1])
    for clusters in (works, 40, None):
        index = built(
            f"{clusters}.txt", content, kind="ivf", options=BuildOptions(clusters=clusters)
        )
        assert len(found(index)) == 40
        assert index.info().kind == "ivf"
    assert len(found(built("default.txt", content))) == 40


def test_warnings_come_once_a_run(
    built: Callable[..., SearchIndex], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lines = "".join(f"{text} {'long ' * 40}\n\n" for _, text in documents(500))
    built("x.txt", lines, long="truncate")
    messages = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(messages) == 2
    assert any("500 of 500 texts were truncated" in message for message in messages)
    assert any("500 blank" in message for message in messages)
