"""Settings of a run: what is refused and how, what identifies a run, warm-up and precision."""

import json
import math
from dataclasses import FrozenInstanceError, fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sbertkit import TrainConfig
from sbertkit.errors import InputError, InputTypeError, SbertkitError
from sbertkit.training.config import PRECISIONS, SCHEDULES
from sbertkit.training.run import precision
from sbertkit.training.run.precision import choose_precision
from sbertkit.training.run.setup import warmup_steps

WHOLE = ("batch_size", "accumulation", "max_steps", "max_tokens", "checkpoint_steps", "patience")
OPTIONAL = ("learning_rate", "max_steps", "max_tokens", "checkpoint_steps", "patience")
ABOVE_ZERO = ("epochs", "learning_rate")
FROM_ZERO = ("warmup", "weight_decay", "max_grad_norm")
FLAGS = ("drop_overlap", "guard", "resume", "progress", "trust_remote_code")
HOW_IT_RUNS = {"resume", "progress", "report_to", "device", "trust_remote_code"}


def config(**settings: Any) -> TrainConfig:
    return TrainConfig(**settings)


def refusal(**settings: Any) -> SbertkitError:
    """The one-line refusal, which names the argument."""
    with pytest.raises((InputError, InputTypeError)) as caught:
        config(**settings)
    message = str(caught.value)
    (name,) = settings
    assert name in message
    assert "\n" not in message
    return caught.value


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [0, -1, -(10**30), np.int64(0)])
def test_a_count_below_one_is_refused(name: str, value: Any) -> None:
    assert isinstance(refusal(**{name: value}), InputError)


@pytest.mark.parametrize("name", [*WHOLE, "seed"])
@pytest.mark.parametrize("value", [1.5, 2.0, "2", True, math.nan, [2], np.float32(2), b"2"])
def test_a_count_that_is_no_whole_number_is_a_wrong_type(name: str, value: Any) -> None:
    assert isinstance(refusal(**{name: value}), InputTypeError)


@pytest.mark.parametrize("name", ["batch_size", "accumulation", "seed"])
def test_a_count_that_must_be_there_is_not_none(name: str) -> None:
    assert isinstance(refusal(**{name: None}), InputTypeError)


@pytest.mark.parametrize("name", OPTIONAL)
def test_other_numbers_may_be_none(name: str) -> None:
    assert getattr(config(**{name: None}), name) is None


@pytest.mark.parametrize("seed", [-1, -(2**40), 2**32, 2**64, 10**30])
def test_a_seed_that_some_library_would_not_take_is_refused(seed: int) -> None:
    assert isinstance(refusal(seed=seed), InputError)


@pytest.mark.parametrize("seed", [0, 2**31, 2**32 - 1, np.uint32(2**32 - 1)])
def test_any_other_seed_is_taken(seed: int) -> None:
    assert config(seed=seed).seed == seed


@pytest.mark.parametrize("name", ABOVE_ZERO)
@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1e-9, -3])
def test_a_number_that_is_not_above_zero_is_refused(name: str, value: float) -> None:
    error = refusal(**{name: value})
    assert isinstance(error, InputError)
    assert "above 0" in str(error)


@pytest.mark.parametrize("name", FROM_ZERO)
@pytest.mark.parametrize("value", [-1e-9, -3])
def test_a_number_below_zero_is_refused(name: str, value: float) -> None:
    assert isinstance(refusal(**{name: value}), InputError)


@pytest.mark.parametrize("name", FROM_ZERO)
def test_zero_is_fine_where_it_means_none(name: str) -> None:
    assert getattr(config(**{name: 0}), name) == 0


@pytest.mark.parametrize("name", [*ABOVE_ZERO, *FROM_ZERO])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_is_not_finite_is_refused(name: str, value: float) -> None:
    assert isinstance(refusal(**{name: value}), InputError)


@pytest.mark.parametrize("name", [*ABOVE_ZERO, *FROM_ZERO])
def test_a_whole_number_beyond_all_floats_is_refused(name: str) -> None:
    assert isinstance(refusal(**{name: 10**400}), InputError)


