"""Words of texts: the rules of scripts, and which rule is whose."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.lexical.analysis.words import MAX_TERM, Token
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.languages import LANGUAGES, detect_language


def terms(text: str, language: str = "english") -> list[str]:
    """The terms of a text, in order."""
    analyzer = Analyzer(language)
    return [token.term for run in analyzer.runs(text) for token in analyzer.words(run).tokens]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running shoes, 2 pairs", "run shoe 2 pair"),
        ("don't / stop.", "don t stop"),
        ("foo_bar", "foo_bar foo bar"),
        ("C++ and C#", "c++ c and c# c"),
        ("3.11", "3.11 3 11"),
        ("x86-64", "x86-64 x86 64"),
        ("user@example.com", "user@example.com user exampl com"),
        ("AT&T", "at&t at t"),
        ("well-known", "well known"),  # found by its words, as in any order of writing
        ("end.Next", "end next"),
        ("std::vector", "std vector"),
        ("\0nul\0", "nul"),
        ("?! ... --", ""),
        ("", ""),
    ],
)
def test_words_of_spaced_scripts_are_lower_case_stems(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("naïve", "naive"),
        ("résumé", "resume"),
        ("re\u0301sume\u0301", "resume"),  # decomposed, as some file systems write
        ("Straße", "strasse"),
        ("Ærø", "aero"),
        ("ＦＵＬＬ", "full"),
        ("ﬁne", "fine"),
        ("ёлка", "елка"),
        ("שָׁלוֹם", "שלום"),
        ("كِتَاب", "كتاب"),
    ],
)
def test_accents_and_points_may_be_left_out(written: str, typed: str) -> None:
    assert set(terms(typed)) <= set(terms(written))


def test_the_rules_of_a_language_see_its_accents() -> None:
    assert set(terms("mangée", "french")) & set(terms("manger", "french"))
    assert set(terms("mangee", "french")) <= set(terms("mangée", "french"))


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_has_a_stemmer_that_is_available(language: str) -> None:
    assert terms("running", language)[0].startswith("run")


def test_words_of_other_scripts_have_the_stemmer_of_their_script() -> None:
    assert terms("книги books") == [*terms("книга", "russian"), "book"]
    assert terms("книги books", "none") == ["книги", "books"]
    assert terms("книга books", "russian")[1:] == ["book"]


def test_chinese_has_words_and_single_characters() -> None:
    found = terms("我来到北京清华大学", "chinese")
    assert set("我来到北京清华大学") <= set(found)
    assert {"来到", "北京", "清华", "清华大学", "大学"} <= set(found)
    assert "京清" not in found


def test_japanese_has_characters_and_bigrams() -> None:
    assert terms("行く時") == ["行", "行く", "く", "く時", "時"]
    assert terms("ｶﾞﾗｽ") == ["ガ", "ガラ", "ラ", "ラス", "ス"]  # half width
    assert terms("東京都", "japanese") == ["東", "東京", "京", "京都", "都"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("สวัสดี", "ส สวั วั วัส ส สดี ดี"),  # a character is one with its marks
        ("한국어 문서", "한 한국 국 국어 어 문 문서 서"),
        ("हिन्दी", "हिन्द"),
    ],
)
def test_other_scripts(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


def test_each_run_of_a_mixed_text_has_its_own_rule() -> None:
    assert terms("買いiPhone15と3.11版")[:5] == ["買", "買い", "い", "iphone15", "と"]
    found = terms("用Python3写的爬虫crawlers", "chinese")
    assert {"用", "python3", "爬虫", "crawler"} <= set(found)


def test_tokens_of_a_run_are_in_the_order_of_their_places() -> None:
    words = Analyzer("english").words("foo_bar")
    assert words == (
        (Token("foo_bar", 0, sure=False, width=2), Token("foo", 0), Token("bar", 1)),
        2,
    )
    for run in ("中华人民共和国今天成立了", "行く時", "x86-64-v2"):
        words = Analyzer("english").words(run)
        offsets = [token.offset for token in words.tokens]
        assert offsets == sorted(offsets)
        assert max(offsets) == words.width - 1
        assert max(token.offset + token.width for token in words.tokens) == words.width


@given(st.text())
def test_any_text_has_words_of_some_letters(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM
        term.encode()  # no unpaired surrogate


def test_a_word_longer_than_any_is_found_by_its_beginning() -> None:
    assert terms("x" * 150_000, "none") == ["x" * MAX_TERM]
    assert len(terms("中" * 5_000, "chinese")) >= 5_000


def test_the_language_of_a_sample_is_detected() -> None:
    glosses = Path(__file__).parents[2] / "sbertkit" / "data" / "wordnet" / "glosses.jsonl.gz"
    with gzip.open(glosses, "rt", encoding="utf-8") as lines:
        sample = [json.loads(line)["text"] for line, _ in zip(lines, range(300), strict=False)]
    assert detect_language(sample) == "english"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Der Hund und die Katze sind im Garten"], "german"),
        (["Le chien est dans le jardin avec une balle"], "french"),
        (["Un hombre está tocando la guitarra en el parque"], "spanish"),
        (["Een man speelt gitaar in het park met zijn hond"], "dutch"),
        (["Человек играет на гитаре и поёт в парке"], "russian"),
        (["Ένας άντρας παίζει κιθάρα στο πάρκο και τραγουδά"], "greek"),
        (["男人正在公园里弹吉他"], "chinese"),
        (["男の人が公園でギターを弾いています"], "japanese"),
        (["東京都庁舎", "京都の寺"], "japanese"),
        (["한 남자가 공원에서 기타를 치고 있다"], "korean"),
        (["iPhone 15 手机壳", "红色 T恤 XL 纯棉"], "chinese"),
        (["red shoes", "blue hat"], "english"),
        (["żółw łąka"], "none"),
        ([""], "english"),
        ([], "english"),
    ],
)
def test_languages_are_told_apart(texts: Sequence[str], expected: str) -> None:
    assert detect_language(texts) == expected


@pytest.mark.parametrize("text", ["\U0001f469\u200d\U0001f4bb", "\ufe0f\u20e3", "\u0301", "\u200d"])
def test_joiners_and_marks_without_a_letter_are_no_words(text: str) -> None:
    assert Analyzer("english").runs(text) == []
    assert Analyzer("english").runs(f"cafe\u0301 {text} x") == ["cafe\u0301", "x"]


def test_every_character_of_a_word_has_words_and_places() -> None:
    english = Analyzer("english")
    for number in (*range(0x80, 0xD800), *range(0xE000, 0x30000)):
        for run in english.runs(chr(number)):
            words = english.words(run)
            assert words.tokens, hex(number)
            assert len(english.places(run)) == words.width, hex(number)


@pytest.mark.parametrize("language", ["english", "chinese", "japanese"])
def test_a_sign_that_stands_for_unspaced_characters_is_a_word(language: str) -> None:
    assert terms("㈠、总则 ㊀", language)[0] == "(一)"
    assert "一" in terms("㊀", language)
