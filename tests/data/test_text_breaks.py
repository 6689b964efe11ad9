"""Where texts may be broken: every expected rank is worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data.text_breaks import Rank, text_breaks


def counted(text: str) -> dict[int, Rank]:
    """The rank that counts at each place."""
    breaks = text_breaks(text)
    pairs = zip(breaks.places.tolist(), breaks.ranks.tolist(), strict=True)
    return {place: Rank(rank) for place, rank in sorted(dict(pairs).items())}


def ranks(text: str) -> dict[str, Rank]:
    """The rank of each break by the last word before it; words of a test are distinct."""
    return {text[:place].split()[-1]: rank for place, rank in counted(text).items()}


def sentences(text: str) -> list[str]:
    """The text in pieces that end with a sentence."""
    places = [place for place, rank in counted(text).items() if rank == Rank.SENTENCE]
    return [
        text[start:end].strip()
        for start, end in zip([0, *places], [*places, len(text)], strict=True)
        if text[start:end].strip()
    ]


@pytest.mark.parametrize(
    "expected",
    [
        ["One two.", "Three four!", 'He said "five."', "Six?", "(Seven.)", "Eight"],
        ["Version 1.5 is out.", "See Fig. 3 of J. R. Smith, e.g. that one.", "Good"],
        ["Wait...", "What?!", "No."],
        ["It costs 3.", "A lot.", "Really"],
        ["«Ça va.»", "Été"],
        ["**Run-in heading.** Its text.", "More"],
    ],
)
def test_a_sentence_ends_before_white_space_that_no_small_letter_follows(
    expected: list[str],
) -> None:
    assert sentences(" ".join(expected)) == expected
    assert sentences("It ended etc. and went on.") == ["It ended etc. and went on."]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("今天天气很好。我们去公园吧！你来吗？", 3),
        ("「行きます。」と言った。次の文｡", 3),
        ("यह एक वाक्य है। यह दूसरा है॥", 2),
        ("هل تأتي؟ نعم۔ حسنا", 3),
        ("Սա է։ Այն", 2),
        ("ይህ ነው። ያ", 2),
        ("នេះ។ នោះ", 2),
        ("ဒါက။ ဟိုဟာ", 2),
    ],
)
def test_sentences_end_in_every_script(text: str, count: int) -> None:
    assert len(sentences(text)) == count


def test_headings_are_the_strongest_breaks_and_stay_with_their_text() -> None:
    found = ranks("intro\n\n# one\n\n## two\ntext\n### three\nmore\n\nSetext\n------\nlast\n")
    assert found == {
        "intro": Rank.HEADING,
        "#": Rank.WORD,
        "one": Rank.LEAD_IN,
        "##": Rank.WORD,
        "two": Rank.LEAD_IN,
        "text": Rank.SUBHEADING,
        "###": Rank.WORD,
        "three": Rank.LEAD_IN,
        "more": Rank.HEADING,
        "Setext": Rank.LEAD_IN,
        "------": Rank.LEAD_IN,
        "last": Rank.WORD,
    }


def test_headings_without_text_may_be_parted() -> None:
    found = ranks("# one\n\n# two\n# three\n## four\n")
    assert (found["one"], found["two"], found["three"]) == (Rank.HEADING, Rank.LINE, Rank.LEAD_IN)


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_what_looks_like_a_heading_in_code_is_none(fence: str) -> None:
    found = ranks(f"before\n\n{fence}sh\n# comment\nrun\n\nagain\n{fence}\nafter")
    assert found == {
        "before": Rank.PARAGRAPH,
        f"{fence}sh": Rank.LEAD_IN,
        "#": Rank.WORD,
        "comment": Rank.ITEM,
        "run": Rank.GAP,
        "again": Rank.LEAD_IN,
        fence: Rank.PARAGRAPH,
    }


def test_lists_and_tables_break_at_their_lines() -> None:
    found = ranks("like so:\n\n- one. One\n- two.\n\n- three\n  cont\n\nnext\n1. c\n2. d")
    assert (found["so:"], found["one."]) == (Rank.LEAD_IN, Rank.SENTENCE)
    assert (found["One"], found["two."], found["cont"]) == (Rank.ITEM, Rank.GAP, Rank.PARAGRAPH)
    assert (found["next"], found["1."], found["c"]) == (Rank.ITEM, Rank.WORD, Rank.ITEM)
    table = ranks("text\n\n| a\n| :-- | ---\n| b\n| c\n\n> quote\n> more")
    assert (table["text"], table["a"], table["---"]) == (Rank.PARAGRAPH, Rank.LEAD_IN, Rank.LEAD_IN)
    assert (table["b"], table["c"], table["quote"]) == (Rank.ITEM, Rank.GAP, Rank.ITEM)


def test_lines_matter_where_no_sentence_is_near() -> None:
    numbers = ranks("1 2\n3 4\n5 6\n7 8\n")
    assert [numbers[line_end] for line_end in "246"] == [Rank.LINE] * 3
    prose = ranks("The first line\ngoes on. The second\nas well, and\nends here. So")
    assert [prose[word] for word in ("line", "second", "and")] == [Rank.WORD] * 3


@pytest.mark.parametrize("gap", ["\n\n", "\r\n\r\n", "\n \t\n", "\f", "\r\r", "\u2029"])
def test_a_blank_line_of_any_kind_ends_a_paragraph(gap: str) -> None:
    assert ranks(f"one{gap}two") == {"one": Rank.PARAGRAPH}
    assert ranks("one\r\ntwo. Two")["one"] == Rank.WORD


def test_clauses_and_words_are_weaker() -> None:
    assert ranks("a, b; c d")["a,"] == Rank.CLAUSE
    assert ranks("a, b; c d")["c"] == Rank.WORD
    assert counted("你好，世界") == {3: Rank.CLAUSE}


@given(st.text(alphabet="a#-=`~ \n\r\t.:。，|>1)*\u2028\f", max_size=200))
def test_breaks_lie_at_the_end_of_content(text: str) -> None:
    found = counted(text)
    assert all(0 <= place <= len(text) for place in found)
    assert all(place == 0 or not text[place - 1].isspace() for place in found)
    assert Rank.NONE not in found.values()


@pytest.mark.parametrize(
    "text",
    [unit * 300_000 + end for unit in (" ", ".", "*", "`", "- ", "\r", '."') for end in ("", "a")]
    + ["a\n" + " " * 300_000, "a." + " " * 300_000 + "b", "a." + '"' * 300_000, "**" * 150_000],
    ids=lambda text: ascii(text[:4] + text[-1]),
)
def test_monotonous_texts_take_no_longer_than_others(text: str) -> None:
    assert len(text_breaks(text).places) <= len(text)
