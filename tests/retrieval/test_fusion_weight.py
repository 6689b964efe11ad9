"""The weight of vectors in hybrid search: measured with halves of documents, given and renewed."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sbertkit import BuildOptions, Encoder, Fusion, LexicalOptions, SearchIndex
from sbertkit.errors import InputError, InputTypeError
from sbertkit.lexical.bm25 import Numbers
from sbertkit.retrieval.fusion import BothScores
from sbertkit.retrieval.fusion_weight import WEIGHTS, _cosines, _gains, chosen_weight
from sbertkit.retrieval.hybrid_candidates import Candidates
from sbertkit.retrieval.lexical_hits import LexicalLeg
from sbertkit.retrieval.opening import open_view
from sbertkit.retrieval.results import WeightInfo

WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu") for b in ("ta", "pe", "vi", "du", "so")]
COUNT = 400


def texts(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Documents both halves of which have a number that no other has."""
    drawn = random.Random(seed)
    for number in range(count):
        first, second = (" ".join(drawn.choices(WORDS, k=5)) for _ in range(2))
        yield f"{seed}-{number}", f"{first} {seed}{number:04} {second} {seed}{number:04}"


@pytest.fixture(scope="module")
def folder(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index, to be left as it is."""
    path = tmp_path_factory.mktemp("weight") / "index"
    SearchIndex.build(texts(COUNT), tiny_encoder, path, with_encoder=False).close()
    return path


def weight_of(index: SearchIndex) -> WeightInfo:
    lexical = index.info().lexical
    assert lexical is not None
    return lexical.weight


def gains(**by_weight: float) -> Numbers:
    """Gains of 0.1, but of some weights, such as ``w30``."""
    known = {int(name[1:]): gain for name, gain in by_weight.items()}
    return np.array([known.get(round(100 * weight), 0.1) for weight in WEIGHTS])


def test_the_best_weight_is_moved_towards_the_default() -> None:
    assert chosen_weight(gains(w90=0.4, w30=0.3)) == pytest.approx(0.5 + 0.7 * 0.4)
    assert chosen_weight(gains(w0=0.4)) == pytest.approx(0.5 - 0.7 * 0.5)
    assert chosen_weight(gains(w20=0.4, w60=0.4, w100=0.4)) == pytest.approx(0.5 + 0.7 * 0.1)
    assert chosen_weight(gains()) == 0.5


def test_a_rest_gains_by_its_rank_among_all_documents_but_the_halved_one() -> None:
    scores = BothScores(np.array([0.9, 0.2, 0.7]), np.array([8.0, 5.0, 4.0]))
    candidates = Candidates(np.array([3, 5, 8]), np.array([3, 5, 8]), scores, scores)
    # Without document 3: cosines 0.2, 0.7 and 0.6, BM25 5, 4 and 4.5.
    found = _gains(candidates, 3, (0.6, 4.5))
    for weight, gain in zip(WEIGHTS, found, strict=True):
        dense, lexical = (np.array([0.2, 0.7, 0.6]) + 1) / 1.7, np.array([5, 4, 4.5]) / 5
        fused = weight * dense + (1 - weight) * lexical
        assert gain == pytest.approx(1 / np.log2(2 + (fused > fused[2]).sum()))
    assert set(found.round(3).tolist()) == {1.0, 0.631}


def test_a_text_beside_the_index_scores_as_a_document_of_it(
    folder: Path, tiny_encoder: Encoder
) -> None:
    known = dict(texts(COUNT))
    with SearchIndex.open(folder, tiny_encoder) as index:
        view = open_view(folder)
        leg = LexicalLeg(folder, view)
        for query, name in [("kata lope 00007", "0-7"), ("nuso", "0-9"), ("nowhere", "0-1")]:
            found = {hit.id: hit.score for hit in index.search(query, COUNT, mode="lexical")}
            beside = leg.score_beside(leg.plain([query])[0], known[name])
            assert beside == pytest.approx(found.get(name, 0.0))
            vectors = tiny_encoder.encode([query], kind="query")
            vectors /= np.linalg.norm(vectors)
            (cosine,) = _cosines(tiny_encoder, vectors, [known[name]], view.manifest.long)
            near = {hit.id: hit.score for hit in index.search(query, COUNT, mode="dense")}
            assert cosine == pytest.approx(near[name], abs=1e-6)
        view.close()


def test_the_cosine_of_a_long_text_is_that_of_its_best_passage(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    long = " ".join(random.Random(0).choices(WORDS, k=900))
    with SearchIndex.build([("a", long), ("b", "kata")], tiny_encoder, tmp_path / "i") as index:
        assert index.info().vectors > 2
        near = {hit.id: hit.score for hit in index.search("kata mivi", 2, mode="dense")}
        vectors = tiny_encoder.encode(["kata mivi"], kind="query")
        vectors /= np.linalg.norm(vectors)
        view = open_view(index.path)
        cosines = list(_cosines(tiny_encoder, vectors, [long], view.manifest.long))
        view.close()
    assert cosines == [pytest.approx(near["a"], abs=1e-6)]


def test_a_build_measures_the_weight_and_hybrid_searches_use_it(
    folder: Path, tiny_encoder: Encoder
) -> None:
    with SearchIndex.open(folder, tiny_encoder) as index:
        weight = weight_of(index)
        assert (weight.source, weight.queries) == ("parts of documents", COUNT // 8)
        assert len(weight.gains) == len(WEIGHTS)
        # The number is in both halves and nowhere else.
        assert weight.gains[0] == pytest.approx(1.0)
        assert weight.value == chosen_weight(np.array(weight.gains))
        own = index.search("kata lope", 5, mode="hybrid", explain=True)
        given = index.search("kata lope", 5, mode="hybrid", fusion=Fusion(weight=weight.value))
        assert [hit.score for hit in own] == [hit.score for hit in given]
        assert f"{weight.value:g} of vectors" in str(own[0].plan)
        other = index.search("kata lope", 5, mode="hybrid", fusion=Fusion(weight=1.0))
        assert [hit.score for hit in own] != [hit.score for hit in other]


def test_vectors_that_find_nothing_count_little(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All vectors are drawn at random, whatever the text."""
    generator = np.random.default_rng(0)
    encoded = Encoder.start_run(tiny_encoder)
    drawn = type(encoded).vectors

    def noise(self: object, *args: object, **named: object) -> Iterator[object]:
        for chunk in drawn(self, *args, **named):  # type: ignore[arg-type]
            yield generator.standard_normal(chunk.shape).astype(np.float32)

    monkeypatch.setattr(type(encoded), "vectors", noise)
    with SearchIndex.build(texts(COUNT), tiny_encoder, tmp_path / "index") as index:
        assert weight_of(index).value <= 0.5
        assert weight_of(index).gains[-1] < 0.2


def test_few_or_short_documents_have_the_default(tiny_encoder: Encoder, tmp_path: Path) -> None:
    few = list(texts(100))
    short = [(str(number), WORDS[number % 20]) for number in range(COUNT)]
    for name, corpus in (("few", few), ("short", short)):
        with SearchIndex.build(corpus, tiny_encoder, tmp_path / name) as index:
            assert weight_of(index) == WeightInfo(0.5, "default", 0, (), 0)
            with pytest.raises(InputError, match="too few documents"):
                index.tune(weight="auto")
            assert index.info().generation == 1


def test_a_weight_is_measured_again_when_a_tenth_has_changed(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(texts(COUNT), tiny_encoder, tmp_path / "index") as index:
        first = weight_of(index)
        index.add(texts(30, seed=1))
        assert weight_of(index) == WeightInfo(
            first.value, first.source, first.queries, first.gains, 30
        )
        index.delete([f"0-{number}" for number in range(20)])  # has no encoder to measure with
        assert weight_of(index).changed == 50
        index.add(texts(200, seed=2))
        again = weight_of(index)
        assert (again.changed, again.queries) == (0, (COUNT + 30 - 20 + 200) // 8)


def test_a_weight_that_is_given_stays(tiny_encoder: Encoder, tmp_path: Path) -> None:
    given = WeightInfo(0.3, "given", 0, (), 0)
    options = BuildOptions(weight=0.3)
    with SearchIndex.build(texts(COUNT), tiny_encoder, tmp_path / "i", options=options) as index:
        assert weight_of(index) == given
        index.add(texts(200, seed=1))
        assert (weight_of(index).value, weight_of(index).source) == (0.3, "given")
        index.compact(lexical=LexicalOptions(k1=0.9))
        assert weight_of(index).value == 0.3
        index.tune(weight="auto")
        assert weight_of(index).queries == 600 // 8
        index.tune(weight=1)
        assert weight_of(index) == WeightInfo(1.0, "given", 0, (), 0)
        index.tune(0.9, weight=0.25, kind="flat")
        assert (weight_of(index).value, index.info().recall) == (0.25, 0.9)
        index.compact(lexical=False)
        with pytest.raises(InputError, match="no lexical index"):
            index.tune(weight=0.5)


def test_bad_weights_are_refused(tiny_encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"from 0 \(words\) to 1"):
        BuildOptions(weight=2)
    with pytest.raises(InputError, match="leave weight"):
        SearchIndex.build(
            [("a", "kata")],
            tiny_encoder,
            tmp_path / "i",
            lexical=False,
            options=BuildOptions(weight=0.5),
        )
    with SearchIndex.build([("a", "kata")], tiny_encoder, tmp_path / "i") as index:
        for arguments, said in [
            ({}, "give a recall"),
            ({"kind": "hnsw"}, "kind needs a recall"),
            ({"weight": -0.1}, "from 0"),
        ]:
            with pytest.raises(InputError, match=said):
                index.tune(**arguments)  # type: ignore[arg-type]
        with pytest.raises(InputTypeError, match="must be a number"):
            index.tune(weight="much")
        assert index.info().generation == 1
