"""Two encoders on one's own texts: scores, the interval, and what is said of it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sbertkit.data.pseudo_pairs import halves
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, MissingFile
from sbertkit.evaluation import EncoderComparison, compare_encoders
from sbertkit.evaluation.diagnosis.scoring import found_ranks
from sbertkit.metrics import Interval

WORDS = ["goat", "kettle", "stove", "roof", "hill", "rain", "song", "cold", "warm", "small"]


def texts(count: int, seed: int = 0) -> list[str]:
    """Made-up texts of eight words, all different."""
    random = np.random.default_rng(seed)
    return [f"{' '.join(random.choice(WORDS, 8))} {number}" for number in range(count)]


def test_ranks_are_of_the_own_document_and_ties_count_half() -> None:
    queries = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    documents = np.array([[2, 0], [1, 1], [0, 3]], np.float32)
    # Cosines: (1, .71, 0), (0, .71, 1), (.71, 1, .71): ranks 1, 2 and 2 with a tie, 2.5.
    np.testing.assert_array_equal(found_ranks(queries, documents), [1, 2, 2.5])


@pytest.fixture(scope="module")
def found(bundled_encoder: Encoder, tiny_encoder: Encoder) -> EncoderComparison:
    return compare_encoders(bundled_encoder, tiny_encoder, demo_corpus(), sample=300)


def test_the_encoder_that_knows_meaning_finds_more_than_random_weights(
    found: EncoderComparison,
) -> None:
    assert found.documents == 27_254
    assert found.texts == 300
    assert found.better is found.first
    interval = found.tests["accuracy"].interval
    assert interval is not None
    assert 0 < interval.low < found.tests["accuracy"].difference < interval.high
    assert found.tests["accuracy"].p_value < 0.01
    for name, test in found.tests.items():
        difference = found.first.scores[name] - found.second.scores[name]
        assert test.difference == pytest.approx(difference)
    assert found.verdict.startswith(f"{found.first.model} finds more: ")
    assert "leaves 0 out" in found.verdict


def test_the_scores_are_those_of_plain_cosines(
    found: EncoderComparison, bundled_encoder: Encoder
) -> None:
    from sbertkit.data.pseudo_pairs import pseudo_pair
    from sbertkit.data.sampling import sample_texts

    drawn = sample_texts(demo_corpus(), 300).texts
    pairs = [pair for text in drawn if (pair := pseudo_pair(text)) is not None]
    assert found.pairs == len(pairs)
    first = bundled_encoder.encode([pair.first for pair in pairs])
    second = bundled_encoder.encode([pair.second for pair in pairs])
    cosines = first.astype(np.float64) @ second.T.astype(np.float64)
    hits = [(matrix.argmax(axis=1) == np.arange(len(pairs))) for matrix in (cosines, cosines.T)]
    assert found.first.scores["accuracy"] == pytest.approx(np.mean(hits), abs=2 / len(pairs))


def test_the_cost_is_beside_it(found: EncoderComparison, tiny_encoder: Encoder) -> None:
    assert found.first.dim == 384
    assert found.second.dim == tiny_encoder.dim
    for one in (found.first, found.second):
        assert one.encoded.texts == 2 * found.pairs
        assert one.texts_per_second == pytest.approx(one.encoded.texts / one.seconds)


def test_an_encoder_is_not_better_than_itself(tiny_encoder: Encoder) -> None:
    found = compare_encoders(tiny_encoder, tiny_encoder, texts(120))
    assert found.better is None
    assert found.first.scores == found.second.scores
    assert found.tests["accuracy"].interval == Interval(0.0, 0.0, 0.95)
    assert found.verdict.startswith("no difference is shown")
    assert found.verdict.endswith("holds 0")


def test_the_verdict_follows_the_interval(found: EncoderComparison) -> None:
    def with_interval(low: float, high: float) -> EncoderComparison:
        test = found.tests["accuracy"]._replace(interval=Interval(low, high, 0.95))
        return replace(found, tests={**found.tests, "accuracy": test})

    assert with_interval(-0.2, -0.1).better is found.second
    assert with_interval(-0.2, -0.1).verdict.startswith(f"{found.second.model} finds more")
    assert "-20.00 to -10.00 points" in with_interval(-0.2, -0.1).verdict
    for low, high in ((-0.1, 0.1), (0.0, 0.1), (-0.1, 0.0)):
        assert with_interval(low, high).better is None


def test_queries_and_documents_have_their_prompts(tiny_bert: Path) -> None:
    plain = Encoder.load(tiny_bert, pooling="mean")
    prompted = Encoder.load(tiny_bert, pooling="mean", prompts={"query": "roof roof roof "})
    found = compare_encoders(plain, prompted, texts(120))
    # Both parts are encoded twice, as queries and as documents.
    assert found.first.encoded.texts == 240
    assert found.second.encoded.texts == 480
    assert found.first.scores != found.second.scores
    pairs = [pair for text in texts(120) if (pair := halves(text)) is not None]
    first, second = zip(*pairs, strict=True)
    ranks = [
        found_ranks(prompted.encode(one, kind="query"), prompted.encode(other))
        for one, other in ((first, second), (second, first))
    ]
    assert found.second.scores["accuracy"] == pytest.approx(np.mean(np.array(ranks) == 1))


def test_the_result_is_strict_json_and_the_same_again(tiny_encoder: Encoder) -> None:
    encoders = (tiny_encoder, tiny_encoder)
    results = [compare_encoders(*encoders, texts(120), seed=3).to_dict() for _ in range(2)]
    for result in results:
        json.dumps(result, allow_nan=False)
        assert result["pairs"] == 120
        assert result["better"] is None
        for side in ("first", "second"):
            for timing in ("seconds", "texts_per_second"):
                assert result[side].pop(timing) >= 0
    assert results[0] == results[1]


def test_too_few_texts_and_other_things_than_encoders_are_refused(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"at least 100 .* found 30"):
        compare_encoders(tiny_encoder, tiny_encoder, texts(30))
    with pytest.raises(InputTypeError, match=r"Encoder\.load"):
        compare_encoders(tiny_encoder, "all-MiniLM-L6-v2", texts(120))  # type: ignore[arg-type]
    with pytest.raises(MissingFile):
        compare_encoders(tiny_encoder, tiny_encoder, tmp_path / "nothing.txt")
