"""The guard: what it reads of a space, and which readings in a row stop a run."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sbertkit.data.nli import NLI_LABELS, NliPair
from sbertkit.encoder import Encoder
from sbertkit.metrics import effective_rank, uniformity
from sbertkit.schema import as_record
from sbertkit.training.data_forms import NLI, DataForm, TrainingData
from sbertkit.training.run.guard import Guard, ProbeSet, SpaceSnapshot, wrong_order

pytestmark = pytest.mark.usefixtures("empty_cache")


class AngleEncoder:
    """A text "... 30" has the vector of length 2 at 30 degrees."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts = list(texts)
        angles = [math.radians(float(text.split()[-1])) for text in texts]
        return np.array([[2 * math.cos(a), 2 * math.sin(a)] for a in angles], dtype=np.float32)


def pairs_of(*counts: int) -> list[NliPair]:
    """So many pairs of each label, mixed; the sides are 10, 40 and 90 degrees apart, or so."""
    pairs = [
        NliPair(f"p{label}.{n} {n}", f"h{label}.{n} {n + (10, 40, 90)[label] + n % 3}", label)
        for label, count in enumerate(counts)
        for n in range(count)
    ]
    return [pairs[place] for place in np.random.default_rng(0).permutation(len(pairs))]


def nli(pairs: Sequence[NliPair]) -> TrainingData:
    return TrainingData(NLI, pairs)


def read(pairs: Sequence[NliPair], per_label: int = 100, seed: int = 1) -> SpaceSnapshot:
    found = ProbeSet(nli(pairs), per_label, seed).snapshot(AngleEncoder())  # type: ignore[arg-type]
    assert found is not None
    return found


def drawn(pairs: Sequence[NliPair], per_label: int, seed: int) -> list[str]:
    encoder = AngleEncoder()
    ProbeSet(nli(pairs), per_label, seed).snapshot(encoder)  # type: ignore[arg-type]
    return encoder.texts


# --- what is read


def test_cosines_by_label_are_those_worked_out_by_hand() -> None:
    found = read(pairs_of(20, 17, 16))
    for label, count in enumerate((20, 17, 16)):
        angles = [(10, 40, 90)[label] + n % 3 for n in range(count)]
        cosines = [math.cos(math.radians(angle)) for angle in angles]
        mean = math.fsum(cosines) / count
        variance = math.fsum((cosine - mean) ** 2 for cosine in cosines) / (count - 1)
        name = NLI_LABELS[label]
        assert found.label_cosines[name] == pytest.approx(mean, abs=1e-6)
        assert found.label_errors[name] == pytest.approx(math.sqrt(variance / count), abs=1e-6)


def test_the_space_is_that_of_the_distinct_texts() -> None:
    pairs = [NliPair("a 0", "b 60", 0), NliPair("a 0", "c 90", 2), NliPair("b 60", "a 0", 1)]
    found = read(pairs)
    cosines = [math.cos(math.radians(angle)) for angle in (60, 90, 30)]
    assert found.random_cosine == pytest.approx(sum(cosines) / 3, abs=1e-6)
    vectors = AngleEncoder().encode(["a 0", "b 60", "c 90"])
    assert found.uniformity == pytest.approx(uniformity(vectors), abs=1e-6)
    assert found.effective_rank == pytest.approx(effective_rank(vectors), abs=1e-6)


def test_a_mean_of_few_pairs_has_no_error_and_one_of_none_is_absent() -> None:
    found = read(pairs_of(15, 16, 0))
    assert set(found.label_cosines) == {"entailment", "neutral"}
    assert set(found.label_errors) == {"neutral"}


def test_so_many_pairs_of_each_label_are_drawn() -> None:
    texts = drawn(pairs_of(40, 9, 3), 7, seed=1)
    assert len(texts) == len(set(texts)) == 2 * (7 + 7 + 3)
    for label, count in enumerate((7, 7, 3)):
        assert sum(text.startswith((f"p{label}.", f"h{label}.")) for text in texts) == 2 * count


def test_the_draw_is_that_of_the_seed() -> None:
    pairs = pairs_of(40, 40, 40)
    assert drawn(pairs, 7, seed=1) == drawn(pairs, 7, seed=1)
    assert set(drawn(pairs, 7, seed=1)) != set(drawn(pairs, 7, seed=2))


