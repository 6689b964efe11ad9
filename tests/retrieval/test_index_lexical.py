"""Search by words in an index: through every change, in every folder, without the encoder."""

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import contents, documents, ids_of

from sbertkit import Encoder, Hit, LexicalOptions, SearchIndex
from sbertkit.errors import DamagedIndex, InputError, InputTypeError
from sbertkit.lexical import analyzer

CARS: list[tuple[str, str] | dict[str, Any]] = [
    {"id": "red", "text": "a red car runs", "year": 2001},
    {"id": "blue", "text": "the blue car, foo_bar in C++ 3.11", "year": 2002},
    {"id": "toy", "text": "a red toy car", "year": 2002},
    {"id": "bus", "text": "An old bus drove by", "year": 2003},
    {"id": "zh", "text": "我来到北京清华大学 by train", "year": 2003},
    {"id": "dots", "text": "...!"},
]


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchIndex]:
    path = tmp_path_factory.mktemp("lexical") / "index"
    with SearchIndex.build(CARS, tiny_encoder, path) as built:
        yield built


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


def found(index: SearchIndex, query: str, k: int = 10) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in index.search(query, k, mode="lexical")]


@contextmanager
def fresh(index: SearchIndex, folder: Path) -> Iterator[SearchIndex]:
    """An index built over the documents of another one, in its order."""
    listed = list(index.documents())
    options = LexicalOptions(index.info().lexical.language)  # type: ignore[union-attr]
    with SearchIndex.build(listed, index.encoder, folder, lexical=options) as built:
        yield built


# --- searches


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cars", ["red", "toy", "blue"]),
        ("car -red", ["blue"]),
        ('"red car"', ["red"]),
        ('car -"red car"', ["toy", "blue"]),
        ("foo_bar", ["blue"]),
        ("bar foo", ["blue"]),
        ("C++", ["blue"]),
        ("3.11", ["blue"]),
        ("drove", ["bus"]),
        ("北京", ["zh"]),
        ("北京 trains", ["zh"]),
        ("?!...", []),
        ("nowhere", []),
        ("text:red OR *", ["red", "toy"]),
    ],
)
def test_documents_are_found_by_their_words(
    index: SearchIndex, query: str, expected: list[str]
) -> None:
    hits = index.search(query, mode="lexical")
    assert ids(hits) == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.score > 0 and hit.passage.text == hit.text for hit in hits)
    assert ids(index.search(query, 1, mode="lexical")) == expected[:1]


def test_a_batch_is_one_search_after_the_other(index: SearchIndex) -> None:
    queries = ["car", "北京", "?", "red bus"]
    batch = index.search_batch(queries, 3, mode="lexical")
    assert batch == [index.search(query, 3, mode="lexical") for query in queries]
    assert index.search_batch([], mode="lexical") == []


def test_a_filter_leaves_hits_and_scores_as_they_are(index: SearchIndex) -> None:
    everything = index.search("red car", mode="lexical")
    hits = index.search("red car", mode="lexical", filter="year = 2002")
    assert hits == [hit for hit in everything if hit.metadata["year"] == 2002]
    assert ids(index.search("red car", 1, mode="lexical", filter="year = 2002")) == ["toy"]
    assert index.search("red car", mode="lexical", filter="year = 2003") == []


