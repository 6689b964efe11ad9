"""What a run comes to: as JSON and back, read from its folder, and over several runs."""

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbertkit import Quality, TrainConfig, TrainResult
from sbertkit.data.nli import NliPair, NliSet
from sbertkit.errors import InputError, InputTypeError
from sbertkit.metrics import Interval
from sbertkit.training.dev_set import DevScore
from sbertkit.training.nli import nli_recipe
from sbertkit.training.objectives import Contrastive, Softmax
from sbertkit.training.recipe import Recipe
from sbertkit.training.run.guard import SpaceSnapshot
from sbertkit.training.run.lineage import identity_of
from sbertkit.training.sweeps import Spread, spread, train_seeds

SCORE = DevScore(0.5, Interval(0.4, 0.6, 0.95))
READING = SpaceSnapshot(
    0.3, -2.5, 90.0, {"entailment": 0.8, "contradiction": 0.4}, {"entailment": 0.1}
)
BEFORE = Quality.of(SCORE, READING)
AFTER = replace(BEFORE, spearman=0.75, interval=None)
LOG = ({"step": 1, "loss": 1.5}, {"step": 2, "loss": None, "dev_spearman": 0.75})
CONFIG = TrainConfig(max_steps=2, seed=3, precision="fp32")
OBJECTIVE = Softmax(features=("u", "v"))
DATA = NliSet((NliPair("a", "b", 0), NliPair("a", "c", 2)), ())


def record_of(config: TrainConfig = CONFIG) -> dict[str, Any]:
    return {
        "base": "some/base",
        "pooling": "mean",
        "objective": "softmax",
        "data": [],
        "dev": None,
        "settings": {**config.identity(), **OBJECTIVE.options, "precision": "fp32"},
        "steps": 2,
        "before": BEFORE.to_dict(),
        "after": AFTER.to_dict(),
    }


def write(folder: Path, record: Any = None) -> Path:
    """A folder with the two files of a run that tell of it."""
    folder.mkdir(parents=True)
    content = {"format": 1, "lineage": record_of() if record is None else record}
    (folder / "sbertkit.json").write_text(json.dumps(content), encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in LOG)
    (folder / "log.jsonl").write_text(lines, encoding="utf-8")
    return folder


# --- quality


def test_a_quality_has_what_score_and_reading_say() -> None:
    assert Quality(
        spearman=0.5,
        interval=Interval(0.4, 0.6, 0.95),
        random_cosine=0.3,
        uniformity=-2.5,
        effective_rank=90.0,
        label_cosines={"entailment": 0.8, "contradiction": 0.4},
    ) == Quality.of(SCORE, READING)


def test_without_score_and_reading_all_is_undefined() -> None:
    assert Quality.of(None, None) == Quality(None, None, None, None, None, {})
    assert Quality.of(None, READING).random_cosine == 0.3
    assert Quality.of(SCORE, None).spearman == 0.5
    assert Quality.of(DevScore(None, None), None) == Quality.of(None, None)


maybe = st.none() | st.floats(-1, 1)


@given(
    spearman=maybe,
    interval=st.none() | st.builds(Interval, st.floats(-1, 0), st.floats(0, 1), st.just(0.95)),
    values=st.tuples(maybe, maybe, maybe),
    cosines=st.dictionaries(st.sampled_from(["entailment", "neutral"]), st.floats(-1, 1)),
)
def test_a_quality_comes_back_from_strict_json(
    spearman: float | None,
    interval: Interval | None,
    values: tuple[float | None, float | None, float | None],
    cosines: dict[str, float],
) -> None:
    quality = Quality(spearman, interval, *values, cosines)
    content = json.loads(json.dumps(quality.to_dict(), allow_nan=False))
    assert Quality.from_dict(content) == quality


def test_the_dictionary_is_a_copy() -> None:
    content = BEFORE.to_dict()
    content["label_cosines"]["entailment"] = 0
    assert BEFORE.label_cosines["entailment"] == 0.8
    assert content["interval"] == {"low": 0.4, "high": 0.6, "level": 0.95}


# --- result


def test_a_result_is_read_from_its_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "out")
    found = TrainResult.read(folder)
    assert (found.folder, found.steps, found.log) == (folder, 2, LOG)
    assert (found.before, found.after) == (BEFORE, AFTER)
    assert found.record == json.loads(json.dumps(record_of()))


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [(0.5, 0.75, 0.25), (0.75, 0.5, -0.25), (0.5, 0.5, 0.0), (None, 0.5, None), (0.5, None, None)],
)
def test_the_gain_is_that_of_the_dev_score(
    before: float | None, after: float | None, gain: float | None
) -> None:
    first, second = (replace(BEFORE, spearman=score) for score in (before, after))
    assert TrainResult(Path("x"), 1, first, second, (), {}).gain == gain


def not_a_result(folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        TrainResult.read(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["sbertkit.json", "log.jsonl"])
def test_a_file_that_is_missing_or_cut_is_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "out") / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    not_a_result(path.parent)
    path.write_bytes(b"\xff" + whole)
    not_a_result(path.parent)
    path.unlink()
    not_a_result(path.parent)


@pytest.mark.parametrize(
    "record",
    [
        *([], "text", 3, {}, {"steps": 2}),
        {**record_of(), "before": None},
        {**record_of(), "before": []},
        {**record_of(), "after": {}},
        {**record_of(), "after": {**AFTER.to_dict(), "interval": [1, 2]}},
        {**record_of(), "after": {**AFTER.to_dict(), "interval": {"low": 1}}},
        {"base": "x", "pooling": "mean"},  # a model that was saved and not trained
    ],
)
def test_another_record_is_refused(tmp_path: Path, record: Any) -> None:
    not_a_result(write(tmp_path / "out", record))


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '{"lineage": null}', ""])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path / "out")
    (folder / "sbertkit.json").write_text(content)
    not_a_result(folder)


