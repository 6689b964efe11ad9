import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sbertkit.arrays import Vectors
from sbertkit.data.sts import StsPair, StsSet, read_sts
from sbertkit.encoder import Encoded, EncodeReport
from sbertkit.encoder.protocols import Kind, RunLike
from sbertkit.errors import InputError, InputTypeError, MissingFile
from sbertkit.evaluation.sts import evaluate_sts, mean_score

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder


def encoded(vectors: Vectors, truncated: tuple[int, ...] = ()) -> Encoded:
    return Encoded(vectors, EncodeReport(len(vectors), truncated, 0, (), (), 0, 0.0, 0.0))


class FakeEncoder:
    def start_run(self, *, kind: Kind = "document") -> RunLike:
        raise NotImplementedError


@dataclass
class AngleEncoder(FakeEncoder):
    """A sentence "... 30" has the vector of length 2 at 30 degrees; "cut" texts are truncated."""

    calls: list[list[str]] = field(default_factory=list)

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        self.calls.append(list(texts))
        angles = [math.radians(float(text.split()[-1])) for text in texts]
        vectors = np.array([[2 * math.cos(a), 2 * math.sin(a)] for a in angles], dtype=np.float32)
        cut = tuple(row for row, text in enumerate(texts) if text.startswith("cut"))
        return encoded(vectors.reshape(-1, 2), cut)


@dataclass
class FixedEncoder(FakeEncoder):
    vectors: Vectors

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        return encoded(self.vectors[: len(texts)])


# cosines 1, 0.5, 0, -1
PAIRS = [
    StsPair(5.0, "a 0", "b 0"),
    StsPair(3.0, "a 0", "c 60"),
    StsPair(4.0, "c 60", "d 150"),
    StsPair(1.0, "b 0", "cut 180"),
]


def test_spearman_and_pearson_are_those_worked_out_by_hand() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS)
    # gold ranks 4, 2, 3, 1 against 4, 3, 2, 1: 1 - 6 * 2 / (4 * 15)
    assert result.spearman == pytest.approx(0.8)
    # deviations from 3.25 and 0.125: 3.875 / sqrt(8.75 * 2.1875)
    assert result.pearson == pytest.approx(3.875 / math.sqrt(8.75 * 2.1875), abs=1e-6)
    assert result.reason is None
    assert (result.pairs, result.split, result.source) == (4, None, None)


def test_each_distinct_sentence_is_encoded_once() -> None:
    encoder = AngleEncoder()
    result = evaluate_sts(encoder, iter(PAIRS))
    assert encoder.calls == [["a 0", "b 0", "c 60", "d 150", "cut 180"]]
    assert (result.sentences, result.truncated) == (5, 1)


def test_the_mean_cosine_is_that_of_distinct_sentences() -> None:
    result = evaluate_sts(AngleEncoder(), [(1.0, "a 0", "b 90"), (2.0, "a 0", "c 180")])
    assert result.mean_random_cosine == pytest.approx((0 - 1 + 0) / 3, abs=1e-7)


def test_cosines_are_computed_in_float64() -> None:
    # in float32 both cosines round to 1, and the correlation would be undefined
    pairs = [(1.0, "a 0", "b 0.004"), (2.0, "a 0", "c 0.002"), (3.0, "a 0", "d 0.001")]
    assert evaluate_sts(AngleEncoder(), pairs).spearman == pytest.approx(1.0)


def test_the_interval_holds_the_correlation_and_is_the_same_every_time() -> None:
    angles = np.random.default_rng(4).integers(0, 180, 60)
    pairs = [(float(180 - a + (a * 37) % 60), "base 0", f"x {a}") for a in angles]
    result = evaluate_sts(AngleEncoder(), pairs)
    assert result.interval is not None
    assert result.spearman is not None
    assert result.interval.low < result.spearman < result.interval.high
    assert result.interval.level == 0.95
    assert evaluate_sts(AngleEncoder(), pairs) == result


def test_triples_lists_and_numpy_scores_are_pairs_too() -> None:
    triples = [[np.float32(pair.score), pair.first, pair.second] for pair in PAIRS]
    assert evaluate_sts(AngleEncoder(), triples) == evaluate_sts(AngleEncoder(), PAIRS)  # type: ignore[arg-type]


def test_constant_gold_scores_are_undefined_and_null_in_json() -> None:
    pairs = [pair._replace(score=3.0) for pair in PAIRS]
    result = evaluate_sts(AngleEncoder(), pairs)
    assert (result.spearman, result.pearson, result.interval) == (None, None, None)
    assert result.reason == "constant gold scores"
    written = json.dumps(result.to_dict(), allow_nan=False)
    assert json.loads(written)["spearman"] is None


def test_an_encoder_that_maps_everything_to_one_point_is_undefined() -> None:
    pairs = [(float(i), f"a {i * 0}", f"{'b' * i} 0") for i in range(1, 5)]
    result = evaluate_sts(AngleEncoder(), pairs)
    assert (result.spearman, result.reason) == (None, "constant predictions")


def test_one_pair_is_undefined() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS[:1])
    assert (result.spearman, result.reason) == (None, "fewer than 2 pairs")