def test_a_hit_says_how_it_was_found(index: SearchIndex) -> None:
    (hit,) = index.search("drive drove", mode="lexical", explain=True)
    assert hit.plan == "BM25 (k1 1.2, b 0.75) of 2 words among 6 documents"
    assert hit.stages == {"lexical": (hit.score, 1)}
    assert hit.matched == ("drove",)
    assert pickle.loads(pickle.dumps(hit)).matched == hit.matched  # our own
    assert index.search("drove", mode="lexical")[0].matched == ()
    assert index.search("drove", mode="lexical")[0].plan is None


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "query 1 is blank"),
        (" \n", "query 1 is blank"),
        ("\0", "query 1 is blank"),
        ("-red", "query 1 only leaves out words"),
        ('-"red car" -bus', "query 1 only leaves out words"),
    ],
)
def test_queries_that_ask_for_nothing_are_refused(
    index: SearchIndex, query: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        index.search(query, mode="lexical")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        "word " * 20_000,
        "a\0b",
        '"left open',
        '"' * 50,
        "field:value AND NOT (x OR y)~2 ^4 [a TO b] /re/ *?",
        "what is the of",
        "\ud800",
        "北" * 10_000,
    ],
)
def test_any_other_query_is_answered(index: SearchIndex, query: str) -> None:
    assert len(index.search(query, mode="lexical")) <= 6


def test_what_words_cannot_do_is_refused(index: SearchIndex) -> None:
    with pytest.raises(InputError, match="leave hits"):
        index.search("car", mode="lexical", hits="passages")
    with pytest.raises(InputTypeError, match="query 1 is no text"):
        index.search(np.zeros(32), mode="lexical")
    with pytest.raises(InputTypeError, match=r"put a single one in \[\]"):
        index.search_batch("car", mode="lexical")
    with pytest.raises(InputError, match="mode must be one of dense, lexical, hybrid, not 'words'"):
        index.search("car", mode="words")
    with pytest.raises(InputError, match="mode must be one of"):
        SearchIndex.open(index.path, index.encoder, mode="bm25")


# --- languages