@pytest.mark.parametrize("name", [*ABOVE_ZERO, *FROM_ZERO])
@pytest.mark.parametrize("value", ["0.1", True, [0.1], 1j])
def test_something_else_than_a_number_is_a_wrong_type(name: str, value: Any) -> None:
    assert isinstance(refusal(**{name: value}), InputTypeError)


@pytest.mark.parametrize("name", ["epochs", *FROM_ZERO])
def test_a_number_that_must_be_there_is_not_none(name: str) -> None:
    assert isinstance(refusal(**{name: None}), InputTypeError)


@pytest.mark.parametrize("value", [1.5, 10.000001, 1e300 + 0.5])
def test_a_warm_up_of_part_of_a_step_is_refused(value: float) -> None:
    if value == int(value):  # beyond 2 ** 53 all are whole
        assert config(warmup=value).warmup == value
        return
    assert "share below 1 or a whole number" in str(refusal(warmup=value))


@pytest.mark.parametrize("value", [0, 0.5, 0.999, 1, 1.0, 20, 20.0])
def test_a_warm_up_is_a_share_or_a_count(value: float) -> None:
    assert config(warmup=value).warmup == value


@pytest.mark.parametrize(("name", "choices"), [("schedule", SCHEDULES), ("precision", PRECISIONS)])
@pytest.mark.parametrize("value", ["", "Linear", "fp64", None, 1, ["linear"]])
def test_a_choice_that_is_none_is_refused_with_the_choices(
    name: str, choices: tuple[str, ...], value: Any
) -> None:
    assert ", ".join(choices) in str(refusal(**{name: value}))


@pytest.mark.parametrize(
    "value", [{0: "Neutral?"}, {0: ""}, {0: None}, {0: 1}, {-(2**64): "neutral"}]
)
def test_labels_other_than_the_three_are_refused(value: Any) -> None:
    assert isinstance(refusal(labels=value), InputError)


@pytest.mark.parametrize("value", [{"0": "neutral"}, {1.0: "neutral"}, {True: "neutral"}])
def test_labels_of_something_else_than_whole_numbers_are_a_wrong_type(value: Any) -> None:
    assert isinstance(refusal(labels=value), InputTypeError)


@pytest.mark.parametrize("value", [["neutral"], "0=neutral", 3, ("neutral",)])
def test_labels_that_are_no_mapping_are_a_wrong_type(value: Any) -> None:
    assert isinstance(refusal(labels=value), InputTypeError)


@pytest.mark.parametrize("value", ["wandb", "", 5, None])
def test_trackers_that_are_no_tuple_of_names_are_a_wrong_type(value: Any) -> None:
    assert isinstance(refusal(report_to=value), InputTypeError)


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", "false", 0, 1, None, np.bool_(0)])
def test_a_flag_is_true_or_false(name: str, value: Any) -> None:
    assert isinstance(refusal(**{name: value}), InputTypeError)


@pytest.mark.parametrize("value", ["no", 0, 1, "auto"])
def test_normalize_is_true_false_or_none(value: Any) -> None:
    assert isinstance(refusal(normalize=value), InputTypeError)


def test_the_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        config().seed = 3  # type: ignore[misc]


def test_a_changed_copy_is_checked_too() -> None:
    with pytest.raises(InputError, match="batch_size"):
        replace(config(), batch_size=0)


# --- identity


def as_json(settings: TrainConfig) -> Any:
    return json.loads(json.dumps(settings.identity(), allow_nan=False))


def test_the_identity_is_json_without_what_changes_no_weight() -> None:
    known = as_json(config(labels={0: "neutral", -5: "entailment"}))
    assert set(known) == {field.name for field in fields(TrainConfig)} - HOW_IT_RUNS
    assert known["labels"] == {"0": "neutral", "-5": "entailment"}
    assert known["max_steps"] is None


def test_runs_that_differ_in_how_they_run_have_one_identity() -> None:
    other = config(
        resume=True,
        progress=True,
        report_to=("wandb",),
        device="cuda:1",
        trust_remote_code=True,
    )
    assert other.identity() == config().identity()


