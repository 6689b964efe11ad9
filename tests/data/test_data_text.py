"""Blank text, surrogates, and text for messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data import has_surrogates, is_blank, repair_surrogates
from sbertkit.data.text import codec_name, printable
from sbertkit.errors import InputTypeError


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t\r\n",
        "\xa0",
        "\u3000",
        "\u200b",
        "\ufeff",
        "\u2028\u2029",
        "\0",
        "\x1b",
        " \u200d ",
    ],
)
def test_white_space_and_invisible_characters_are_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", "\u200ba", "a\u200b", "\ufffd", "\u0301", " 中 ", "👍"])
def test_text_with_a_visible_character_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\udc4da", "\ufffda"),
        ("\ud83d\udc4d", "👍"),
        ("\ud83d \udc4d", "\ufffd \ufffd"),
        ("\udc4d\ud83d", "\ufffd\ufffd"),
        ("\ud83d👍", "\ufffd👍"),
    ],
)
def test_unpaired_surrogates_become_replacement_characters(text: str, repaired: str) -> None:
    assert has_surrogates(text)
    assert repair_surrogates(text) == repaired


@given(st.text(st.characters()))
def test_repaired_text_can_be_encoded_and_sound_text_is_unchanged(text: str) -> None:
    repaired = repair_surrogates(text)
    assert repaired.encode().decode() == repaired
    assert not has_surrogates(repaired)
    if not has_surrogates(text):
        assert repaired == text


def test_text_for_messages_is_one_short_line() -> None:
    assert printable("a\nb\x1b\u2028\ud800") == "a\\nb\\x1b\\u2028\\ud800"
    assert printable("中文 👍") == "中文 👍"
    assert printable("x" * 100, 10) == "xxxxxxx..."


def test_the_name_of_an_encoding_must_be_a_str() -> None:
    with pytest.raises(InputTypeError, match="encoding must be a str, found int"):
        codec_name(8)  # type: ignore[arg-type]