def test_every_word_of_two_characters_finds_its_chinese_title(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    source = random.Random(0)
    characters = "天地人山水火木金土日月星风云雨雪春夏秋冬东西南北中国大小上下来去"
    titles = {
        f"t{n}": "".join(source.choices(characters, k=12)) + f"，v{n}.0 release" for n in range(200)
    }
    with SearchIndex.build(list(titles.items()), tiny_encoder, tmp_path / "i") as index:
        assert index.info().lexical.language == "chinese"  # type: ignore[union-attr]
        for title in list(titles.values())[:40]:
            start = source.randrange(10)
            word = title[start : start + 2]
            having = {one for one, text in titles.items() if word in text}
            best = ids(index.search(f'"{word}"', 200, mode="lexical"))
            assert set(best) == having
            assert having <= set(ids(index.search(word, 200, mode="lexical")))
        mixed = ids(index.search(f"{titles['t7'][:4]} releases v7.0", mode="lexical"))
        assert mixed[0] == "t7"


def test_words_of_japanese_titles_find_them(tiny_encoder: Encoder, tmp_path: Path) -> None:
    titles = [
        ("tower", "東京タワーの夜景"),
        ("temple", "京都のお寺を歩く"),
        ("bath", "箱根の温泉ガイド 2024"),
        ("game", "スーパーファミコンで遊ぶ"),
    ]
    with SearchIndex.build(titles, tiny_encoder, tmp_path / "i") as index:
        assert index.info().lexical.language == "japanese"  # type: ignore[union-attr]
        for query, expected in (
            ("夜景", "tower"),
            ("東京", "tower"),
            ("京都", "temple"),
            ("お寺", "temple"),
            ("温泉", "bath"),
            ("ガイド", "bath"),
            ("ﾌｧﾐｺﾝ", "game"),  # half width
            ("2024", "bath"),
        ):
            assert ids(index.search(query, 1, mode="lexical")) == [expected]


def test_a_language_may_be_given(tiny_encoder: Encoder, tmp_path: Path) -> None:
    texts = [("a", "Das Haus"), ("b", "Die Häuser"), ("c", "Ein Hund")]
    path = tmp_path / "i"
    for language, expected in (("german", ["a", "b"]), ("none", ["a"])):
        options = LexicalOptions(language, k1=0.9, b=0.4)
        with SearchIndex.build(texts, tiny_encoder, path, lexical=options) as index:
            assert sorted(ids(index.search("haus", mode="lexical"))) == expected
            lexical = index.info().lexical
            assert lexical is not None
            assert (lexical.language, lexical.k1, lexical.b) == (language, 0.9, 0.4)


@pytest.mark.parametrize("bad", ["klingon", "", "Germn"])
def test_an_unknown_language_is_refused(bad: str) -> None:
    with pytest.raises(InputError, match="language must be one of auto, arabic"):
        LexicalOptions(bad)
    with pytest.raises(InputTypeError, match="language must be a str"):
        LexicalOptions(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["yes", 1, None, {}])
def test_lexical_is_a_choice_or_options(tiny_encoder: Encoder, tmp_path: Path, bad: Any) -> None:
    with pytest.raises(InputTypeError, match="lexical must be True, False or LexicalOptions"):
        SearchIndex.build(CARS, tiny_encoder, tmp_path / "i", lexical=bad)
    assert not (tmp_path / "i").exists()


# --- changes


def sentences(count: int, prefix: str, seed: int = 0) -> list[tuple[str, str]]:
    """Documents of words that many of them share."""
    source = random.Random(f"{prefix}{seed}")
    vocabulary = [word for _, text in documents(30, "vocabulary") for word in text.split()]
    weights = [1 / (number + 1) for number in range(len(vocabulary))]
    return [
        (f"{prefix}{n}", " ".join(source.choices(vocabulary, weights, k=source.randint(3, 14))))
        for n in range(count)
    ]


QUERIES = [text for _, text in sentences(30, "query")]


def test_after_many_changes_hits_and_scores_are_those_of_a_fresh_build(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    first = sentences(1_200, "first")
    with SearchIndex.build(first, tiny_encoder, tmp_path / "i", with_encoder=False) as index:
        for turn in range(10):
            index.add(sentences(30, f"added{turn}-"))
            source = random.Random(turn)
            again = [one for one, _ in source.sample(first, 20)]
            texts = sentences(20, "changed", turn)
            index.upsert([(one, text) for one, (_, text) in zip(again, texts, strict=True)])
        assert index.info().segments > 1
        with fresh(index, tmp_path / "fresh") as built:
            for query in QUERIES:
                assert found(index, query) == found(built, query)  # to the last bit
        index.delete([one for one, _ in first[::9]], missing_ok=True)
        before = [found(index, query) for query in QUERIES]
        with fresh(index, tmp_path / "fresh") as built:
            assert [found(built, query) for query in QUERIES] == before
        index.compact()
        assert [found(index, query) for query in QUERIES] == before
        assert index.verify() == ()


def test_update_tune_and_dump_keep_the_words(tiny_encoder: Encoder, tmp_path: Path) -> None:
    pairs = sentences(300, "a")
    with SearchIndex.build(pairs, tiny_encoder, tmp_path / "i", with_encoder=False) as index:
        before = [found(index, query) for query in QUERIES]
        index.tune(0.9, kind="hnsw")
        assert [found(index, query) for query in QUERIES] == before
        index.update(pairs[:200])
        half = [found(index, query) for query in QUERIES]
        assert {one for hits in half for one, _ in hits} <= ids_of(pairs[:200])
        SearchIndex.dump_at(index.path, tmp_path / "d.parquet")
        with fresh(index, tmp_path / "fresh") as built:
            assert [found(built, query) for query in QUERIES] == half
        assert index.verify() == ()


def test_an_emptied_index_finds_nothing_and_fills_again(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build([("a", "one word")], tiny_encoder, tmp_path / "i") as index:
        index.delete(["a"])
        assert found(index, "word") == []
        index.compact()
        assert found(index, "word") == []
        index.add([("b", "other words")])
        assert [one for one, _ in found(index, "word")] == ["b"]


def test_words_are_made_and_left_out_without_encoding(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "i"
    with SearchIndex.build(CARS, tiny_encoder, path, lexical=False) as index:
        assert index.info().lexical is None
        assert not list(path.rglob("words.bin"))
        with pytest.raises(InputError, match=f"sbertkit compact {path} --lexical"):
            index.search("car", mode="lexical")
        index.add([("more", "another red car")])
        index.delete(["bus"])
        assert not list(path.rglob("words.bin"))
        monkeypatch.setattr(Encoder, "encode_with_report", None)
        index.compact(lexical=LexicalOptions("english", k1=0.5))
        assert set(ids(index.search("cars", mode="lexical"))) == {"red", "toy", "blue", "more"}
        assert index.info().lexical.k1 == 0.5  # type: ignore[union-attr]
        generation = index.info().generation
        index.compact()
        assert index.info().generation == generation
        index.compact(lexical=False)
        assert not list(path.rglob("words.bin"))
        index.compact(lexical=True)
        assert index.info().lexical.k1 == 1.2  # type: ignore[union-attr]
        assert index.verify() == ()


def test_words_are_made_beside_deleted_documents(tiny_encoder: Encoder, tmp_path: Path) -> None:
    pairs = sentences(50, "a")
    with SearchIndex.build(pairs, tiny_encoder, tmp_path / "i", lexical=False) as index:
        index.delete(["a3"])
        index.compact(lexical=True)
        assert "a3" not in ids(index.search(pairs[3][1], 50, mode="lexical"))


def test_words_by_the_rules_of_another_version_are_refused(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SearchIndex.build(CARS, tiny_encoder, tmp_path / "i") as index:
        for module in ("lexical_index", "manifest_entries"):
            monkeypatch.setattr(f"sbertkit.retrieval.{module}.RULES_VERSION", 99)
        with pytest.raises(InputError, match="rules of another version; make it from"):
            index.search("car", mode="lexical")
        index.compact(lexical=True)
        assert found(index, "car")
    assert analyzer.RULES_VERSION < 99


def test_damaged_words_are_repaired_from_the_texts(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "i"
    pairs = sentences(1_100, "a")
    with SearchIndex.build(pairs, tiny_encoder, path, with_encoder=False) as index:
        index.add(sentences(20, "b"))
        index.delete(["a5", "b2"])
        before = [found(index, query) for query in QUERIES]
    for file in path.rglob("words.bin"):
        bad = bytearray(file.read_bytes())
        bad[len(bad) // 2] ^= 4
        file.write_bytes(bad)
    with pytest.raises(DamagedIndex, match=r"words\.bin"):
        SearchIndex.open(path, mode="lexical")
    inodes = {file.stat().st_ino for file in path.rglob("vectors.npy")}
    done = SearchIndex.repair_at(path)
    assert [problem.reason for problem in done.repaired] == ["rebuilt from the stored texts"] * 2
    assert not done.lost
    assert {file.stat().st_ino for file in path.rglob("vectors.npy")} == inodes  # not copied
    with SearchIndex.open(path, mode="lexical") as index:
        assert [found(index, query) for query in QUERIES] == before
        assert index.verify() == ()


# --- an index opened for words alone


def test_words_are_searched_without_model_vectors_or_torch(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "i"
    SearchIndex.build(CARS, tiny_encoder, path, with_encoder=False).close()
    heavy = ("torch", "transformers", "faiss", "onnxruntime", "tokenizers", "scipy", "pandas")
    code = f"""
import sys
from sbertkit import SearchIndex
index = SearchIndex.open({str(path)!r}, mode="lexical")
print([hit.id for hit in index.search("red cars", mode="lexical", filter="year > 2000")])
print([name for name in {(*heavy, "pyarrow", "rjieba")!r} if name in sys.modules])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stderr == ""
    assert ran.stdout == "['red', 'toy', 'blue']\n[]\n"


def test_an_index_for_words_writes_nothing_into_its_folder(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "i"
    SearchIndex.build(CARS, tiny_encoder, path, with_encoder=False).close()
    before = contents(tmp_path)
    for file in (path, *path.rglob("*")):
        file.chmod(0o555 if file.is_dir() else 0o444)
    with SearchIndex.open(path, mode="lexical") as index:
        assert found(index, "red car")
        assert contents(tmp_path) == before


def test_damage_elsewhere_is_no_matter_for_words(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "i"
    SearchIndex.build(CARS, tiny_encoder, path).close()
    (vectors,) = path.rglob("vectors.npy")
    vectors.write_bytes(vectors.read_bytes()[:-1])
    with SearchIndex.open(path, mode="lexical") as index:
        assert found(index, "red car")
        with pytest.raises(DamagedIndex, match=r"vectors\.npy"):
            index.search("red car")
        assert found(index, "red car")


def test_an_index_for_words_loads_the_rest_when_it_is_needed(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "i"
    SearchIndex.build(CARS, tiny_encoder, path).close()
    with SearchIndex.open(path, mode="lexical") as index, SearchIndex.open(path) as other:
        again = pickle.loads(pickle.dumps(index))
        assert found(again, "red car") == found(index, "red car")
        assert (len(index), index.get("bus").text, index.count("year = 2002")) == (
            *(6, "An old bus drove by", 2),
        )
        other.add([("new", "a new red car")])
        assert "new" not in dict(found(index, "car"))
        assert index.refresh()
        assert "new" in dict(found(index, "car"))
        index.delete(["new"])
        assert "new" not in dict(found(index, "car"))
        assert index.search("car", 6, exact=True) == SearchIndex.open(path).search("car", 6)
        index.add([("last", "the last car")])
        assert "last" in dict(found(index, "car"))
        assert index.sample(3)[1].shape == (3, 32)
        assert index.encoder.fingerprint == tiny_encoder.fingerprint
    with SearchIndex.open(path, mode="lexical") as index:
        index.upsert([("last", "the very last bus")])
        assert dict(found(index, "bus")).keys() == {"last", "bus"}
        assert [hit.id for hit in index.search("the very last bus", 1)] == ["last"]


def test_a_reader_keeps_its_words_beside_a_writer(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "i"
    pairs = sentences(400, "a")
    with SearchIndex.build(pairs, tiny_encoder, path, with_encoder=False) as writer:
        reader = SearchIndex.open(path, mode="lexical")
        before = [found(reader, query) for query in QUERIES]
        writer.upsert(sentences(400, "a", seed=1))
        writer.compact(lexical=LexicalOptions("none", k1=2.0))
        assert [found(reader, query) for query in QUERIES] == before
        assert reader.refresh()
        assert [found(reader, query) for query in QUERIES] == [
            found(writer, query) for query in QUERIES
        ]
        reader.close()
        with pytest.raises(InputError, match="closed"):
            reader.search("word", mode="lexical")


NAMES = [
    ("slash", "COVID-19/SARS-CoV-2 overview"),
    ("home", "treating COVID-19 at home"),
    ("hours", "open 10:30-11:00 daily"),
    ("path", "see /logs/file_1.txt now"),
    ("band", "the who live"),
    ("list", "㈠、总则"),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"COVID-19"', {"slash", "home"}),
        ("overview treating -COVID-19", set()),
        ('"10:30"', {"hours"}),
        ('"file_1.txt"', {"path"}),
        ('"the who"', {"band"}),
        ('"the who" band', {"band"}),
        ("㈠", {"list"}),
    ],
)
def test_names_and_phrases_are_found_wherever_they_stand(
    tiny_encoder: Encoder, tmp_path: Path, query: str, expected: set[str]
) -> None:
    with SearchIndex.build(NAMES, tiny_encoder, tmp_path / "i") as built:
        assert set(ids(built.search(query, mode="lexical"))) == expected
        built.matcher(query).find(NAMES[0][1])


def test_a_fusion_of_another_type_is_refused(index: SearchIndex) -> None:
    with pytest.raises(InputTypeError, match=r"fusion must be a Fusion, such as Fusion\('rrf'\)"):
        index.search("car", mode="hybrid", fusion="rrf")  # type: ignore[arg-type]
