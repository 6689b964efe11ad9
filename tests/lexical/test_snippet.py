"""The part of a long text around the words of a query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.matcher import Match, Matcher
from sbertkit.lexical.query import parse_query
from sbertkit.lexical.snippet import best_window

SIZE = 100


def window(text: str, query: str, language: str = "english", size: int = SIZE) -> str:
    analyzer = Analyzer(language)
    matches = Matcher(parse_query(query, analyzer), analyzer).find(text)
    return text[slice(*best_window(text, matches, size))]


def test_different_words_count_more_than_many_of_one() -> None:
    text = f"{'herons and a heron ' * 8}{'nothing here ' * 30}a heron eats {'nothing there ' * 30}"
    part = window(text, "herons eat")
    assert "a heron eats" in part
    assert "and" not in part
    assert len(part) <= SIZE
    assert text.split(part)[0].endswith(" ")  # it begins with a word, and ends with one
    assert text.split(part)[1].startswith(" ")


def test_of_equally_many_words_the_most_matches_count_then_the_first() -> None:
    filler = "nothing here " * 20
    text = f"{filler}one heron. {filler}heron, heron, heron. {filler}a heron and herons. {filler}"
    assert "heron, heron, heron." in window(text, "heron")
    assert "one heron." in window(f"{filler}one heron. {filler}two herons. {filler}", "heron")


def test_without_a_match_it_is_the_beginning() -> None:
    text = "nothing here " * 50
    assert window(text, "heron") == text[:SIZE].rsplit(" ", 1)[0]
    assert window("a short text", "heron") == "a short text"
    assert window("", "heron") == ""


def test_matches_at_both_ends_are_within() -> None:
    filler = "nothing here " * 50
    assert window(f"heron {filler}", "heron").startswith("heron nothing")
    assert window(f"{filler}heron", "heron").endswith("here heron")


def test_texts_without_spaces_are_divided_between_characters() -> None:
    part = window(f"{'股市大跌' * 100}中国银行{'股市大跌' * 100}", "银行", "chinese")
    assert "中国银行" in part
    assert len(part) == SIZE
    accents = "e\u0301" * 400
    part = window(f"{accents} heron {accents}", "heron")
    assert "heron" in part
    assert not part.startswith("\u0301")


def test_a_match_longer_than_the_window_fills_it() -> None:
    part = window(f"some words before {'x' * 1_000} and after", "x" * 1_000)
    assert part == "x" * SIZE


@given(st.text(), st.integers(1, 30), st.data())
def test_it_is_never_longer_and_has_the_best_match(
    text: str, size: int, data: st.DataObject
) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    matches = [
        Match(start, end, frozenset("ab"[start % 2]))
        for start, end in zip(places[::2], places[1::2], strict=False)
    ]
    start, end = best_window(text, matches, size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= size
    if matches:
        assert any(start < match.end and match.start < end for match in matches)
    else:
        assert start == 0


@pytest.mark.parametrize("text", ["\x1b[31m" * 100, "\x00" * 500, " " * 500, "\u0301" * 500])
def test_any_long_text_has_a_beginning(text: str) -> None:
    assert len(window(text, "heron")) <= SIZE
