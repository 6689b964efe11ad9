"""The language of filters: what it reads, and how it refuses what it does not."""

import time
import unicodedata

import pytest

from sbertkit import InputError, InputTypeError
from sbertkit.errors import BadFilter
from sbertkit.retrieval.filters import parse_filter
from sbertkit.retrieval.filters.expression import (
    And,
    Compare,
    Contains,
    Expression,
    Field,
    IsNull,
    Not,
    OneOf,
    Or,
    StartsWith,
)

A, B = (Compare(Field(name, at), "=", 1) for name, at in (("a", 0), ("b", 9)))

READ: dict[str, Expression] = {
    'lang = "en"': Compare(Field("lang", 0), "=", "en"),
    "lang != 'en'": Compare(Field("lang", 0), "!=", "en"),
    "year>=2020": Compare(Field("year", 0), ">=", 2020),
    "\n x <= -1.5e3\t": Compare(Field("x", 2), "<=", -1500.0),
    "x < 9007199254740993": Compare(Field("x", 0), "<", 2**53 + 1),
    "open = TRUE": Compare(Field("open", 0), "=", True),
    "x IN ('a', 1, false)": OneOf(Field("x", 0), ("a", 1, False), negated=False),
    "x not in(1)": OneOf(Field("x", 0), (1,), negated=True),
    "tags contains 'x'": Contains(Field("tags", 0), "x"),
    "title Starts With 'The '": StartsWith(Field("title", 0), "The "),
    "x is null": IsNull(Field("x", 0)),
    "x is not null": Not(IsNull(Field("x", 0))),
    "a = 1 or b = 1 and c = 1": Or((A, And((B, Compare(Field("c", 19), "=", 1))))),
    "not a = 1": Not(Compare(Field("a", 4), "=", 1)),
    "not not a = 1": Compare(Field("a", 8), "=", 1),
    "((a = 1))": Compare(Field("a", 2), "=", 1),
    "author.name = 'x'": Compare(Field("author.name", 0), "=", "x"),
    "author . `last name` = 'x'": Compare(Field("author.`last name`", 0), "=", "x"),
    "`author` = 1": Compare(Field("author", 0), "=", 1),
    "`a.b` = 1": Compare(Field("`a.b`", 0), "=", 1),
    "`` = 1": Compare(Field("``", 0), "=", 1),
    "`a``b` = 1": Compare(Field("`a``b`", 0), "=", 1),
    "\ud800 = 1": Compare(Field("`\\ud800`", 0), "=", 1),
    "`not` = 1": Compare(Field("`not`", 0), "=", 1),
    "last-name = 1": Compare(Field("last-name", 0), "=", 1),
    "भाषा = 'हिन्दी'": Compare(Field("भाषा", 0), "=", "हिन्दी"),
    "语言 = '中文'": Compare(Field("语言", 0), "=", "中文"),
    """x = 'it''s "so"'""": Compare(Field("x", 0), "=", """it's "so\""""),
    '''x = "say ""so"" \\"''': Compare(Field("x", 0), "=", 'say "so" \\'),
    "x = 'a\0\n=)'": Compare(Field("x", 0), "=", "a\0\n=)"),
    "x = '\ud800'": Compare(Field("x", 0), "=", "\ud800"),
}


@pytest.mark.parametrize("text", READ)
def test_a_filter_is_read(text: str) -> None:
    assert parse_filter(text) == READ[text]