def test_zero_vectors_have_cosine_zero() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 0], [-1, 0]], dtype=np.float32)
    pairs = [(3.0, "w", "x"), (2.0, "w", "y"), (1.0, "w", "z")]
    result = evaluate_sts(FixedEncoder(vectors), pairs)
    assert result.spearman == pytest.approx(1.0)
    assert result.mean_random_cosine == pytest.approx(-1 / 3)


def test_a_dictionary_of_the_result_is_strict_json() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["spearman"] == result.spearman
    assert set(data["interval"]) == {"low", "high", "level"}
    assert data["truncated"] == 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = [("dev", pair) for pair in PAIRS] + [("test", pair) for pair in PAIRS[:3]]
    path.write_text(
        "split\tscore\tsentence1\tsentence2\n"
        + "".join(f"{split}\t{p.score}\t{p.first}\t{p.second}\n" for split, p in rows),
        encoding="utf-8",
    )
    return path


def test_a_file_is_read_by_its_split(file: Path) -> None:
    dev = evaluate_sts(AngleEncoder(), str(file), split="dev")
    assert (dev.pairs, dev.split, dev.source) == (4, "dev", str(file))
    assert dev.spearman == evaluate_sts(AngleEncoder(), PAIRS).spearman
    test = evaluate_sts(AngleEncoder(), file)
    assert (test.pairs, test.split) == (3, "test")


def test_a_set_that_is_read_already_keeps_its_split_and_source(file: Path) -> None:
    data = read_sts(file, split="dev")
    assert evaluate_sts(AngleEncoder(), data) == evaluate_sts(AngleEncoder(), file, split="dev")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        evaluate_sts(AngleEncoder(), tmp_path / "absent.tsv")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "found none"),
        ([PAIRS[0], (math.nan, "a 0", "b 0")], "pair 2: expected a finite score, found nan"),
        ([(1.0, "a 0", " ")], "pair 1: expected two sentences, found a blank one"),
    ],
)
def test_bad_pairs_are_refused(pairs: list[tuple[float, str, str]], message: str) -> None:
    encoder = AngleEncoder()
    with pytest.raises(InputError, match=message):
        evaluate_sts(encoder, pairs)
    assert encoder.calls == []


@pytest.mark.parametrize(
    "pairs", [[("a 0", "b 0", 3.0)], [("3", "a 0", "b 0")], [(1.0, "a 0")], ["abc"], 7, None]
)
def test_pairs_of_other_types_are_refused(pairs: object) -> None:
    with pytest.raises(InputTypeError, match=r"expected .*\(score, sentence, sentence\)"):
        evaluate_sts(AngleEncoder(), pairs)  # type: ignore[arg-type]


def test_a_split_of_pairs_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match="split 'dev' was given for pairs in memory"):
        evaluate_sts(AngleEncoder(), PAIRS, split="dev")


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((3, 2)), r"expected vectors of shape \(5, dim\)"),
        (np.ones(5), r"expected vectors of shape \(5, dim\)"),
        (np.diag([1, 1, np.nan, np.inf, 1]), "found 2 with NaN or infinity, the first for 'c 60'"),
    ],
)
def test_vectors_of_no_use_are_refused(vectors: Vectors, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_sts(FixedEncoder(vectors), PAIRS)


def test_a_mean_leaves_undefined_sets_out_and_names_them() -> None:
    good = evaluate_sts(AngleEncoder(), PAIRS)
    better = evaluate_sts(AngleEncoder(), PAIRS[:2])
    constant = evaluate_sts(AngleEncoder(), [pair._replace(score=3.0) for pair in PAIRS])
    mean = mean_score({"good": good, "flat": constant, "better": better})
    assert mean.value == pytest.approx((0.8 + 1.0) / 2)
    assert (mean.used, mean.left_out) == (("good", "better"), ("flat",))
    assert mean_score({"flat": constant}) == (None, (), ("flat",))
    assert mean_score({}).value is None


def test_any_object_with_the_method_is_an_encoder() -> None:
    encoder = SimpleNamespace(encode_with_report=AngleEncoder().encode_with_report)
    assert evaluate_sts(encoder, PAIRS).pairs == 4


# --- other similarities, sub-corpora


def test_each_similarity_is_correlated() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS)
    assert list(result.similarities) == ["cosine", "dot", "euclidean", "manhattan"]
    assert result.similarities["cosine"] == (result.spearman, result.pearson)
    # All vectors have length 2: a higher cosine is a higher product and a smaller distance.
    for name in ("dot", "euclidean"):
        assert result.similarities[name].spearman == pytest.approx(result.spearman)
    assert result.similarities["dot"].pearson == pytest.approx(result.pearson)


