import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from sbertkit.data.sts import StsPair, read_sts
from sbertkit.errors import InputError, InputTypeError, MissingFile
from sbertkit.evaluation.sts import evaluate_sts, mean_score


class Report(NamedTuple):
    truncated: tuple[int, ...]


class Encoded(NamedTuple):
    vectors: npt.NDArray[np.float32]
    report: Report


@dataclass
class AngleEncoder:
    """A sentence "... 30" has the vector of length 2 at 30 degrees; "cut" texts are truncated."""

    calls: list[list[str]] = field(default_factory=list)

    def encode_with_report(self, texts: Sequence[str], /) -> Encoded:
        self.calls.append(list(texts))
        angles = [math.radians(float(text.split()[-1])) for text in texts]
        vectors = np.array([[2 * math.cos(a), 2 * math.sin(a)] for a in angles], dtype=np.float32)
        cut = tuple(row for row, text in enumerate(texts) if text.startswith("cut"))
        return Encoded(vectors.reshape(-1, 2), Report(cut))


@dataclass
class FixedEncoder:
    vectors: npt.NDArray[np.float32]

    def encode_with_report(self, texts: Sequence[str], /) -> Encoded:
        return Encoded(self.vectors[: len(texts)], Report(()))


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
    with pytest.raises(InputError, match="split 'dev' was asked of pairs that are read already"):
        evaluate_sts(AngleEncoder(), PAIRS, split="dev")


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((3, 2)), r"expected vectors of shape \(5, dim\)"),
        (np.ones(5), r"expected vectors of shape \(5, dim\)"),
        (np.diag([1, 1, np.nan, np.inf, 1]), "found 2 with NaN or infinity, the first for 'c 60'"),
    ],
)
def test_vectors_of_no_use_are_refused(vectors: npt.NDArray[np.float32], message: str) -> None:
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