REFUSED = {
    "": (0, "it is empty; leave it out"),
    " \n": (2, "it is empty"),
    "lang": (4, "expected =, !=, <, <=, >, >=, in, not in, contains, starts with or is, found"),
    "lang =": (6, "expected a value, found the end"),
    "lang = en": (7, "expected a value, found en; a string stands in quotes"),
    "lang = lang2.name": (7, "expected a value, found lang2; a string stands in quotes"),
    "lang = null": (7, "nothing equals null; write FIELD is null"),
    "lang == 'en'": (5, "unexpected ==; write ="),
    "lang <> 'en'": (5, "unexpected <>; write !="),
    "a = 1 && b = 2": (6, "unexpected &; write and"),
    "a = 1 | b = 2": (6, "unexpected |; write or"),
    "!a = 1": (0, "unexpected !; write not"),
    "a = “en”": (4, "unexpected “; write a straight quote"),
    "a like 'x%'": (2, "expected =, !="),
    "a = %x": (4, "unexpected %; there are no wildcards"),
    "a = 'x": (4, "expected a ' that ends this string; one within it is doubled"),
    'a = "x""': (4, 'expected a " that ends this string'),
    "`a = 1": (0, "expected a ` that ends this name of a field"),
    "a = 1 b = 2": (6, "expected and, or, or the end, found b"),
    "a = 1 and": (9, "expected the name of a field, found the end"),
    "and a = 1": (
        0,
        "expected the name of a field, found and; such a name is written in backticks",
    ),
    "1 = a": (0, "expected the name of a field, found 1"),
    "'a' = 1": (0, "expected the name of a field, found 'a'"),
    "a. = 1": (3, "expected a name after ., found ="),
    "a.3d = 1": (2, "expected a name after ., found 3d; such a name is written in backticks"),
    "a = 2020-01-01": (
        4,
        "expected a number, found 2020-01-01; anything else, also a date, stands",
    ),
    "a = 0x1f": (4, "expected a number, found 0x1f"),
    "a = 1.": (4, "expected a number, found 1."),
    "a = 1e999": (4, "a number that is too large"),
    "a = " + "9" * 5_000: (4, "a number of more than 4,000 digits"),
    "a = 1e" + "9" * 5_000: (4, "a number of more than 4,000 digits"),
    "a > true": (4, "true and false have no order"),
    "a starts with 3": (14, "expected a string in quotes, found 3"),
    "a starts 'x'": (9, "expected with, found 'x'"),
    "a not contains 'x'": (6, "expected in after not, found contains; to negate another condition"),
    "a is 3": (5, "expected null or not null, found 3"),
    "a is not 3": (9, "expected null, found 3"),
    "a in 3": (5, "expected (, found 3"),
    "a in ()": (6, "expected a value, found )"),
    "a in (1,)": (8, "expected a value, found )"),
    "a in (1 2)": (8, "expected , or ), found 2"),
    "(a = 1": (6, "expected and, or, or ), found the end"),
    "a = 1)": (5, "expected and, or, or the end, found )"),
    "()": (1, "expected the name of a field, found )"),
    "a = 1\0": (5, r"unexpected \x00"),
    "a = \x1b[31m": (4, r"unexpected \x1b"),
    "a = 1; drop": (5, "unexpected ;"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_mistake_is_refused_with_a_caret_at_its_place(text: str) -> None:
    at, reason = REFUSED[text]
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)
    assert isinstance(caught.value, InputError)
    message, line, caret = str(caught.value).split("\n")
    assert message.startswith(f"filter: {reason}")
    assert len(message) < 200
    assert caret.strip() == "^"
    assert line.isprintable()
    assert len(line) < 100
    if text.isprintable() and len(text) < 60:
        assert line == f"  {text}".rstrip() or not text
        assert caret == f"  {' ' * at}^"


def test_the_caret_is_at_the_place_where_characters_are_wide_or_escaped() -> None:
    for before in ("日本語 = 1 ", "e\u0301 = 1 ", "a = '\x1b\t'  "):
        with pytest.raises(BadFilter) as caught:
            parse_filter(f"{before}; b = 1")
        _, line, caret = str(caught.value).split("\n")
        shown = line[: line.index(";")]
        wide = sum(unicodedata.east_asian_width(char) == "W" for char in shown)
        assert len(caret) - 1 == len(shown) + wide - shown.count("\u0301")


def test_a_long_filter_is_shown_around_the_place() -> None:
    many = " and ".join(f"field{number} = {number}" for number in range(500))
    with pytest.raises(BadFilter) as caught:
        parse_filter(f"{many} and lang = en and {many}")
    _, line, caret = str(caught.value).split("\n")
    assert line.startswith("  ...")
    assert line.endswith("...")
    assert line[caret.index("^") :].startswith("en and")


LARGE = {
    "parentheses": ("(" * 10_000 + "a = 1" + ")" * 10_000, "nested more than 100 deep"),
    "parentheses only": ("(" * 1_000_000, "nested more than 100 deep"),
    "conditions": (" or ".join(["a = 1"] * 100_000), "more than 1,000 conditions"),
    "a string that does not end": ("a = '" + "x" * 1_000_000, "ends this string"),
    "quotes": ("a = " + '"' * 1_000_001, "ends this string"),
    "spaces": (" " * 1_000_000, "it is empty"),
    "digits": ("a = " + "1" * 1_000_000, "digits"),
    "dots": ("a" + ".a" * 500_000, "nested more than 100 deep"),
    "a name": ("a" * 1_000_000, "expected =, !="),
    "signs": ("=" * 1_000_000, "unexpected =="),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_filter_of_a_megabyte_is_refused_in_short(name: str) -> None:
    text, reason = LARGE[name]
    started = time.monotonic()
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)
    assert time.monotonic() - started < 60  # it takes a second; what tries all ways takes hours
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_filter_of_a_megabyte_is_read() -> None:
    values = tuple(range(150_000))
    assert parse_filter(f"a in ({','.join(map(str, values))})") == OneOf(
        Field("a", 0), values, False
    )
    text = "x" * 1_000_000
    assert parse_filter(f"a = '{text}'") == Compare(Field("a", 0), "=", text)
    assert parse_filter("not " * 250_001 + "a = 1") == Not(Compare(Field("a", 1_000_004), "=", 1))
    deep = parse_filter("(" * 100 + "a = 1" + ")" * 100)
    assert deep == Compare(Field("a", 100), "=", 1)


@pytest.mark.parametrize("other", [3, b"a = 1", ["a = 1"], {"a": 1}, True])
def test_what_is_no_text_is_no_filter(other: object) -> None:
    with pytest.raises(InputTypeError, match="a filter must be a str, found"):
        parse_filter(other)  # type: ignore[arg-type]