@pytest.mark.parametrize(
    "settings",
    [
        *({"epochs": 2.0}, {"max_steps": 7}, {"batch_size": 8}, {"accumulation": 2}),
        *({"learning_rate": 1e-5}, {"schedule": "cosine"}, {"warmup": 5}, {"weight_decay": 0}),
        *({"max_grad_norm": 0}, {"precision": "bf16"}, {"seed": 2}, {"normalize": False}),
        *({"max_tokens": 9}, {"guard": False}),
        *({"labels": {0: "neutral"}}, {"drop_overlap": True}, {"checkpoint_steps": 3}),
        {"patience": 4},
    ],
)
def test_runs_that_differ_in_what_decides_the_weights_have_others(settings: Any) -> None:
    assert as_json(config(**settings)) != as_json(config())


def test_numbers_of_numpy_are_json_too() -> None:
    made = config(
        batch_size=np.int64(8),
        max_steps=np.int32(5),
        seed=np.uint8(3),
        epochs=np.float64(2),
        labels={np.int64(1): "neutral"},
    )
    assert as_json(made) == as_json(
        config(batch_size=8, max_steps=5, seed=3, epochs=2.0, labels={1: "neutral"})
    )


def test_labels_of_any_mapping_are_json_too() -> None:
    labels = MappingProxyType({0: "neutral"})
    assert as_json(config(labels=labels)) == as_json(config(labels={0: "neutral"}))


# --- warm-up


@pytest.mark.parametrize(
    ("warmup", "total", "expected"),
    [
        (0, 100, (0, False)),
        (0.1, 100, (10, False)),
        (0.1, 30, (3, False)),
        (0.25, 7, (1, False)),  # 1.75 steps
        (0.1, 9, (0, False)),
        (0.5, 1, (0, False)),
        (0.99, 10, (9, False)),
        (0.999, 1000, (999, False)),
        (0.9999, 1000, (999, False)),  # the last step is at the full rate
        (1, 100, (1, False)),
        (1.0, 2, (1, False)),
        (20, 100, (20, False)),
        (99, 100, (99, False)),
        (100, 100, (10, True)),
        (1000, 100, (10, True)),
        (1, 1, (0, True)),
        (9, 9, (0, True)),
        (20.0, 19, (1, True)),
    ],
)
def test_steps_of_the_warm_up_worked_out_by_hand(
    warmup: float, total: int, expected: tuple[int, bool]
) -> None:
    assert warmup_steps(warmup, total) == expected


@given(
    st.one_of(st.floats(0, 1, exclude_max=True), st.integers(1, 10**6).map(float)),
    st.integers(1, 10**6),
)
def test_at_least_one_step_is_at_the_full_rate(warmup: float, total: int) -> None:
    steps, shortened = warmup_steps(warmup, total)
    assert 0 <= steps < total
    assert isinstance(steps, int)
    assert shortened == (warmup >= 1 and warmup >= total)
    if warmup < 1:
        assert steps <= warmup * total < steps + 2


# --- precision


@pytest.mark.parametrize("name", PRECISIONS[1:])
@pytest.mark.parametrize("device", ["cpu", "cuda", "mps"])
def test_a_precision_by_name_is_taken_unless_the_device_cannot(name: str, device: str) -> None:
    if name == "fp16" and device != "cuda":
        with pytest.raises(InputError, match=f"needs a CUDA device, found {device}"):
            choose_precision(name, torch.device(device))
        return
    assert choose_precision(name, torch.device(device)) == name


@pytest.mark.parametrize(("computes", "chosen"), [(True, "bf16"), (False, "fp32")])
def test_auto_takes_bf16_only_where_there_are_instructions_for_it(
    monkeypatch: pytest.MonkeyPatch, computes: bool, chosen: str
) -> None:
    monkeypatch.setattr(precision, "_computes_in_bf16", lambda device: computes)
    assert choose_precision("auto", torch.device("cpu")) == chosen


@pytest.mark.parametrize(
    ("capability", "chosen"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_a_gpu_computes_in_bf16_from_ampere_on(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision("auto", torch.device("cuda")) == chosen


def test_auto_knows_this_machine_and_is_careful_elsewhere() -> None:
    assert choose_precision("auto", torch.device("cpu")) in ("fp32", "bf16")
    assert choose_precision("auto", torch.device("mps")) == "fp32"