def test_no_folder_is_refused(tmp_path: Path) -> None:
    not_a_result(tmp_path / "none")


# --- several runs


def results(*scores: float | None) -> dict[int, TrainResult]:
    return {
        seed: TrainResult(Path("x"), 1, BEFORE, replace(AFTER, spearman=score), (), {})
        for seed, score in enumerate(scores)
    }


def spread_of(*scores: float | None) -> Spread:
    return spread(results(*scores), lambda result: result.after.spearman)


def test_the_spread_is_mean_and_sample_deviation() -> None:
    found = spread_of(0.5, 0.6, 0.85)
    assert found.mean == pytest.approx(0.65)
    assert found.deviation == pytest.approx((0.065 / 2) ** 0.5)  # 0.0225 + 0.0025 + 0.04
    assert found.deviation == pytest.approx(statistics.stdev([0.5, 0.6, 0.85]))


def test_one_run_has_no_deviation_and_an_undefined_score_no_mean() -> None:
    assert spread_of(0.5) == (0.5, None)
    assert spread_of(0.5, None) == (None, None)
    assert spread_of() == (None, None)
    assert spread_of(0.5, 0.5) == (0.5, 0.0)


def recipe(base: Path | str = "some/base", **changes: Any) -> Recipe:
    given: dict[str, Any] = {
        "data": DATA,
        "pooling": "mean",
        "objective": OBJECTIVE,
        "dev": None,
        "config": replace(CONFIG, resume=True, device="cpu"),
    }
    return nli_recipe(base, **{**given, **changes})


def finished(base: Path, folder: Path) -> Path:
    """What a run of the recipe leaves, with the identity that it has."""
    identity = identity_of(recipe(base).load())
    settings = identity.pop("settings")
    return write(folder, {**record_of(), "identity": identity, "settings": settings})


@pytest.mark.parametrize("seeds", [[], [1, 1], [2, 1, 2]])
def test_seeds_that_are_none_or_not_distinct_are_refused(tmp_path: Path, seeds: list[int]) -> None:
    with pytest.raises(InputError, match="seeds must be distinct"):
        train_seeds(recipe(), tmp_path / "out", seeds)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, InputError), (1.5, InputTypeError), ("1", InputTypeError)]
)
def test_seeds_that_are_no_seeds_are_refused(
    tmp_path: Path, seed: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="a seed must be"):
        train_seeds(recipe(), tmp_path / "out", [seed])


def test_a_folder_with_something_in_it_is_refused_unless_runs_are_resumed(tmp_path: Path) -> None:
    write(tmp_path / "seed-3")
    with pytest.raises(InputError, match="not empty"):
        train_seeds(recipe(config=CONFIG), tmp_path, [3])


def test_a_finished_run_of_a_series_is_kept(tiny_bert: Path, tmp_path: Path) -> None:
    folder = finished(tiny_bert, tmp_path / "seed-3")
    found = train_seeds(recipe(tiny_bert), tmp_path, [3])
    assert found == {3: TrainResult.read(folder)}


@pytest.mark.parametrize(
    "settings",
    [
        *({"epochs": 2.0}, {"max_steps": 7}, {"batch_size": 8}, {"accumulation": 2}),
        *({"learning_rate": 1e-5}, {"schedule": "cosine"}, {"warmup": 5}, {"weight_decay": 0}),
        *({"max_grad_norm": 0}, {"normalize": True}, {"max_tokens": 9}),
        *({"labels": {0: "neutral"}}, {"precision": "bf16"}),
        *({"checkpoint_steps": 3}, {"guard": False}),
    ],
)
def test_a_finished_run_of_other_settings_is_refused(
    tiny_bert: Path, tmp_path: Path, settings: Any
) -> None:
    finished(tiny_bert, tmp_path / "seed-3")
    config = replace(CONFIG, resume=True, device="cpu", **{"precision": "fp32", **settings})
    with pytest.raises(InputError, match=f"other data or settings: .*{next(iter(settings))}"):
        train_seeds(recipe(tiny_bert, config=config), tmp_path, [3])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"objective": Contrastive()}, 'objective was "softmax", is "contrastive"'),
        ({"objective": Contrastive()}, "temperature was null, is 0.05"),
        ({"objective": Softmax(("u", "v", "product"))}, r'features was \["u", "v"\], is \["u"'),
        ({"objective": Softmax(("u", "product"))}, 'features 2 was "v", is "product"'),
        ({"pooling": "cls"}, 'pooling was "mean", is "cls"'),
        ({"data": NliSet(DATA.pairs[:1], ())}, "data 1.sha256 was"),
    ],
)
def test_a_finished_run_of_another_recipe_is_refused(
    tiny_bert: Path, tmp_path: Path, change: Any, reason: str
) -> None:
    finished(tiny_bert, tmp_path / "seed-3")
    with pytest.raises(InputError, match=reason):
        train_seeds(recipe(tiny_bert, **change), tmp_path, [3])


def test_a_run_under_the_name_of_another_seed_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    finished(tiny_bert, tmp_path / "seed-4")
    with pytest.raises(InputError, match="seed was 3, is 4"):
        train_seeds(recipe(tiny_bert), tmp_path, [4])
