"""Where the words of a query are in a text, of every kind of script and length of character."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.lexical.analysis.origins import compatible, lower_case, origins_of
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.languages import LANGUAGES
from sbertkit.lexical.matcher import Matcher
from sbertkit.lexical.query import parse_query


def matcher(query: str, language: str = "english") -> Matcher:
    """What finds the words of a query."""
    analyzer = Analyzer(language)
    return Matcher(parse_query(query, analyzer), analyzer)


def marked(query: str, text: str, language: str = "english") -> str:
    """The text with marks around what is found."""
    parts, end = [], 0
    for match in matcher(query, language).find(text):
        parts += [text[end : match.start], f"«{text[match.start : match.end]}»"]
        end = match.end
    return "".join([*parts, text[end:]])


def plain(text: str) -> str:
    """The text without marks."""
    return text.replace("«", "").replace("»", "")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("herons running", "The «Heron» ran, «HERONS» «run»; a herring does not."),
        ("the heron", "The «heron» and the sea"),  # stop words only where there are no others
        ("the of", "«The» house «of» «the» lake"),
        ("resume", "«Résumé», «re\u0301sume\u0301s» and\u0301 «resume»"),
        ("résumé", "«Résumé» and «resume»"),
        ("strasse", "die «Straße», die Gasse"),
        ("fine", "«ﬁne» and «FINE», ﬁlm"),
        ("full", "«ＦＵＬＬ» half"),
        ("foo", "«foo»_bar and «foo»-bar, food"),
        ("foo_bar", "«foo_bar», «foo» baz, «bar»"),
        ("C++", "«C++» and «c», D++"),
        ("3.11", "«3.11», «3».12"),
        ("x86-64", "an «x86-64» of «64» bits"),
        ("cars -red", "«cars» red"),
        ("title:sea AND lake*", "«title» «sea» and «lake»"),
        ("книги", "много «книг» и книжка"),
        ("?!", "what?!"),
        ("car", "\x1b[31m «car»\x1b[0m a\x00«car»\x07"),
    ],
)
def test_words_are_found_as_they_are_compared(query: str, expected: str) -> None:
    assert marked(query, plain(expected)) == expected


def test_a_phrase_is_found_with_its_stop_words_and_its_words_alone() -> None:
    text = "by the lake, by the sea, the lake by the sea of the seas"
    assert marked('"by the sea"', text) == (
        "by the lake, «by» «the» «sea», the lake «by» «the» «sea» of the «seas»"
    )
    assert marked('"the of"', "of the house, the of") == "«of» «the» house, «the» «of»"
    assert marked('"red-hot iron" cold', "red hot iron; iron; hot cold") == (
        "«red» «hot» «iron»; «iron»; «hot» «cold»"
    )


@pytest.mark.parametrize(
    ("query", "language", "expected"),
    [
        ("中国银行", "chinese", "«中国»的«银行»在«中国银行»里，行动不行"),
        ("行", "chinese", "银«行»的«行»动"),
        ("银行 Python", "chinese", "用«Python»写«银行»，python3"),
        ("東京タワー", "japanese", "«東京»の«タワー»と京都"),
        ("ガラス", "japanese", "«ガラス»と«ｶﾞﾗｽ»と«カ\u3099ラス»"),
        ("東京 tower", "japanese", "«東京»の«Tower»、«Towers»"),
        ("서울", "korean", "«서울»에서 서쪽"),
        ("น้ำ", "none", "«น้ำ»แข็ง"),
        ('"中国银行"', "chinese", "«中国银行»，«中国»人"),
    ],
)
def test_scripts_without_spaces_are_found_by_words_and_neighbors(
    query: str, language: str, expected: str
) -> None:
    assert marked(query, plain(expected), language) == expected


def test_words_are_named_once_as_they_stand() -> None:
    words = matcher("herons run").words("Herons run. herons RUN, heron; runs")
    assert words == ("Herons", "run", "heron", "runs")
    assert matcher("银行", "chinese").words("银行和银行") == ("银行",)
    assert matcher("absent").words("nothing of it") == ()
    assert matcher("-red").words("red") == ()


@given(st.text(), st.text(), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_is_searched_for_any_query(query: str, text: str, language: str) -> None:
    found = matcher(query, language).find(text)
    ends = [0, *(place for match in found for place in (match.start, match.end)), len(text)]
    assert ends == sorted(ends)
    assert all(match.start < match.end and match.terms for match in found)


@given(st.text(min_size=1), st.sampled_from(sorted(LANGUAGES)))
def test_a_text_has_all_words_that_score_it(text: str, language: str) -> None:
    analyzer = Analyzer(language)
    query = parse_query(text.replace('"', " ").replace("-", " "), analyzer)
    found = Matcher(query, analyzer).find(text.replace('"', " ").replace("-", " "))
    assert bool(found) == bool(query.terms)
    assert {term for match in found for term in match.terms} <= set(query.terms)


HARD = st.text(
    st.sampled_from(
        "aéßİﬁｶﾞハ\u3099\u309a\u0301\u0323\u0307가ㅏᄀ\u1161\u11a8中Å½\u0e19\u0e33\u0f73\u0344"
    ),
    min_size=1,
)


@given(HARD | st.text(min_size=1))
def test_every_character_of_a_normal_form_has_its_origin(text: str) -> None:
    for form, normal in (
        (compatible, unicodedata.normalize("NFKC", text)),
        (lower_case, unicodedata.normalize("NFKC", text).casefold()),
    ):
        origins = origins_of(text, form)
        assert len(origins) == len(normal)
        parts = dict.fromkeys(origins)
        assert "".join(text[slice(*span)] for span in parts) == text
        assert "".join(form(text[slice(*span)]) for span in parts) == normal


def test_long_texts_and_queries_take_no_time_that_grows_with_their_square() -> None:
    text = "the heron 中国银行的行动 eats x86-64 " * 4_000
    assert len(matcher("heron 银行").find(text)) == 8_000
    assert matcher(text[:100_000], "chinese").find(text[:100_000])
    assert matcher("a\u0301" * 50_000).find("a" + "\u0301" * 100_000) == []


def test_threads_share_a_matcher() -> None:
    shared = matcher("herons")
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(shared.words, ["a heron", "no bird"] * 200))
    assert found == [("heron",), ()] * 200
