"""Whole runs on small and difficult data, and all that is refused before one begins."""

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from training_cases import (
    SAME,
    Job,
    Row,
    changed,
    contents,
    far,
    quick_runs,
    rows,
    weight_bytes,
    weights,
    write_dev,
    write_nli,
)

from sbertkit import TrainConfig, TrainResult, progress, train_nli
from sbertkit.data.nli import NliPair, NliSet, read_nli
from sbertkit.encoder import Encoder
from sbertkit.errors import (
    InputError,
    InputTypeError,
    MissingDependency,
    SbertkitError,
    StorageError,
)
from sbertkit.training.batches import Collator

THREE: list[Row] = [
    ("entailment", "A child climbs a wall.", "A child is climbing."),
    ("contradiction", "A child climbs a wall.", "A child is asleep."),
    ("neutral", "A child climbs a wall.", "The wall is old."),
]
LABELS = ["entailment", "neutral", "contradiction"]
OBJECTIVES = ("softmax", "contrastive")

Train = Callable[..., TrainResult]


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Quick runs in a working folder in which nothing may appear."""
    here = tmp_path / "working folder"
    here.mkdir()
    monkeypatch.chdir(here)
    with quick_runs():
        yield
    assert contents(here) == {}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A place at which a model may appear, in a folder with nothing else."""
    (tmp_path / "models").mkdir()
    return tmp_path / "models" / "out"