def test_a_distance_counts_negatively() -> None:
    vectors = np.array([[0, 0], [0, 1], [0, 0], [3, 4], [0, 0], [9, 12]], dtype=np.float32)
    pairs = [(5.0, "a", "b"), (3.0, "c", "d"), (1.0, "e", "f")]
    result = evaluate_sts(FixedEncoder(vectors), pairs)
    for name in ("euclidean", "manhattan"):
        assert result.similarities[name].spearman == 1.0
    # lengths 1, 5, 15 and 1, 7, 21 against 5, 3, 1
    distances = np.array([-1.0, -5.0, -15.0])
    assert result.similarities["euclidean"].pearson == pytest.approx(
        np.corrcoef([5, 3, 1], distances)[0, 1]
    )
    assert result.similarities["manhattan"].pearson == pytest.approx(
        np.corrcoef([5, 3, 1], [-1, -7, -21])[0, 1]
    )
    assert result.similarities["dot"].spearman is None  # all 0


def with_subsets(**subsets: tuple[int, ...]) -> StsSet:
    return StsSet(tuple(PAIRS), None, (), "", subsets)


def test_sub_corpora_are_scored_and_their_mean_weighted_by_pairs() -> None:
    result = evaluate_sts(AngleEncoder(), with_subsets(first=(0, 1, 2), second=(2, 3)))
    # gold 5, 3, 4 against cosines 1, 0.5, 0; then 4, 1 against 0, -1
    assert result.subsets["first"].spearman == pytest.approx(0.5)
    assert result.subsets["second"].spearman == pytest.approx(1.0)
    assert [score.pairs for score in result.subsets.values()] == [3, 2]
    assert result.weighted_mean == pytest.approx((3 * 0.5 + 2 * 1.0) / 5)


def test_an_undefined_sub_corpus_leaves_the_weighted_mean_undefined() -> None:
    result = evaluate_sts(AngleEncoder(), with_subsets(first=(0, 1, 2), lone=(3,)))
    assert result.subsets["lone"] == (1, None, None)
    assert result.weighted_mean is None
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["weighted_mean"] is None


def test_without_sub_corpora_there_is_no_weighted_mean() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS)
    assert (result.subsets, result.weighted_mean) == ({}, None)


def test_the_correlations_are_those_of_sentence_transformers(bundled_encoder: "Encoder") -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    from sbertkit.encoder.resolve import resolve_model

    loaded = SentenceTransformer(str(resolve_model("all-MiniLM-L6-v2")), device="cpu")
    model = SentenceTransformer(modules=list(loaded)[:2], device="cpu")  # lengths differ then
    evaluator = EmbeddingSimilarityEvaluator(
        [pair.first for pair in SENTENCES],
        [pair.second for pair in SENTENCES],
        [pair.score / 5 for pair in SENTENCES],
        similarity_fn_names=["cosine", "dot", "euclidean", "manhattan"],
        show_progress_bar=False,
        write_csv=False,
    )
    theirs = evaluator(model)
    plain = bundled_encoder.variant(bundled_encoder.torch.network.pooling, [])
    ours = evaluate_sts(plain, SENTENCES).similarities
    for name, found in ours.items():
        assert found.spearman == pytest.approx(theirs[f"spearman_{name}"], abs=1e-6), name
        assert found.pearson == pytest.approx(theirs[f"pearson_{name}"], abs=1e-6), name


SENTENCES = [
    StsPair(5.0, "A kettle sings on the stove.", "The kettle is whistling on the cooker."),
    StsPair(4.2, "Two goats climb a hill.", "A pair of goats goes up the hillside."),
    StsPair(3.1, "The train leaves at noon.", "The train arrives at noon."),
    StsPair(2.4, "A man plays the piano.", "A woman plays the violin."),
    StsPair(1.0, "Rain falls on the roof.", "The roof is made of slate."),
    StsPair(0.3, "The baker sells bread.", "A ship unloads in the harbour."),
    StsPair(0.0, "Autumn leaves are red.", "The dentist is on holiday."),
    StsPair(3.6, "She reads a long book.", "She is reading a novel."),
]


def test_a_data_set_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="sbertkit data get stsb"):
        evaluate_sts(AngleEncoder(), "stsb")
    (tmp_path / "sts").mkdir()
    rows = "".join(f"test\t{pair.score}\t{pair.first}\t{pair.second}\n" for pair in PAIRS)
    (tmp_path / "sts" / "stsb.tsv").write_text(f"split\tscore\tsentence1\tsentence2\n{rows}")
    assert evaluate_sts(AngleEncoder(), "stsb").pairs == len(PAIRS)
    with pytest.raises(MissingFile):
        evaluate_sts(AngleEncoder(), "nosuch")


def test_the_values_of_pairs_are_kept_with_a_hash_over_them() -> None:
    result = evaluate_sts(AngleEncoder(), PAIRS)
    found = result.to_dict()["per_pair"]
    assert found["gold"] == [5.0, 3.0, 4.0, 1.0]
    assert found["cosines"] == pytest.approx([1, 0.5, 0, -1])
    again = evaluate_sts(AngleEncoder(), list(PAIRS)).to_dict()["per_pair"]
    assert again["sha256"] == found["sha256"]
    changed = [*PAIRS[:-1], StsPair(1.0, "b 0", "cut 90")]
    assert evaluate_sts(AngleEncoder(), changed).to_dict()["per_pair"]["sha256"] != found["sha256"]
