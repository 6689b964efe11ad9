"""The diagnosis: candidates, their scores, the recommendation and what is saved."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
import torch

from sbertkit.data.sampling import Sample
from sbertkit.encoder import Encoder
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.whitening import FITTERS
from sbertkit.errors import InputError, InputTypeError
from sbertkit.evaluation import Diagnosis, diagnose
from sbertkit.evaluation.diagnosis import Candidate, CandidateScore
from sbertkit.evaluation.diagnosis.candidates import candidates_of, poolings_of
from sbertkit.evaluation.diagnosis.scoring import pair_scores
from sbertkit.evaluation.report.diagnosis import advice, diagnosis_page
from sbertkit.evaluation.report.page import render
from sbertkit.evaluation.text_counts import TextCounts
from sbertkit.metrics import Interval
from sbertkit.metrics.permutation import PairedTest

WORDS = ["goat", "kettle", "stove", "roof", "hill", "rain", "song", "cold", "warm", "small"]


def texts(count: int, seed: int = 0) -> list[str]:
    """Made-up texts of eight words, all different."""
    random = np.random.default_rng(seed)
    return [f"{' '.join(random.choice(WORDS, 8))} {number}" for number in range(count)]


@pytest.fixture(scope="module")
def found(tiny_encoder: Encoder) -> Diagnosis:
    return diagnose(tiny_encoder, texts(240))


# --- scores of pairs


def test_a_text_scores_by_the_ranks_of_its_parts_and_itself() -> None:
    first = np.array([[1, 0], [0.95, 0.05], [0, 1]], np.float32)
    second = np.array([[0.9, 0.2], [1, 0], [0.1, 1]], np.float32)
    # Cosines of rows with columns: (.976, 1, .100), (.986, .999, .152), (.217, 0, .995).
    # First to second: ranks 2, 1, 1; second to first: ranks 2, 2, 1.
    whole = np.array([[0.97, 0.1], [0.97, 0.02], [0, 1]], np.float32)
    # First to texts: (.995, 1, 0), (.999, 1, .053), (.103, .021, 1): own ranks 2, 1, 1.
    # Second to texts: (.993, .980, .217), (.995, 1, 0), (.201, .120, .995): own ranks 1, 1, 1.
    scores = pair_scores(whole, first, second)
    np.testing.assert_allclose(scores, [(1 / 2 / 2 + 1 / 2) / 2, (1 + 1 / 2) / 2, 1.0])


def test_identical_texts_gain_nothing() -> None:
    same = np.ones((9, 4), np.float32)
    np.testing.assert_allclose(pair_scores(same, same, same), 1 / 25)


def test_the_length_of_a_vector_does_not_count() -> None:
    random = np.random.default_rng(1)
    whole, first, second = random.normal(size=(3, 20, 6)).astype(np.float32)
    lengths = random.uniform(0.5, 9, size=(20, 1)).astype(np.float32)
    longer = pair_scores(whole * lengths, first * lengths, second)
    np.testing.assert_allclose(pair_scores(whole, first, second), longer)


def test_zero_vectors_are_nowhere_near() -> None:
    first = np.eye(3, dtype=np.float32)
    first[1] = 0
    others = np.eye(3, dtype=np.float32)
    assert np.isfinite(pair_scores(others, first, others)).all()


# --- what is tried


def test_the_current_pooling_is_tried_first(tiny_encoder: Encoder) -> None:
    poolings = poolings_of(tiny_encoder)
    assert poolings[0] == tiny_encoder.torch.network.pooling
    assert len(set(poolings)) == len(poolings)
    assert {pooling.name for pooling in poolings} >= {"mean", "cls", "max", "eos", "first_last"}
    candidates = candidates_of(tiny_encoder)
    assert candidates[0] == Candidate(poolings[0], None)
    assert len(candidates) == len(poolings) * (1 + len(FITTERS))


def test_a_candidate_has_a_plain_name() -> None:
    assert str(Candidate(Pooling("cls"), None)) == "cls"
    assert str(Candidate(Pooling("mean", (3,)), "whiten")) == "mean of layer 3, whiten"
    assert str(Candidate(Pooling("first_last", (1, 6)), None)) == "mean of layers 1, 6"


# --- the diagnosis


def test_everything_is_tried_and_ranked(found: Diagnosis, tiny_encoder: Encoder) -> None:
    assert len(found.candidates) == len(candidates_of(tiny_encoder))
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert found.best == found.candidates[0]
    assert found.current.candidate == Candidate(tiny_encoder.torch.network.pooling, None)
    assert (found.pairs, found.documents, len(found.texts)) == (240, 240, 240)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_same_seed_gives_the_same_diagnosis(found: Diagnosis, tiny_encoder: Encoder) -> None:
    again = diagnose(tiny_encoder, texts(240))
    assert again.to_dict() == found.to_dict()


def test_a_postprocessor_that_needs_more_texts_is_left_out_with_a_warning(
    tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def whiten(_: object) -> torch.nn.Module:
        raise InputError("the 60 vectors span 59 directions")

    monkeypatch.setitem(FITTERS, "whiten", whiten)
    monkeypatch.setattr(logging.getLogger("sbertkit"), "propagate", True)
    found = diagnose(tiny_encoder, texts(120))
    tried = {one.candidate.postprocessor for one in found.candidates}
    assert tried == {None, *FITTERS} - {"whiten"}
    logged = [record.getMessage() for record in caplog.records]
    assert logged == ["whiten could not be tried everywhere: the 60 vectors span 59 directions"]


def test_the_sample_limits_the_number_of_texts(tiny_encoder: Encoder) -> None:
    found = diagnose(tiny_encoder, texts(300), sample=120)
    assert (len(found.texts), found.documents) == (120, 300)


def scored(name: str, score: float) -> CandidateScore:
    return CandidateScore(Candidate(Pooling(name), None), score, 0.1, 3.0)


def diagnosis(low: float, high: float) -> Diagnosis:
    best, current = scored("cls", 0.6), scored("mean", 0.5)
    gain = PairedTest((low + high) / 2, 0.01, Interval(low, high, 0.95))
    return Diagnosis(("a",), 1, 1, current, best, gain, (best, current), TextCounts(3, 0, 0))


@pytest.mark.parametrize(("low", "taken"), [(0.01, True), (0.0, False), (-0.01, False)])
def test_only_a_significantly_better_candidate_is_recommended(low: float, taken: bool) -> None:
    found = diagnosis(low, 0.1)
    assert found.keeps_current is not taken
    assert found.recommended == (found.best if taken else found.current)
    assert advice(found).startswith("use cls" if taken else "keep mean")


def test_a_postprocessor_is_not_scored_on_the_texts_it_is_fitted_on() -> None:
    """On vectors without any structure full whitening must not look good."""
    from sbertkit.evaluation.diagnosis.diagnose import _Parts, _score

    random = np.random.default_rng(0)
    whole, first, second = random.normal(size=(3, 80, 30)).astype(np.float32)
    outcome = _score(_Parts(whole, first, second), "whiten", random.permutation(80), 0)
    chance = np.mean(1 / np.arange(1, 41)) ** 2
    assert outcome.scores.mean() == pytest.approx(chance, abs=0.06)


def test_the_gain_is_not_measured_on_the_selection_pairs() -> None:
    """Of many candidates that are all alike the best is better by chance alone."""
    from sbertkit.evaluation.diagnosis.diagnose import _conclude, _Outcome

    random = np.random.default_rng(0)
    outcomes = {
        Candidate(Pooling("mean", (layer,)), None): _Outcome(random.random(200), None, None)
        for layer in range(300)
    }
    counts = TextCounts(200, 0, 0)
    found = _conclude(Sample(("a",), 1), outcomes, random.permutation(200), 0, counts)
    scores = [one.score for one in found.candidates]
    assert found.best.score - np.mean(scores) > 0.04
    assert found.keeps_current
    assert abs(found.gain.difference) < 0.12


@pytest.mark.parametrize(
    ("corpus", "reason"),
    [
        (["goats climb the hill"] * 300, "found 1 among 1"),
        ([f"word{number}" for number in range(300)], "found 0 among 300"),
    ],
)
def test_texts_that_cannot_be_split_are_refused(
    tiny_encoder: Encoder, corpus: list[str], reason: str
) -> None:
    with pytest.raises(InputError, match="at least 100 different texts of some words") as refusal:
        diagnose(tiny_encoder, corpus)
    assert reason in str(refusal.value)


def test_something_else_than_an_encoder_is_refused() -> None:
    with pytest.raises(InputTypeError, match="expected an encoder, found str"):
        diagnose("all-MiniLM-L6-v2", texts(100))  # type: ignore[arg-type]


# --- what is written


@pytest.mark.parametrize("step", [None, *FITTERS])
def test_each_step_is_saved_for_plain_sentence_transformers(
    tiny_encoder: Encoder, tmp_path: Path, step: str | None
) -> None:
    from sentence_transformers import SentenceTransformer

    sample = texts(120)
    encoder = Candidate(Pooling("mean", (1,)), step).apply(tiny_encoder, sample)
    assert encoder.normalizes == tiny_encoder.normalizes
    encoder.save(tmp_path / "model")
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(sample[:8])
    np.testing.assert_allclose(encoder.encode(sample[:8]), plain, atol=1e-5)
    np.testing.assert_allclose(
        Encoder.load(tmp_path / "model").encode(sample[:8]), plain, atol=1e-5
    )


def test_the_saved_encoder_gives_what_was_scored(tiny_encoder: Encoder, found: Diagnosis) -> None:
    """The vectors of the grid are those of the encoder that is written."""
    pooling = Pooling("cls", (1,))
    encoder = Candidate(pooling, "center").apply(tiny_encoder, found.texts)
    plain = tiny_encoder.variant(pooling, tiny_encoder.torch.postprocessors_before_normalization)
    step = FITTERS["center"](plain.encode(list(found.texts)))
    with torch.inference_mode():
        expected = step(torch.from_numpy(plain.encode(list(found.texts[:5])))).numpy()
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(list(found.texts[:5])), expected, atol=1e-5)


def test_the_report_shows_the_choice(found: Diagnosis) -> None:
    page = render(diagnosis_page(found, {"model": "<tiny>", "corpus": "a.txt"}))
    assert "&lt;tiny&gt;" in page
    assert "(current)" in page
    assert page.count("<svg") == 2
