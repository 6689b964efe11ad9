"""Postings and BM25 over several segments, against a plain computation from the texts."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from sbertkit.errors import DamagedIndex, InputError, InputTypeError
from sbertkit.lexical import chunks, postings_writer
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.bm25 import Bm25
from sbertkit.lexical.postings_file import PostingsFile
from sbertkit.lexical.postings_writer import write_postings
from sbertkit.lexical.query import parse_query
from sbertkit.lexical.search import LexicalSearch, LexicalSegment

Mask = npt.NDArray[np.bool_]
PLAIN = Analyzer("none")


class Corpus(NamedTuple):
    """Texts of several segments, and which are live."""

    segments: list[list[str]]
    live: list[Mask | None]

    @property
    def texts(self) -> list[str]:
        return [text for segment in self.segments for text in segment]

    @property
    def alive(self) -> list[bool]:
        return [
            one
            for segment, live in zip(self.segments, self.live, strict=True)
            for one in (np.ones(len(segment), np.bool_) if live is None else live).tolist()
        ]

    def search(self, folder: Path, bm25: Bm25 | None = None) -> LexicalSearch:
        segments = []
        for number, (texts, live) in enumerate(zip(self.segments, self.live, strict=True)):
            path = folder / f"{number}.bin"
            write_postings(path, texts, PLAIN)
            segments.append(LexicalSegment(PostingsFile(path, len(texts)), live))
        return LexicalSearch(segments, bm25 or Bm25())


def words(text: str) -> list[str]:
    return [token.term for run in PLAIN.runs(text) for token in PLAIN.words(run).tokens]


def expected_scores(corpus: Corpus, query: str, bm25: Bm25) -> list[float]:
    """BM25 of every document, by the formula."""
    texts = [words(text) for text in corpus.texts]
    alive = [text for text, live in zip(texts, corpus.alive, strict=True) if live]
    mean = sum(map(len, alive)) / len(alive)
    scores = []
    for text in texts:
        score = 0.0
        for term in words(query):
            having = sum(1 for one in alive if term in one)
            frequency = text.count(term)
            idf = math.log(1 + (len(alive) - having + 0.5) / (having + 0.5))
            norm = bm25.k1 * (1 - bm25.b + bm25.b * len(text) / mean)
            if frequency:
                score += idf * frequency * (bm25.k1 + 1) / (frequency + norm)
        scores.append(score)
    return scores


def expected_best(corpus: Corpus, query: str, k: int, bm25: Bm25) -> list[tuple[int, float]]:
    """The best live documents that have a word of the query; equal ones by number."""
    scores = expected_scores(corpus, query, bm25)
    best = [(n, s) for n, s in enumerate(scores) if s > 0 and corpus.alive[n]]
    return sorted(best, key=lambda one: (-round(one[1], 9), one[0]))[:k]


def random_corpus(seed: int, *, sizes: Sequence[int] = (60, 25, 1), deleted: float = 0.0) -> Corpus:
    """Texts of words that are as frequent as in a language."""
    source = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    weights = [1 / (number + 1) for number in range(60)]
    segments = [
        [" ".join(source.choices(vocabulary, weights, k=source.randint(0, 12))) for _ in range(n)]
        for n in sizes
    ]
    live: list[Mask | None] = [
        np.array([source.random() >= deleted for _ in segment]) if deleted else None
        for segment in segments
    ]
    return Corpus(segments, live)


@pytest.mark.parametrize("deleted", [0.0, 0.3])
@pytest.mark.parametrize("bm25", [Bm25(), Bm25(0.9, 0.4), Bm25(0.0, 0.0), Bm25(2.9, 0.97)])
def test_hits_and_scores_are_those_of_the_formula(
    tmp_path: Path, deleted: float, bm25: Bm25
) -> None:
    for seed in range(6):
        corpus = random_corpus(seed, deleted=deleted)
        search = corpus.search(tmp_path, bm25)
        for query in (
            "w0",
            "w0 w1",
            "w3 w40 w41",
            "w0 w1 w2 w3 w20 w30 w59",
            "w5 w5 w7",
            "nothing",
        ):
            for k in (1, 3, 10, 1_000):
                found = search.search(parse_query(query, PLAIN), k)
                best = expected_best(corpus, query, k, bm25)
                assert found.numbers.tolist() == [number for number, _ in best]
                assert found.scores.tolist() == pytest.approx([score for _, score in best])


def test_scores_do_not_depend_on_segments_or_on_deleted_documents(tmp_path: Path) -> None:
    for seed in range(4):
        corpus = random_corpus(seed, deleted=0.4)
        live = [text for text, alive in zip(corpus.texts, corpus.alive, strict=True) if alive]
        (tmp_path / "one").mkdir(exist_ok=True)
        search, fresh = corpus.search(tmp_path), Corpus([live], [None]).search(tmp_path / "one")
        numbers = np.cumsum(corpus.alive) - 1
        for query in ("w0 w1", "w2 w9 w33", " ".join(f"w{n}" for n in range(30))):
            found = search.search(parse_query(query, PLAIN), 7)
            again = fresh.search(parse_query(query, PLAIN), 7)
            assert numbers[found.numbers].tolist() == again.numbers.tolist()
            assert found.scores.tolist() == again.scores.tolist()  # to the last bit


def test_scores_of_given_documents_are_those_of_a_search(tmp_path: Path) -> None:
    corpus = random_corpus(1, deleted=0.2)
    search = corpus.search(tmp_path)
    query = parse_query("w0 w4 w12", PLAIN)
    found = search.search(query, 1_000)
    order = np.random.default_rng(0).permutation(len(found.numbers))
    numbers = found.numbers[order]
    assert search.scores(query, numbers).tolist() == found.scores[order].tolist()
    assert search.scores(parse_query("nothing", PLAIN), numbers).tolist() == [0.0] * len(numbers)
    assert search.scores(query, np.empty(0, np.int64)).tolist() == []


def test_only_allowed_documents_are_found_with_the_scores_of_the_whole_index(
    tmp_path: Path,
) -> None:
    corpus = random_corpus(2, sizes=(300, 100), deleted=0.1)
    search = corpus.search(tmp_path)
    query = parse_query("w0 w1 w2 w30", PLAIN)
    everything = search.search(query, 1_000)
    for share in (0.0, 0.02, 0.5, 1.0):
        allowed = [np.random.default_rng(7).random(n) < share for n in (300, 100)]
        mask = np.concatenate(allowed)
        found = search.search(query, 5, allowed)
        usable = mask[everything.numbers]
        assert found.numbers.tolist() == everything.numbers[usable][:5].tolist()
        assert found.scores.tolist() == everything.scores[usable][:5].tolist()


def test_equal_documents_come_in_the_order_of_the_index(tmp_path: Path) -> None:
    texts = ["common rare", "common", "other"] * 50
    search = Corpus([texts[:80], texts[80:]], [None, None]).search(tmp_path)
    found = search.search(parse_query("common rare", PLAIN), 4)
    assert found.numbers.tolist() == [0, 3, 6, 9]
    found = search.search(parse_query("rare common", PLAIN), 52)
    assert found.numbers.tolist() == [*range(0, 150, 3), 1, 4]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"red car"', [0, 4]),
        ('"car red"', [1]),
        ('"red car" old', [4, 0]),
        ("red -old", [0, 1, 2, 5]),
        ('red -"red car"', [1, 5, 2]),
        ('"red car" -old', [0]),
        ('"red car" "old bus"', []),
        ('"a b a b"', [6]),
        ('"b a b a b"', []),
        ('"foo_bar baz"', [7, 8]),
        ('"foo bar baz"', [7, 8]),
        ("-red", []),
        ('"no such phrase"', []),
    ],
)
def test_phrases_and_exclusions(tmp_path: Path, query: str, expected: list[int]) -> None:
    texts = [
        "a red car stands here",
        "the car red",
        "red, and then a car",
        "old bus",
        "an old red car",
        "red red",
        "a b a b",
        "foo_bar baz",
        "foo bar baz",
    ]
    search = Corpus([texts[:3], texts[3:]], [None, None]).search(tmp_path)
    found = search.search(parse_query(query, PLAIN), 10).numbers.tolist()
    assert sorted(found) == sorted(expected)
    meeting = np.concatenate(
        [
            np.ones(len(segment), np.bool_) if mask is None else mask
            for segment, mask in zip(
                search.segments, search.meeting(parse_query(query, PLAIN)), strict=True
            )
        ]
    )
    assert meeting[expected].all()


def test_a_chinese_phrase_is_found_across_words(tmp_path: Path) -> None:
    chinese = Analyzer("chinese")
    texts = ["我来到北京清华大学", "北京的大学很多", "大学北京"]
    write_postings(tmp_path / "words", texts, chinese)
    search = LexicalSearch([LexicalSegment(PostingsFile(tmp_path / "words", 3), None)], Bm25())
    assert search.search(parse_query('"京清"', chinese), 10).numbers.tolist() == [0]
    assert search.search(parse_query("北京 -清华", chinese), 10).numbers.tolist() in (
        [1, 2],
        [2, 1],
    )


def test_a_file_written_in_chunks_and_blocks_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*random_corpus(3, sizes=(200,)).texts, "", "日本語と中文 mixed", "?"]
    write_postings(tmp_path / "whole", texts, PLAIN)
    whole = PostingsFile(tmp_path / "whole", len(texts))
    monkeypatch.setattr(chunks, "_CHUNK_CHARACTERS", 100)
    monkeypatch.setattr(postings_writer, "_BLOCK_PLACES", 50)
    monkeypatch.setattr(chunks, "_MAX_KNOWN_TOKENS", 10)
    write_postings(tmp_path / "parts", texts, PLAIN)
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    assert whole.lengths.tolist() == [len(words(text)) for text in texts]
    counts = {term: [text.count(term) for text in map(words, texts)] for term in whole.terms()}
    assert list(counts) == sorted(counts, key=str.encode)
    assert set(counts) == {term for text in texts for term in words(text)}
    for term, expected in counts.items():
        postings = whole.postings(term)
        assert postings is not None
        found = Counter(
            dict(zip(postings.rows.tolist(), postings.frequencies.tolist(), strict=True))
        )
        assert [found[number] for number in range(len(texts))] == expected


def test_a_segment_without_any_word_finds_nothing(tmp_path: Path) -> None:
    search = Corpus([["?", ""], ["word"]], [None, None]).search(tmp_path)
    assert search.search(parse_query("word", PLAIN), 3).numbers.tolist() == [2]
    empty = Corpus([["?"]], [None]).search(tmp_path)
    assert empty.search(parse_query("word", PLAIN), 3).numbers.tolist() == []
    assert LexicalSearch([], Bm25()).search(parse_query("word", PLAIN), 3).numbers.tolist() == []


def test_frequencies_and_places_of_any_size_are_kept(tmp_path: Path) -> None:
    texts = ["often " * 70_000 + "last word", "often word"]
    search = Corpus([texts], [None]).search(tmp_path)
    assert search.search(parse_query('"last word"', PLAIN), 3).numbers.tolist() == [0]
    postings = search.segments[0].file.postings("often")
    assert postings is not None
    assert postings.frequencies.tolist() == [70_000, 1]


def test_parameters_out_of_range_are_refused() -> None:
    for k1, b in ((-1, 0.5), (math.nan, 0.5), (1.2, 1.5), (1.2, -0.1), (math.inf, 0.5)):
        with pytest.raises(InputError, match=r"k1|b must"):
            Bm25(k1, b)
    with pytest.raises(InputTypeError, match="k1"):
        Bm25("1.2")  # type: ignore[arg-type]


def test_a_file_that_is_no_file_of_words_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words"
    write_postings(path, ["one two", "two three"], PLAIN)
    whole = path.read_bytes()
    for bad in (b"", b"x", whole[:-8], whole + b"12345678", b"\0" * len(whole), whole[:64]):
        path.write_bytes(bad)
        with pytest.raises(DamagedIndex):
            PostingsFile(path, 2)
    path.write_bytes(whole)
    with pytest.raises(DamagedIndex, match="3 documents"):
        PostingsFile(path, 3)


def test_changed_arrays_are_refused_or_give_documents_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "words"
    write_postings(path, ["one two", "two three", "three four two"], PLAIN)
    whole = path.read_bytes()
    source = random.Random(0)
    refused = answered = 0
    for _ in range(400):
        bad = bytearray(whole)
        for _ in range(source.randint(1, 12)):
            bad[source.randrange(64, len(bad))] = source.choice((0, 1, 127, 255))
        path.write_bytes(bad)
        search = LexicalSearch([LexicalSegment(PostingsFile(path, 3), None)], Bm25())
        for query in ("two three", '"two three"', "four -two"):
            try:
                found = search.search(parse_query(query, PLAIN), 2)
            except DamagedIndex:
                refused += 1
                continue
            answered += 1
            assert len(found.numbers) <= 2
            assert set(found.numbers.tolist()) <= {0, 1, 2}
    assert refused > 0
    assert answered > 0


def test_an_overwritten_file_is_refused(tmp_path: Path) -> None:
    search = Corpus([["one two"]], [None]).search(tmp_path)
    content = (tmp_path / "0.bin").read_bytes()
    (tmp_path / "0.bin").write_bytes(content)
    with pytest.raises(DamagedIndex, match="overwritten"):
        search.search(parse_query("one", PLAIN), 1)
