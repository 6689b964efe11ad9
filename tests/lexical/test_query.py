"""Queries: words, phrases and exclusions; everything else is data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.query import LexicalQuery, parse_query

ENGLISH = Analyzer("english")


def parsed(text: str, analyzer: Analyzer = ENGLISH) -> tuple[str, list[str], list[str]]:
    """The terms of a query, its phrases and what it leaves out, as text."""
    query = parse_query(text, analyzer)
    phrases, excluded = (
        [" ".join(token.term for token in phrase) for phrase in some]
        for some in (query.phrases, query.excluded)
    )
    return " ".join(query.terms), phrases, excluded


@pytest.mark.parametrize(
    ("text", "terms", "phrases", "excluded"),
    [
        ("red cars", "red car", [], []),
        ('"red cars"', "red car", ["red car"], []),
        ('insurance "red cars" cheap', "insur red car cheap", ["red car"], []),
        ("cars -red", "car", [], ["red"]),
        ('cars -"dark red"', "car", [], ["dark red"]),
        ("-red", "", [], ["red"]),
        ("x86-64", "x86-64 x86 64", [], []),
        ("cars -x86-64", "car", [], ["x86 64"]),
        ('"COVID-19"', "covid-19 covid 19", ["covid 19"], []),
        ('"C++" code', "c++ c code", ["c++ c"], []),
        ('"the who" band', "the who band", ["the who"], []),
        ("state -of-the-art", "state", [], ["of the art"]),
        ("5 - 3", "5 3", [], []),
        ("--flag", "flag", [], []),
        ('12" pipe', "12 pipe", [], []),
        ('a 5" and a 6" pipe', "5 6 pipe", [], []),
        ('"left open', "left open", [], []),
        ('""', "", [], []),
        ('"?!" red', "red", [], []),
        ("-?! red", "red", [], []),
        ("title:red AND (car OR bus)~2 [1 TO 5] ^3 *", "titl red car bus 2 1 5 3", [], []),
        ("red* +car /bus/ \\ red?", "red car bus", [], []),
        ("?!", "", [], []),
        ("\0", "", [], []),
    ],
)
def test_what_a_query_asks_for(
    text: str, terms: str, phrases: list[str], excluded: list[str]
) -> None:
    assert parsed(text) == (terms, phrases, excluded)


def test_stop_words_count_in_phrases_and_where_there_are_no_others() -> None:
    assert parsed("what is the color of a car") == ("color car", [], [])
    assert parsed("to be or not to be") == ("to be or not", [], [])
    assert parsed('"the who" live') == ("the who live", ["the who"], [])
    assert parsed('"by the sea" live') == ("sea live", ["by the sea"], [])
    assert parse_query("to be or not to be", ENGLISH).terms["be"] == 2


def test_a_chinese_phrase_does_not_depend_on_how_a_text_is_divided_into_words() -> None:
    chinese = Analyzer("chinese")
    assert parsed('"北京大学" -清华', chinese) == (
        " ".join(parse_query("北京大学", chinese).terms),
        ["北 京 大 学"],
        ["清 华"],
    )


def test_a_very_long_query_is_read() -> None:
    terms = parse_query("word " * 20_000, ENGLISH).terms
    assert terms == {"word": 20_000}
    assert parse_query('"' * 100_000, ENGLISH) == LexicalQuery("", {})
    assert parse_query("- " * 50_000, ENGLISH) == LexicalQuery("- " * 50_000, {})


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("red  cars", "red  cars"),
        ('big "red cars" -toy', "big red cars"),
        ('-"red cars" of -toy steel', "of steel"),
        ('well-known "!!!"', "well-known !!!"),
        ('a "quote that stays open', 'a "quote that stays open'),
        ("-toy", ""),
    ],
)
def test_what_is_left_out_and_quotation_marks_are_no_plain_words(query: str, text: str) -> None:
    assert parse_query(query, ENGLISH).text == text


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    query = parse_query(text, ENGLISH)
    assert all(count > 0 for count in query.terms.values())
    assert all(query.phrases)
    assert all(query.excluded)