def test_each_text_is_encoded_once() -> None:
    encoder = AngleEncoder()
    pairs = [NliPair("a 0", f"h{n} {n}", 0) for n in range(5)] + [NliPair("h1 1", "a 0", 2)]
    ProbeSet(nli(pairs), 10, 1).snapshot(encoder)  # type: ignore[arg-type]
    assert sorted(encoder.texts) == ["a 0", *(f"h{n} {n}" for n in range(5))]


def test_vectors_that_are_not_finite_are_no_reading(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    probe = ProbeSet(nli([NliPair("a", "b", 0), NliPair("c", "d", 1)]), 4, 1)
    assert probe.snapshot(encoder) is not None
    with torch.no_grad():
        next(encoder.torch.network.parameters()).fill_(math.nan)
    assert probe.snapshot(encoder) is None


def test_a_reading_of_a_real_encoder_is_that_of_its_vectors(tiny_encoder: Encoder) -> None:
    texts = ["Two bakers argue", "about salt", "x", "a heron"]
    pairs = [NliPair(texts[0], texts[1], 1), NliPair(texts[2], texts[3], 2)]
    found = ProbeSet(nli(pairs), 4, 1).snapshot(tiny_encoder)
    unit = tiny_encoder.encode(texts).astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert found is not None
    assert found.label_cosines == {
        "neutral": pytest.approx(cosines[0, 1]),
        "contradiction": pytest.approx(cosines[2, 3]),
    }
    assert found.random_cosine == pytest.approx(cosines[np.triu_indices(4, 1)].mean())


def test_rows_without_labels_are_read_as_one_group() -> None:
    form = DataForm("some", "pairs", 2)
    rows = [("a 0", "b 60"), ("c 10", "d 40"), ("e 20", "f 30")]
    found = ProbeSet(TrainingData(form, rows), 2, 1).snapshot(AngleEncoder())  # type: ignore[arg-type]
    assert found is not None
    assert (found.label_cosines, found.label_errors) == ({}, {})
    assert found.random_cosine is not None
    assert wrong_order(found, form.labels) is None


def test_of_longer_rows_the_first_two_texts_are_read() -> None:
    encoder = AngleEncoder()
    rows = [("a 0", "b 60", "c 90", 1), ("a 0", "d 40", "e 80", 0)]
    data = TrainingData(DataForm("some", "triplets", 3, labels=("near", "far")), rows)
    found = ProbeSet(data, 5, 1).snapshot(encoder)  # type: ignore[arg-type]
    assert found is not None
    assert sorted(encoder.texts) == ["a 0", "b 60", "d 40"]
    assert found.label_cosines == {
        "near": pytest.approx(math.cos(math.radians(40))),
        "far": pytest.approx(math.cos(math.radians(60))),
    }


def test_a_row_of_the_log_has_every_value_by_name() -> None:
    row = SpaceSnapshot(
        0.1, -2.0, None, {"entailment": 0.8, "neutral": 0.5}, {"neutral": 0.1}
    ).row()
    assert row == {
        "random_cosine": 0.1,
        "uniformity": -2.0,
        "effective_rank": None,
        "entailment": 0.8,
        "neutral": 0.5,
    }


# --- collapse


def reading(
    random_cosine: float | None, *cosines: float, error: float = 0.01, rank: float | None = 12.0
) -> SpaceSnapshot:
    """A reading with the mean cosines of the labels in their order, all with one error."""
    labels = dict(zip(NLI_LABELS, cosines, strict=False))
    return SpaceSnapshot(random_cosine, -1.0, rank, labels, dict.fromkeys(labels, error))


def guard_of(first: float | None, rank: float | None = 60.0) -> Guard:
    """The guard of a run that began with that mean cosine of random pairs."""
    return Guard(reading(first, rank=rank), (NLI_LABELS,))


def stop_at(first: float | None, *later: float | None) -> int | None:
    """At which of the later readings, counted from 1, a run is stopped."""
    guard = guard_of(first)
    for place, cosine in enumerate(later, 1):
        if guard.judge(reading(cosine), check_labels=True) is not None:
            return place
    return None


@pytest.mark.parametrize(
    ("first", "later", "stopped"),
    [
        (0.3, [0.91], None),  # one alone may be chance
        (0.3, [0.91, 0.93], 2),
        (0.3, [0.2, 0.5, 0.91, 0.93], 4),
        (0.3, [0.91, 0.5, 0.91, 0.5, 0.91], None),
        (0.3, [0.91, 0.89, 0.91, 0.92], 4),
        (0.3, [0.5, 0.7, 0.89, 0.9], None),
        (0.3, [0.9, 0.9, 0.9, 0.9], None),
        (0.3, [0.999, 1.0], 2),
        (0.3, [1.0, 1.0], 2),
        (0.3, [0.94, 0.93, 0.92, 0.91], None),  # high but falling
        (0.3, [0.94, 0.93, 0.935, 0.94], 4),
        (-0.1, [0.95, 0.96], 2),
        (0.0, [0.95, 0.96], 2),
        (None, [0.95, 0.96], 2),
        (0.97, [0.97, 0.97, 0.97, 0.97], None),  # as the base was
        (0.97, [0.975, 0.979, 0.979], None),
        (0.97, [0.96, 0.93, 0.8, 0.5], None),
        (0.97, [0.9, 0.95, 0.96, 0.97], None),
        (0.97, [0.995, 0.995], 2),
        (0.97, [0.985, 0.99], 2),
        (0.97, [0.985, 0.97, 0.99, 0.97], None),
        (0.895, [0.904, 0.9049], None),
        (0.895, [0.906, 0.907], 2),
    ],
)
def test_a_run_is_stopped_when_a_space_collapses(
    first: float | None, later: list[float], stopped: int | None
) -> None:
    assert stop_at(first, *later) == stopped


@pytest.mark.parametrize("first", [0.985, 0.991, 0.995, 0.9995])
def test_a_base_whose_texts_are_much_alike_can_collapse_too(first: float) -> None:
    assert stop_at(first, first, first, first) is None
    assert stop_at(first, 1.0, 1.0, 1.0) == 2


@pytest.mark.parametrize(
    ("before", "now", "stopped"),
    [
        (64.0, 36.0, False),  # all cosines rose alike
        (64.0, 16.8, False),
        (64.0, 16.7, True),
        (1.8, 1.02, True),
        (None, 36.0, True),
        (64.0, None, True),
    ],
)
def test_a_space_that_keeps_its_directions_has_not_collapsed(
    before: float | None, now: float | None, stopped: bool
) -> None:
    guard = guard_of(0.5, before)
    verdicts = [
        guard.judge(reading(cosine, rank=now), check_labels=False) for cosine in (0.92, 0.95)
    ]
    assert verdicts[0] is None
    assert (verdicts[1] is not None) == stopped
    assert guard.has_warning == stopped


def test_vectors_of_zeros_are_a_collapse() -> None:
    guard = guard_of(0.3)
    assert guard.judge(reading(None), check_labels=False) is None
    verdict = guard.judge(reading(None), check_labels=False)
    assert verdict is not None
    assert "zero" in verdict
    assert guard.last_cosine == -1.0


def test_vectors_that_are_not_finite_stop_a_run_at_once() -> None:
    guard = guard_of(0.3)
    verdict = guard.judge(None, check_labels=False)
    assert verdict is not None
    assert "no longer finite" in verdict
    assert "learning rate" in verdict


def test_a_verdict_says_what_was_found_and_what_helps_on_one_line() -> None:
    guard = guard_of(0.31)
    guard.judge(reading(0.95), check_labels=False)
    verdict = guard.judge(reading(0.9876), check_labels=False)
    assert verdict is not None
    for words in ("collapse", "0.988", "0.310", "0.9", "rank of 12.0 (60.0)", "learning rate"):
        assert words in verdict
    assert "\n" not in verdict
    without = SpaceSnapshot(0.99, None, None, {}, {})
    assert "rank" not in str(guard.judge(without, check_labels=False))


# --- order of the labels


RIGHT, WRONG = (0.8, 0.6, 0.4), (0.4, 0.6, 0.8)


@pytest.mark.parametrize(
    ("cosines", "wrong"),
    [
        ((0.8, 0.6, 0.4), False),
        ((0.4, 0.6, 0.8), True),
        ((0.6, 0.8, 0.4), True),  # neutral above entailment
        ((0.6, 0.4, 0.8), True),
        ((0.8, 0.4, 0.6), False),  # neutral and contradiction may stand either way
        ((0.5, 0.5, 0.5), False),
        ((0.5, 0.55, 0.55), False),  # 0.05 of 4 * sqrt(2) * 0.01 = 0.0566
        ((0.5, 0.558, 0.5), True),
        ((0.5, 0.5, 0.558), True),
    ],
)
def test_labels_are_in_the_wrong_order_when_that_is_sure(
    cosines: tuple[float, ...], wrong: bool
) -> None:
    found = wrong_order(reading(0.1, *cosines), NLI_LABELS)
    assert (found is not None) == wrong
    if found is not None:
        for words in ("label order", *(f"{cosine:.3f}" for cosine in cosines), "--labels"):
            assert words in found
        assert "\n" not in found


def test_the_bound_is_four_standard_errors_of_the_difference() -> None:
    for gap, wrong in ((0.199, False), (0.201, True)):  # 4 * hypot(0.03, 0.04) = 0.2
        cosines = {"entailment": 0.5, "contradiction": 0.5 + gap}
        errors = {"entailment": 0.03, "contradiction": 0.04}
        found = wrong_order(SpaceSnapshot(0.1, None, None, cosines, errors), NLI_LABELS)
        assert (found is not None) == wrong


@pytest.mark.parametrize("known", [(), ("entailment",), ("neutral", "contradiction")])
def test_labels_of_few_pairs_are_never_judged(known: tuple[str, ...]) -> None:
    cosines = dict(zip(NLI_LABELS, WRONG, strict=True))
    errors = dict.fromkeys(known, 1e-9)
    assert wrong_order(SpaceSnapshot(0.1, None, None, cosines, errors), NLI_LABELS) is None
    few = [NliPair(f"p{n} {n}", f"h{n} {n + (90, 40, 1)[n % 3]}", n % 3) for n in range(45)]
    assert wrong_order(read(few), NLI_LABELS) is None  # 15 each
    more = [NliPair(f"p{n} {n}", f"h{n} {n + (90, 40, 1)[n % 3]}", n % 3) for n in range(48)]
    assert wrong_order(read(more), NLI_LABELS) is not None


def test_the_order_counts_only_once_a_run_has_settled() -> None:
    guard = guard_of(0.3)
    for _ in range(5):
        assert guard.judge(reading(0.3, *WRONG), check_labels=False) is None
    assert guard.judge(reading(0.3, *WRONG), check_labels=True) is None
    assert guard.judge(reading(0.3, *WRONG), check_labels=True) is not None


def test_a_right_order_between_wrong_ones_clears_the_doubt() -> None:
    guard = guard_of(0.3)
    for cosines in (WRONG, RIGHT, WRONG, RIGHT, WRONG):
        assert guard.judge(reading(0.3, *cosines), check_labels=True) is None


def test_two_different_faults_in_a_row_are_not_one_twice() -> None:
    guard = guard_of(0.3)
    assert guard.judge(reading(0.95), check_labels=True) is None
    assert guard.judge(reading(0.3, *WRONG), check_labels=True) is None
    assert guard.judge(reading(0.95, *RIGHT), check_labels=True) is None
    assert "collapse" in str(guard.judge(reading(0.96, *RIGHT), check_labels=True))


def test_a_collapse_is_told_before_an_order() -> None:
    guard = guard_of(0.3)
    guard.judge(reading(0.95, *WRONG), check_labels=True)
    assert str(guard.judge(reading(0.96, *WRONG), check_labels=True)).startswith("collapse")


def test_a_guard_is_suspicious_from_the_first_fault_to_the_next_good_reading() -> None:
    guard = guard_of(0.3)
    seen = [guard.has_warning]
    for cosine in (0.4, 0.93, 0.5, 0.93, 0.94):
        guard.judge(reading(cosine), check_labels=True)
        seen.append(guard.has_warning)
    assert seen == [False, False, True, False, True, True]


# --- state


space = st.sampled_from([0.2, 0.9, 0.91, 0.93, 0.96, 0.99, 1.0, None])
order = st.sampled_from([(), RIGHT, WRONG])


@given(
    first=st.sampled_from([0.1, 0.93, 0.97, None]),
    later=st.lists(st.tuples(space, order, st.booleans()), max_size=8),
)
def test_a_guard_that_was_saved_as_json_judges_as_one_that_was_not(
    first: float | None, later: list[tuple[float | None, tuple[float, ...], bool]]
) -> None:
    kept = Guard(reading(first, *RIGHT), (NLI_LABELS,))
    saved = Guard(reading(first, *RIGHT), (NLI_LABELS,))
    for cosine, cosines, settled in later:
        now = reading(cosine, *cosines)
        state: Any = json.loads(json.dumps(asdict(saved), allow_nan=False))
        saved = as_record(state, Guard, "state")
        assert saved.judge(now, check_labels=settled) == kept.judge(now, check_labels=settled)
        assert saved.has_warning == kept.has_warning
        assert saved == kept