@pytest.fixture
def train(tiny_bert: Path, tmp_path: Path, output: Path) -> Train:
    """Trains on rows, or on a file."""

    def run(data: Path | list[Row], objective: str = "softmax", **settings: Any) -> TrainResult:
        dev, pooling = settings.pop("dev", None), settings.pop("pooling", "mean")
        if isinstance(data, list):
            data = write_nli(tmp_path / "pairs.jsonl", data)
        place = settings.pop("output", output)
        job = Job(settings.pop("base", tiny_bert), data, place, objective, dev, pooling)
        return job.run(**settings)

    return run


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The rows of each batch that was made."""
    made: list[list[int]] = []
    collate = Collator.__call__

    def note(self: Collator, rows: list[int]) -> dict[str, Any]:
        made.append(rows)
        return collate(self, rows)

    monkeypatch.setattr(Collator, "__call__", note)
    return made


def losses(result: TrainResult) -> list[float]:
    return [row["loss"] for row in result.log if "loss" in row]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname != "INFO"]


def record_of(folder: Path) -> Any:
    return tiny_models.read_json(folder / "sbertkit.json")["lineage"]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5, 0.99, 1, 5, 1_000])
def test_three_examples_are_one_step_with_any_warm_up(
    train: Train,
    tiny_bert: Path,
    caplog: pytest.LogCaptureFixture,
    objective: str,
    warmup: float,
) -> None:
    result = train(THREE, objective, batch_size=16, warmup=warmup)
    assert result.steps == 1
    assert len(losses(result)) == 1
    assert math.isfinite(losses(result)[0])
    assert changed(tiny_bert, result.folder)
    assert len(said(caplog)) == (warmup >= 1)
    assert all("shortened to 0" in text for text in said(caplog))


@pytest.mark.parametrize("warmup", [0.1, 1, 2])
def test_the_last_batch_may_have_one_example(
    train: Train, tiny_bert: Path, batches: list[list[int]], warmup: float
) -> None:
    result = train(THREE, batch_size=2, warmup=warmup)
    assert result.steps == 2
    assert sorted(map(len, batches)) == [1, 2]
    assert sorted(row for batch in batches for row in batch) == [0, 1, 2]
    assert all(map(math.isfinite, losses(result)))
    assert changed(tiny_bert, result.folder)


def test_a_batch_of_one_row_trains_with_either_objective(train: Train, output: Path) -> None:
    result = train(rows(3), "contrastive", batch_size=1)
    assert result.steps == 3
    assert all(map(math.isfinite, losses(result)))
    assert all(tensor.isfinite().all() for tensor in weights(output).values())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_model_holds_the_label_names_in_the_order_of_their_numbers(
    train: Train, output: Path, objective: str
) -> None:
    train(THREE, objective)
    assert record_of(output)["labels"] == LABELS
    if objective == "softmax":
        assert tiny_models.read_json(output / "head" / "config.json")["labels"] == LABELS


def test_pairs_without_a_gold_label_are_no_fourth_class(
    train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    result = train([*THREE, ("-", "x", "y"), ("-", "x", "z"), ("entailment", "A dog.", "Wet.")])
    assert result.record["examples"] == 4
    assert result.record["counts"] == {"entailment": 2, "neutral": 1, "contradiction": 1}
    assert said(caplog) == ["2 without a gold label skipped"]


def test_numbers_as_labels_get_names_from_the_settings(
    train: Train, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pairs = [(0, "a b", "a"), (2, "a b", "c"), (1, "a b", "d"), (-1, "x y", "x"), (0, "x y", "y")]
    data = tmp_path / "numbers.jsonl"
    keys = ("label", "premise", "hypothesis")
    data.write_text("".join(json.dumps(dict(zip(keys, p, strict=True))) + "\n" for p in pairs))
    result = train(data, labels=dict(enumerate(LABELS)))
    assert result.record["counts"] == {"entailment": 2, "neutral": 1, "contradiction": 1}
    assert said(caplog) == ["1 without a gold label skipped"]


def test_quotes_of_a_table_are_part_of_the_texts(train: Train, tmp_path: Path) -> None:
    data = tmp_path / "quotes.tsv"
    lines = [
        "gold_label\tsentence1\tsentence2",
        'entailment\t"We go now, said he.\tHe wants to go.',
        'neutral\tThe 6" pipe burst.\tThe pipe was old.',
        'contradiction\t"Quiet" signs.\tNo "quiet" signs.',
        'entailment\tHe wrote "yes.\t"He wrote.',
        'neutral\tIt rained.\t"It rained all week"',
    ]
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = train(data)
    assert result.record["counts"] == {"entailment": 2, "neutral": 2, "contradiction": 1}
    assert result.record["examples"] == 5


@pytest.mark.parametrize("label", LABELS)
def test_softmax_trains_on_one_class(train: Train, label: str) -> None:
    one = [(label, premise, hypothesis) for _, premise, hypothesis in rows(3)]
    result = train(one, epochs=8, learning_rate=1e-3, guard=False)
    assert losses(result)[-1] < losses(result)[0]


def test_entailments_alone_are_enough_for_the_contrastive_objective(
    train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    result = train([row for row in rows(5) if row[0] == "entailment"], "contrastive")
    assert result.record["examples"] == 5
    assert ["no example has a hard negative" in text for text in said(caplog)] == [True]


def test_no_premise_needs_both_an_entailment_and_a_contradiction(
    train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    made = rows(6)
    pairs = [row for number, row in enumerate(made) if row[0] == LABELS[2 * (number // 3 % 2)]]
    result = train(pairs, "contrastive")
    assert result.record["examples"] == 3
    assert ["no example has a hard negative" in text for text in said(caplog)] == [True]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_repeated_rows_do_no_harm(train: Train, output: Path, objective: str) -> None:
    swapped = [(label, hypothesis, premise) for label, premise, hypothesis in rows(4)]
    same = [("entailment", "he", "he"), ("entailment", "he", "she")]
    result = train([*rows(4), *rows(4), *swapped, *same], objective, batch_size=64, max_steps=3)
    assert all(map(math.isfinite, losses(result)))
    assert all(tensor.isfinite().all() for tensor in weights(output).values())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_texts_of_all_kinds_are_trained_on(train: Train, output: Path, objective: str) -> None:
    texts = [text for text in tiny_models.TEXTS if text]
    texts += ["\ufffd", "long " * 200, "a\u0301", "\U0001f600 \u05d0\u05d1", "[SEP] [MASK] [PAD]"]
    pairs = [
        (LABELS[number % 3 * (number % 2)], first, second)
        for number, first in enumerate(texts)
        for second in texts[number + 1 :: 3]
    ]
    result = train(pairs, objective, batch_size=5, guard=False)
    assert all(map(math.isfinite, losses(result)))
    assert all(tensor.isfinite().all() for tensor in weights(output).values())


def test_each_epoch_has_every_row_once_in_another_order(
    train: Train, batches: list[list[int]]
) -> None:
    train(rows(7), epochs=3)
    seen = [row for batch in batches for row in batch]
    epochs = [seen[start : start + 21] for start in (0, 21, 42)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(21))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize(
    ("objective", "given", "rate"),
    [("softmax", None, 2e-5), ("contrastive", None, 5e-5), ("softmax", 7e-4, 7e-4)],
)
def test_the_rate_is_the_given_one_or_else_the_objectives(
    train: Train, objective: str, given: float | None, rate: float
) -> None:
    result = train(
        rows(7), objective, max_steps=3, schedule="constant", warmup=0, learning_rate=given
    )
    assert {row["learning_rate"] for row in result.log if "learning_rate" in row} == {rate}
    assert result.record["settings"]["learning_rate"] == rate
    assert result.record["settings"]["normalize"] == (objective == "contrastive")


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"epochs": 1}, 6),
        ({"epochs": 0.5}, 3),
        ({"epochs": 1e-9}, 1),
        ({"epochs": 2.3}, 14),
        ({"epochs": 2, "accumulation": 4}, 4),
        ({"epochs": 1, "accumulation": 100}, 1),
        ({"max_steps": 13, "accumulation": 2}, 13),
        ({"max_steps": 1, "epochs": 50}, 1),
    ],
)
def test_a_run_has_just_its_steps(train: Train, settings: dict[str, Any], steps: int) -> None:
    result = train(rows(7), **settings)
    assert result.steps == steps
    assert result.record["steps"] == steps
    assert len(losses(result)) == steps


def without_dropout(folder: Path) -> Path:
    tiny_models.edit_json(
        folder / "config.json", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    return folder


def test_batches_that_are_added_up_are_one_large_batch(
    train: Train, tiny_copy: Callable[..., Path], output: Path
) -> None:
    base = without_dropout(tiny_copy())
    shared = {"base": base, "max_steps": 3, "learning_rate": 1e-4}
    whole = train(rows(4), batch_size=12, **shared)
    output.rename(output.with_name("whole"))
    parts = train(rows(4), batch_size=4, accumulation=3, **shared)
    for name in ("loss", "grad_norm"):
        expected, found = ([row[name] for row in run.log if name in row] for run in (whole, parts))
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_seed_decides_the_weights(train: Train, output: Path, objective: str) -> None:
    made: list[dict[str, bytes]] = []
    for seed in (1, 1, 2):
        torch.manual_seed(len(made))  # what the caller drew before does not matter
        train(rows(4), objective, seed=seed)
        made.append(weight_bytes(output))
        output.rename(output.with_name(str(len(made))))
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_a_model_folder_has_all_that_it_should_and_no_pickle(
    train: Train, output: Path, tmp_path: Path
) -> None:
    result = train(rows(4), dev=write_dev(tmp_path / "dev.tsv"), checkpoint_steps=1)
    assert [path.name for path in output.parent.iterdir()] == ["out"]
    names = {name for name, content in contents(output).items() if content is not None}
    assert names == {
        "1_Pooling/config.json",
        "README.md",
        "head/config.json",
        "head/model.safetensors",
        "config.json",
        "config_sentence_transformers.json",
        "curves.svg",
        "log.jsonl",
        "model.safetensors",
        "modules.json",
        "sbertkit.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    listed = tiny_models.read_json(output / "sbertkit.json")["files"]
    assert {*listed, "sbertkit.json"} == names
    lines = (output / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == list(result.log)
    assert TrainResult.read(output).record == json.loads(json.dumps(result.record))


def test_the_curves_are_drawn(train: Train, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sbertkit.training.report import curves
    from sbertkit.training.run import model_files

    monkeypatch.setattr(model_files, "draw_curves", curves.draw_curves)
    train(THREE)
    assert "</svg>" in (output / "curves.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("given", ["set", "files", "one file"])
def test_data_comes_as_files_or_as_what_was_read(
    tiny_bert: Path, tmp_path: Path, output: Path, given: str
) -> None:
    first = write_nli(tmp_path / "first.jsonl", rows(2))
    second = write_nli(tmp_path / "second.jsonl", rows(4)[6:])
    data: dict[str, Any] = {
        "set": read_nli([first, second]),
        "files": [str(first), second],
        "one file": first,
    }
    result = train_nli(tiny_bert, data[given], output, config=TrainConfig(device="cpu"))
    files = {"set": 2, "files": 2, "one file": 1}[given]
    assert len(result.record["data"]) == files
    assert result.record["counts"]["neutral"] == 2 * files


def test_texts_are_truncated_in_training_as_they_are_later(
    train: Train, tmp_path: Path, output: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train(rows(4), max_tokens=7, dev=write_dev(tmp_path / "dev.tsv"), checkpoint_steps=1)
    # Not with each dev score and each snapshot of the guard.
    assert [text.split(" to ")[0].lstrip("0123456789 of") for text in said(caplog)] == [
        "distinct training texts are truncated",
        "texts were truncated",
    ]
    assert Encoder.load(output, device="cpu").max_tokens == 7


def test_unknown_tokens_of_training_texts_are_warned_of_once(
    train: Train, caplog: pytest.LogCaptureFixture
) -> None:
    train([(label, "股市大跌" * 9 + first, second) for label, first, second in rows(4)])
    (warning,) = (text for text in said(caplog) if "unknown" in text)
    assert warning.startswith("training texts: ")


def test_prompts_and_modules_of_the_base_are_trained_with_it(
    train: Train, tiny_copy: Callable[..., Path], output: Path, plain: Callable[[Path], Any]
) -> None:
    prompts = {"query": "ask: ", "document": "tell: "}
    base = tiny_models.declare(
        tiny_copy(), "Dense", prompts=prompts, default_prompt_name="document", max_seq_length=40
    )
    train(rows(4), pooling=None, base=base, learning_rate=1e-3)
    again = Encoder.load(output, device="cpu")
    assert again.prompts._asdict() == prompts
    assert (again.dim, again.max_tokens) == (16, 40)
    assert far(again.encode(["he", "x y"]), plain(output).encode(["he", "x y"])) <= SAME
    assert {"2_Dense linear.weight", "2_Dense linear.bias"} <= set(changed(base, output))


def test_nothing_that_is_saved_tells_of_the_folders_of_this_machine(
    tiny_bert: Path, tmp_path: Path
) -> None:
    place = tmp_path / "secret place"
    place.mkdir()
    base = Path(shutil.copytree(tiny_bert, place / "my-base"))
    data = write_nli(place / "pairs.jsonl", rows(4))
    job = Job(base, data, tmp_path / "out", "contrastive", write_dev(place / "dev.tsv"))
    record = job.run().record
    assert (record["base"], record["base_model"]) == ("my-base", None)
    assert record["data"][0]["source"] == "pairs.jsonl"
    assert record["dev"]["source"] == "dev.tsv"
    Encoder.load(job.output, device="cpu").save(tmp_path / "saved")
    for folder in (job.output, tmp_path / "saved"):
        for name, content in contents(folder).items():
            assert content is None or b"secret place" not in content, name
            assert content is None or bytes(tmp_path) not in content, name


def test_the_trained_encoder_is_the_base_of_another_run(train: Train, output: Path) -> None:
    train(rows(4), "contrastive")
    first = output.rename(output.with_name("first"))
    before = weights(first)
    result = train(rows(4), "contrastive", base=first, pooling=None)
    assert (result.record["base"], result.record["base_model"]) == ("first", None)
    assert weights(first).keys() == weights(output).keys()
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(first).items())
    assert changed(first, output)


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no file": ("softmax", {"data": "missing.jsonl"}, "missing.jsonl"),
    "no gold label at all": ("softmax", {"rows": [("-", "a", "b")] * 3}, "no labeled example"),
    "an unknown label": (
        "softmax",
        {"rows": [*THREE, ("maybe", "a", "b")]},
        "1 bad line: 4 .*maybe",
    ),
    "a blank text": ("softmax", {"rows": [*THREE, ("neutral", "a", " ")]}, "1 bad line: 4 .*blank"),
    "numbers": ("softmax", {"rows": [("1", "a", "b")]}, "mapping|labels"),
    "no dev file": ("softmax", {"dev": "missing.tsv"}, "missing.tsv"),
    "a bad dev file": ("softmax", {"dev": "bad.tsv"}, "bad.tsv"),
    "a dev set with one score": ("softmax", {"dev": "even.tsv"}, "even.tsv.*different scores"),
    "a dev set of one pair": ("softmax", {"dev": "one.tsv"}, "one.tsv.*different scores"),
    "patience without a dev set": ("softmax", {"patience": 2}, "patience.*dev"),
    "no overlap with nothing": ("softmax", {"drop_overlap": True}, "drop_overlap.*dev"),
    "an unknown objective": ("triplet", {}, "objective"),
    "several objectives": (["softmax"], {}, "objective"),
    "nothing to resume": ("softmax", {"resume": True}, "no unfinished run"),
}
BAD_LATER: dict[str, tuple[Any, dict[str, Any], str]] = {
    "contradictions alone": (
        "contrastive",
        {"rows": [("contradiction", "a", "b"), ("contradiction", "a", "c")]},
        "needs pairs labeled entailment",
    ),
    "neutral pairs alone": (
        "contrastive",
        {"rows": [("neutral", "a", "b")]},
        "needs pairs labeled entailment",
    ),
    "one entailment alone": (
        "contrastive",
        {"rows": [("entailment", "a", "b"), ("neutral", "a", "c")]},
        "no negative in any of 1 batches",
    ),
    "one hypothesis of all entailments": (
        "contrastive",
        {"rows": [("entailment", text, "he") for text in ("a", "b", "c")]},
        "no negative in any of 1 batches",
    ),
    "batches of one example": (
        "contrastive",
        {"rows": [row for row in rows(4) if row[0] == "entailment"], "batch_size": 1},
        "no negative in any of 4 batches",
    ),
    "a text that entails itself alone": (
        "contrastive",
        {"rows": [("entailment", "a", "a")]},
        "needs pairs labeled entailment",
    ),
    "one text": (
        "softmax",
        {"rows": [("neutral", "a", "a")] * 3},
        "texts to which .* gives different vectors",
    ),
    "half precision without a GPU": ("softmax", {"precision": "fp16"}, "precision fp16"),
    "an unknown device": ("softmax", {"device": "abacus"}, "device"),
    "an unknown pooling": ("softmax", {"pooling": "median"}, "pooling"),
    "no such base": ("softmax", {"base": Path("missing")}, "missing"),
    "a limit without room": ("softmax", {"max_tokens": 2}, "max_tokens"),
    "an unknown tracker": ("softmax", {"report_to": ("paper",)}, "report_to.*'paper'"),
}


@pytest.mark.parametrize("case", [*BAD, *BAD_LATER])
def test_what_is_refused_leaves_nothing(
    train: Train, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    objective, settings, reason = (BAD | BAD_LATER)[case]
    (tmp_path / "bad.tsv").write_text("7x\ta\tb\n", encoding="utf-8")
    (tmp_path / "one.tsv").write_text("1.5\ta\tb\n", encoding="utf-8")
    (tmp_path / "even.tsv").write_text("1.5\ta\tb\n1.5\ta\tc\n", encoding="utf-8")
    if "dev" in settings:
        settings = {**settings, "dev": tmp_path / settings["dev"]}
    settings = dict(settings)
    data: Any = settings.pop("rows", THREE)
    if "data" in settings:
        data = tmp_path / settings.pop("data")
    if case in BAD:  # long before a model is loaded
        monkeypatch.setattr(Encoder, "load", None)
    place = output.parent / "a" / "b" / "out"
    with pytest.raises(SbertkitError, match=f"^[^\n]*({reason})[^\n]*$"):
        train(data, objective, output=place, **settings)
    assert contents(output.parent) == {}


def test_trackers_that_are_not_installed_are_told_with_the_command(
    train: Train, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.integrations import integration_utils

    monkeypatch.setattr(integration_utils, "get_available_reporting_integrations", list)
    with pytest.raises(MissingDependency, match=r"^[^\n]*pip install tensorboard$"):
        train(THREE, report_to=("tensorboard",))
    assert contents(output.parent) == {}


@pytest.mark.parametrize("there", ["a file", "another model", "an unfinished run"])
def test_what_is_there_already_stays_as_it_is(
    train: Train, output: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    if there == "a file":
        output.write_text("mine")
    elif there == "another model":
        train(THREE)
    else:
        work = output.with_name("out.run")
        work.mkdir()
        (work / "run.json").write_text("{}")
        (work / ".lock").touch()
    before = contents(output.parent)
    monkeypatch.setattr(Encoder, "load", None)
    with pytest.raises(InputError, match=r"^[^\n]*models/out[^\n]*$"):
        train(THREE)
    assert contents(output.parent) == before


@pytest.mark.parametrize("path", ["/", "."])
def test_a_folder_that_is_in_use_is_no_output(tiny_bert: Path, tmp_path: Path, path: str) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", THREE)
    with pytest.raises(InputError, match="not empty"):
        train_nli(tiny_bert, data, tmp_path / path if path == "." else path)


def test_an_empty_folder_and_a_link_to_one_are_outputs(train: Train, output: Path) -> None:
    place = output.with_name("place")
    place.mkdir()
    output.symlink_to(place)
    assert train(THREE).folder == place
    assert Encoder.load(output, device="cpu").dim == 32
    assert sorted(path.name for path in output.parent.iterdir()) == ["out", "place"]


def test_a_damaged_base_is_told(train: Train, tiny_copy: Callable[..., Path], output: Path) -> None:
    from safetensors.torch import load_file, save_file

    base = tiny_copy()
    tensors = load_file(base / "model.safetensors")
    tensors["embeddings.LayerNorm.weight"][3] = math.nan
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    for guard in (True, False):
        with pytest.raises(InputError, match=r"^[^\n]*NaN[^\n]*weights are damaged$"):
            train(THREE, base=base, guard=guard)
    assert contents(output.parent) == {}


def test_a_base_of_zeros_is_told(train: Train, tiny_copy: Callable[..., Path]) -> None:
    from safetensors.torch import load_file, save_file

    base = tiny_copy()
    tensors = load_file(base / "model.safetensors")
    zeros = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    save_file(zeros, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="found zero vectors alone"):
        train(THREE, base=base)


def hand_made(*pairs: Any) -> NliSet:
    return NliSet(tuple(pairs), ())


@pytest.mark.parametrize(
    ("pairs", "error", "reason"),
    [
        ([], InputError, "expected labeled pairs, found none"),
        ([NliPair("a", "b", 0), NliPair("a", "b", 3)], InputError, "pair 1: .* label .* found 3"),
        ([NliPair("a", "b", -1)], InputError, "pair 0: .* label .* found -1"),
        ([NliPair("a", " ", 0)], InputError, "pair 0: .* blank"),
        ([NliPair("a", "b\ud800", 0)], InputError, "pair 0: .* surrogate"),
        ([NliPair("a", None, 0)], InputTypeError, "pair 0: expected"),  # type: ignore[arg-type]
        ([("a", "b", "entailment")], InputTypeError, "pair 0: expected"),
        ([("a", "b")], InputTypeError, "pair 0: expected"),
        (["abc"], InputTypeError, "pair 0: expected"),
    ],
)
def test_a_set_made_by_hand_is_checked(
    tiny_bert: Path, output: Path, pairs: list[Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=f"^{reason}[^\n]*$"):
        train_nli(tiny_bert, hand_made(*pairs), output)
    assert contents(output.parent) == {}


def test_a_set_made_by_hand_is_resumed_only_with_the_same_pairs(
    tiny_bert: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = read_pairs(rows(4))
    config = TrainConfig(max_steps=3, checkpoint_steps=1, batch_size=4, device="cpu")
    monkeypatch.setattr("sbertkit.training.run.runner.write_output", stop)
    with pytest.raises(KeyboardInterrupt):
        train_nli(tiny_bert, hand_made(*pairs), output, config=config)
    monkeypatch.undo()
    again = TrainConfig(max_steps=3, checkpoint_steps=1, batch_size=4, device="cpu", resume=True)
    with pytest.raises(InputError, match=r"data 1\.sha256 was"):
        train_nli(tiny_bert, hand_made(*pairs[:-1]), output, config=again)
    assert train_nli(tiny_bert, hand_made(*pairs), output, config=again).steps == 3


def read_pairs(made: list[Row]) -> list[NliPair]:
    return [NliPair(premise, text, LABELS.index(label)) for label, premise, text in made]


def stop(*_: Any) -> None:
    raise KeyboardInterrupt


def test_settings_of_another_type_are_refused(tiny_bert: Path, output: Path) -> None:
    config: Any = {"epochs": 1}
    with pytest.raises(InputTypeError, match="config must be a TrainConfig, found dict"):
        train_nli(tiny_bert, hand_made(*read_pairs(THREE)), output, config=config)


@pytest.mark.parametrize("size", [np.int64(2), 10**30])
def test_any_whole_number_is_a_batch_size(train: Train, size: Any) -> None:
    assert train(rows(4), batch_size=size, epochs=1).steps == (6 if size == 2 else 1)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_callers_gradient_mode_does_not_count(
    train: Train, tiny_bert: Path, output: Path, mode: Callable[[], Any]
) -> None:
    with mode():
        train(THREE)
        assert not torch.is_grad_enabled()
    assert changed(tiny_bert, output)


def test_a_run_leaves_the_callers_surroundings_as_they_were(train: Train) -> None:
    def draw() -> tuple[float, float, float, int]:
        level = transformers.utils.logging.get_verbosity()
        return random.random(), float(np.random.rand()), float(torch.rand(1)), level

    def seed() -> None:
        random.seed(7)
        np.random.seed(7)
        torch.manual_seed(7)

    seed()
    expected = draw()
    seed()
    train(THREE)
    assert draw() == expected


def test_what_appears_at_the_output_while_it_trains_is_not_lost(
    train: Train, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sbertkit.training.run import model_files

    write = model_files.write_model_files

    def meanwhile(*given: Any, **more: Any) -> None:
        write(*given, **more)
        output.mkdir(exist_ok=True)
        (output / "mine.txt").write_text("precious")

    monkeypatch.setattr(model_files, "write_model_files", meanwhile)
    with pytest.raises(StorageError, match=r"^[^\n]*out: something else has been put there"):
        train(THREE)
    assert contents(output) == {"mine.txt": b"precious"}
    monkeypatch.undo()
    (output / "mine.txt").unlink()
    assert train(THREE, resume=True).folder == output
    assert Encoder.load(output, device="cpu").dim == 32
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def test_two_runs_cannot_write_to_one_output(
    train: Train, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Encoder.load
    refused = []

    def second(*given: Any, **more: Any) -> Encoder:
        monkeypatch.setattr(Encoder, "load", load)
        with pytest.raises(StorageError, match="another process is writing") as caught:
            train(THREE)
        refused.append(caught.value)
        return load(*given, **more)

    monkeypatch.setattr(Encoder, "load", second)
    assert train(THREE).steps == 1
    assert len(refused) == 1
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def test_the_log_begins_with_the_untrained_encoder_and_ends_as_the_result_says(
    train: Train, tmp_path: Path
) -> None:
    result = train(rows(60), max_steps=4, checkpoint_steps=2)
    assert result.log[0]["step"] == 0
    last = [row for row in result.log if "effective_rank" in row][-1]
    for quality, row in ((result.before, result.log[0]), (result.after, last)):
        assert row["effective_rank"] == pytest.approx(quality.effective_rank, rel=1e-5)
        assert row["random_cosine"] == pytest.approx(quality.random_cosine, abs=1e-5)
    dev = write_dev(tmp_path / "dev.tsv")
    scored = train(rows(60), dev=dev, max_steps=2, output=tmp_path / "models" / "scored")
    assert scored.log[0]["dev_spearman"] == scored.before.spearman


def test_a_run_says_from_its_first_second_what_it_does(
    train: Train, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(progress, "_MOMENT", 0.0)
    train(rows(8), max_steps=12, progress=True)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("reading the data and loading ")
    assert "measuring the encoder before training ..." in said
    assert re.search(r"^training: 12 of 12, .*, loss \d\.\d{3}, lr \d\.\de-\d\d$", said[-1])
