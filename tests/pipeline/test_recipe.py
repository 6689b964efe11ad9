"""Recipes: what each step gives, what is skipped, continued and refused, and what is advised."""

import logging
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from command_line import Run
from training_cases import rows, write_dev, write_nli

from sbertkit import Encoder, InputError, RecipeConfig, RecipeResult, SearchIndex, run_recipe
from sbertkit.metrics import Interval, PairedTest
from sbertkit.pipeline.advice import advice_of, choose_encoder
from sbertkit.pipeline.results import ScoredEncoder
from sbertkit.training.results import TrainResult

pytestmark = pytest.mark.usefixtures("quick")

FAST: dict[str, Any] = {
    "adapt_steps": 2,
    "nli_steps": 2,
    "batch_size": 8,
    "max_tokens": 16,
    "sample": 100,
    "guard": False,
}
NAMES = ("adapted", "trained", "diagnosed", "index", "report.html", "recipe.json")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Texts of two sentences."""
    draw = random.Random(3)
    words = ("cat", "dog", "music", "rain", "field", "child", "city", "food", "man", "woman")

    def sentence() -> str:
        return " ".join(draw.choices(words, k=6)) + "."

    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{sentence()} {sentence()}\n" for _ in range(160)))
    return path


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    """Labeled pairs."""
    return write_nli(tmp_path / "nli.jsonl", rows(12))


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Of each file of the steps, when it was written and what it has."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent != folder
    }


def test_a_recipe_gives_models_an_index_and_a_report(
    base: Path, corpus: Path, nli: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    dev = write_dev(tmp_path / "dev.tsv")
    found = run_recipe(corpus, output, nli=nli, base=base, dev=dev, config=RecipeConfig(**FAST))
    assert {path.name for path in output.iterdir()} - {".lock"} == set(NAMES)
    assert [one.step for one in found.encoders] == ["base", "adapt", "train-nli", "diagnose"]
    first, *others = found.encoders
    assert first.gain is None
    for one in others:
        assert one.gain is not None
        assert one.gain.difference == pytest.approx(one.accuracy - first.accuracy)
        assert one.dev is not None
        assert one.seconds > 0
        Encoder.load(one.model)
    assert others[0].facts["steps"] == others[1].facts["steps"] == 2
    assert set(others[0].facts["held_out"]) == {"before", "after", "texts"}
    for name in ("adapted", "trained"):
        assert TrainResult.read(output / name).record["settings"]["max_tokens"] == 16
    with SearchIndex.open(output / "index") as index:
        assert len(index) == found.index["documents"] == 160
        assert index.info().fingerprint == Encoder.load(found.model).fingerprint
    assert len(found.examples) == 5
    page = found.report.read_text(encoding="utf-8")
    for text in ("train-nli", "diagnose", "own texts", *found.examples):
        assert text in page


def test_steps_whose_inputs_have_not_changed_are_skipped(
    base: Path, corpus: Path, nli: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, config = tmp_path / "out", RecipeConfig(**FAST)

    def again(**more: Any) -> tuple[RecipeResult, set[str]]:
        before = contents(output)
        found = run_recipe(
            corpus, output, nli=nli, base=base, config=RecipeConfig(**{**FAST, **more})
        )
        after = contents(output)
        return found, {name.partition("/")[0] for name in after if before.get(name) != after[name]}

    first = run_recipe(corpus, output, nli=nli, base=base, config=config)
    second, changed = again()
    assert not changed
    assert [one.found for one in second.encoders] == [one.found for one in first.encoders]
    assert (second.model, second.index, second.examples) == (
        first.model,
        first.index,
        first.examples,
    )
    write_nli(nli, rows(12)[::-1])
    assert "adapted" not in again()[1]
    assert again(nli_steps=3)[1] >= {"trained", "diagnosed"}
    with corpus.open("a") as file:
        file.write("one more text is here. it has two sentences.\n")
    found, changed = again(nli_steps=3)
    assert changed >= {"adapted", "trained", "diagnosed", "index"}
    assert found.index["documents"] == 161


def test_two_tasks_are_learned_at_once(base: Path, corpus: Path, nli: Path, tmp_path: Path) -> None:
    corpus.write_text(corpus.read_text().replace("\n", "\n\n"))  # each a document
    config = RecipeConfig(**{**FAST, "task": "mlm,sop"})
    found = run_recipe(corpus, tmp_path / "out", nli=nli, base=base, config=config)
    assert "held_out_loss sop" in found.encoders[1].facts["held_out"]["after"]


def test_without_a_task_nothing_is_adapted(
    base: Path, corpus: Path, nli: Path, tmp_path: Path
) -> None:
    config = RecipeConfig(**{**FAST, "task": "none"})
    found = run_recipe(corpus, tmp_path / "out", nli=nli, base=base, config=config)
    assert [one.step for one in found.encoders] == ["base", "train-nli", "diagnose"]
    assert not (tmp_path / "out" / "adapted").exists()


@pytest.mark.parametrize(
    "place",
    [
        "sbertkit.training.pretraining.adapt.adapt",
        "sbertkit.training.nli.train_nli",
        "sbertkit.evaluation.part_search.find_parts",
        "sbertkit.encoder.saving.save_model",
        "sbertkit.retrieval.SearchIndex.build",
    ],
)
def test_an_interrupted_recipe_continues(
    base: Path,
    corpus: Path,
    nli: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def go() -> RecipeResult:
        return run_recipe(corpus, tmp_path / "out", nli=nli, base=base, config=RecipeConfig(**FAST))

    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        with pytest.raises(KeyboardInterrupt):
            go()
    before = contents(tmp_path / "out")
    found = go()
    after = contents(tmp_path / "out")
    kept = {name for name in before if name.startswith(("adapted/", "trained/"))}
    assert all(before[name] == after[name] for name in kept)
    whole = run_recipe(corpus, tmp_path / "other", nli=nli, base=base, config=RecipeConfig(**FAST))
    assert [one.found for one in found.encoders] == [one.found for one in whole.encoders]


def test_a_training_that_ended_before_it_was_noted_is_not_done_again(
    base: Path, corpus: Path, nli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sbertkit.training.results import TrainResult

    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    def go() -> RecipeResult:
        return run_recipe(corpus, tmp_path / "out", nli=nli, base=base, config=RecipeConfig(**FAST))

    with monkeypatch.context() as patch:
        patch.setattr(TrainResult, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            go()
    before = contents(tmp_path / "out")
    assert any(name.startswith("adapted/") for name in before)
    go()
    after = contents(tmp_path / "out")
    assert all(after[name] == one for name, one in before.items())


def test_a_damaged_model_is_made_again(
    base: Path, corpus: Path, nli: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go = partial(
        run_recipe, corpus, tmp_path / "out", nli=nli, base=base, config=RecipeConfig(**FAST)
    )
    first = go()
    weights = tmp_path / "out" / "trained" / "model.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:-8] + bytes(8))
    with caplog.at_level(logging.WARNING):
        second = go()
    assert "trained/model.safetensors: does not match its SHA-256" in caplog.text
    assert weights.read_bytes() == good
    assert [one.found for one in second.encoders] == [one.found for one in first.encoders]


def test_a_damaged_index_is_built_again(
    base: Path, corpus: Path, nli: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go = partial(
        run_recipe, corpus, tmp_path / "out", nli=nli, base=base, config=RecipeConfig(**FAST)
    )
    first = go()
    (vectors,) = (tmp_path / "out" / "index").rglob("vectors.npy")
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"1234")
    with caplog.at_level(logging.WARNING):
        second = go()
    assert "the index is built again" in caplog.text
    assert SearchIndex.verify_at(tmp_path / "out" / "index") == ()
    assert second.index == first.index


def test_what_cannot_be_done_is_refused_before_anything_is_written(
    base: Path, corpus: Path, nli: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"

    def refused(match: str, **more: Any) -> None:
        given = {"corpus": corpus, "nli": nli, "output": output, "base": base, **more}
        with pytest.raises(InputError, match=match):
            run_recipe(**{"config": RecipeConfig(**FAST), **given})
        assert not output.exists()

    refused("expected data to train on", nli=[])
    refused("no such file", nli=tmp_path / "missing.jsonl")
    refused("no such file", collections=[tmp_path / "missing"])
    small = tmp_path / "small.txt"
    small.write_text("a text of some words. another one is here.\n" * 3)
    refused("at least 100 different texts", corpus=small)
    refused("missing.txt", corpus=tmp_path / "missing.txt")
    refused("does not suit .* tasks that suit it", config=RecipeConfig(**FAST, task="plm"))
    refused("dev", dev=tmp_path / "missing-dev.tsv")
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InputError, match="is a file"):
        run_recipe(corpus, file, nli=nli, base=base, config=RecipeConfig(**FAST))
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes\.txt, which no recipe wrote"):
        run_recipe(corpus, other, nli=nli, base=base, config=RecipeConfig(**FAST))
    assert (other / "notes.txt").read_text() == "mine"
    with pytest.raises(InputError, match="task must be one of"):
        RecipeConfig(task="x")
    with pytest.raises(InputError, match="expected one task of"):
        RecipeConfig(task="mlm,span")


def test_a_changed_state_is_refused(base: Path, corpus: Path, nli: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    config = RecipeConfig(**FAST)
    run_recipe(corpus, output, nli=nli, base=base, config=config)
    state = output / "recipe.json"
    state.write_bytes(state.read_bytes().replace(b'"seconds"', b'"Seconds"', 1))
    with pytest.raises(InputError, match="changed after it was written"):
        run_recipe(corpus, output, nli=nli, base=base, config=config)


def test_the_command_shows_scores_and_advice(
    run: Run, base: Path, corpus: Path, nli: Path, tmp_path: Path
) -> None:
    hostile = tmp_path / "a<b>&.txt"
    corpus.rename(hostile)
    ran = run(
        *("recipe", hostile, "--nli", nli, "--base", base, "-o", tmp_path / "out", "--quiet"),
        *("--adapt-steps", 2, "--nli-steps", 2, "--batch-size", 8, "--sample", 100, "--no-guard"),
    )
    for text in ("train-nli", "diagnose", "advice", "index: documents", "report"):
        assert text in ran.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "a<b>" not in page
    assert "a&lt;b&gt;&amp;.txt" in page


# --- advice


def scored(step: str, share: float, gain: PairedTest | None = None, **more: Any) -> ScoredEncoder:
    values: dict[str, Any] = {
        "random_cosine": 0.1,
        "dev": None,
        "ndcg": {},
        "facts": {"advice": "keep it"} if step == "diagnose" else {},
        **more,
    }
    return ScoredEncoder(step, step, (share,) * 10, gain=gain, seconds=1.0, **values)


def gains(low: float, high: float) -> PairedTest:
    return PairedTest((low + high) / 2, 0.01, Interval(low, high, 0.95))


def advised(*encoders: ScoredEncoder, task: str = "mlm", **index: Any) -> str:
    return " ".join(advice_of(encoders, index, task))


def test_the_base_is_indexed_only_where_it_finds_more() -> None:
    base = scored("base", 0.5)
    better, worse = (
        scored("diagnose", 0.6, gains(0.05, 0.15)),
        scored("diagnose", 0.4, gains(-0.2, -0.1)),
    )
    same = scored("diagnose", 0.5, gains(-0.1, 0.1))
    assert choose_encoder([base, better]) is better
    assert choose_encoder([base, worse]) is base
    assert choose_encoder([base, same]) is same
    assert "Take diagnose" in advised(base, better)
    assert "Keep the base" in advised(base, worse)
    assert "No difference is shown" in advised(base, same)


def test_what_stands_out_is_named() -> None:
    base = scored("base", 0.5, ndcg={"scifact": 0.6})
    narrow = scored("train-nli", 0.5, gains(-0.1, 0.1), random_cosine=0.8)
    last = scored("diagnose", 0.6, gains(0.05, 0.15), ndcg={"scifact": 0.5})
    said = advised(base, narrow, last, recall=0.97)
    assert "the space is narrow" in said
    assert "nDCG@10 fell on scifact" in said
    assert "finds 97.00 %" in said or "finds 97.0 %" in said
    losses = {"held_out": {"before": {"held_out_loss": 2.0}, "after": {"held_out_loss": 2.5}}}
    adapted = scored("adapt", 0.5, gains(-0.1, 0.1), facts=losses)
    assert "from 2.000 to 2.500" in advised(base, adapted)
    assert "--task tsdae" in advised(base, adapted, task="simcse")
