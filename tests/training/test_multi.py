"""Several sets at once: turns, losses, heads, cards, resuming and refusals."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from test_train_pairs import ROWS, write
from training_cases import (
    QUICK,
    interrupted_run,
    rows,
    weight_bytes,
    weights,
    write_dev,
    write_nli,
)

from sbertkit import (
    Contrastive,
    Cosent,
    Encoder,
    InputError,
    InputTypeError,
    Softmax,
    TrainConfig,
    TrainingSet,
    Triplet,
    classify_pairs,
    train_multi,
    train_nli,
    train_sts,
)
from sbertkit.training.batches import BatchOrder, Collator
from sbertkit.training.config import PROPORTIONAL, ROUND_ROBIN
from sbertkit.training.data_forms import NLI, PAIRS
from sbertkit.training.examples import Examples
from sbertkit.training.heads import read_head, sets_with_head
from sbertkit.training.multi import KINDS, multi_recipe
from sbertkit.training.objectives import Several
from sbertkit.training.objectives.several import SetObjective
from sbertkit.training.report.curves import draw_curves
from sbertkit.training.run.setup import set_up
from sbertkit.training.run.siamese import Siamese
from sbertkit.training.set_order import SetOrder

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, and data of each kind."""
    root = tmp_path_factory.mktemp("multi")
    tiny_models.bert(root / "base")
    write_nli(root / "nli.jsonl", rows(8))
    write_dev(root / "sts.tsv", rows(4))
    write(root / "pairs.jsonl", *ROWS)
    return root


def sets(root: Path) -> list[TrainingSet]:
    return [
        TrainingSet("nli", root / "nli.jsonl", "softmax"),
        TrainingSet("sts", root / "sts.tsv", scale=(0, 5)),
        TrainingSet("pairs", root / "pairs.jsonl", Triplet(margin=1.0), name="places"),
    ]


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "learning_rate": 1e-3, **more})


def examples(count: int) -> Examples:
    texts = np.arange(2 * count).reshape(count, 2)
    return Examples(texts, np.zeros(count), texts[:, 0])


def order(*counts: int, sampling: str, batch_size: int = 4) -> SetOrder:
    from sbertkit.training.examples import joined

    lengths = np.full(2 * max(counts), 8, dtype=np.int64)
    return SetOrder(
        joined([examples(count) for count in counts]),
        lengths,
        batch_size,
        sampling=sampling,
        seed=1,
    )


def number_of(batch: list[int], counts: tuple[int, ...]) -> int:
    ends = np.cumsum(counts)
    (number,) = {int(np.searchsorted(ends, row, side="right")) for row in batch}
    return number


def test_proportional_sampling_has_every_row_once_in_batches_of_one_set() -> None:
    counts = (40, 9, 3)
    made = order(*counts, sampling=PROPORTIONAL)
    batches = list(made)
    assert len(made) == len(batches) == 10 + 3 + 1
    assert sorted(row for batch in batches for row in batch) == list(range(sum(counts)))
    assert Counter(number_of(batch, counts) for batch in batches) == {0: 10, 1: 3, 2: 1}
    made.set_epoch(1)
    assert list(made) != batches
    made.set_epoch(0)
    assert list(made) == batches


def test_round_robin_takes_turns_until_the_smallest_ends() -> None:
    counts = (40, 9, 30)
    made = order(*counts, sampling=ROUND_ROBIN)
    batches = list(made)
    assert len(made) == len(batches) == 9
    assert [number_of(batch, counts) for batch in batches] == [0, 1, 2] * 3
    rows_of_first = {row for batch in batches for row in batch if row < 40}
    made.set_epoch(1)
    assert {row for batch in made for row in batch if row < 40} != rows_of_first


def test_each_batch_has_the_loss_of_its_own_objective(root: Path) -> None:
    """The loss of a batch of a set is that of a run on this set alone."""
    task = multi_recipe(root / "base", sets(root), pooling="mean", dev=None, config=config()).load()
    setup = set_up(task)
    model = Siamese(task.encoder.torch.network, task.objective, task.head).eval()
    collator = Collator(setup.examples, setup.table, task.encoder.spec.collator, task.objective)
    seen = set()
    for rows_of_batch in setup.order:
        number, own = setup.examples.of_part(rows_of_batch)
        one = setup.examples.parts[number]
        head = task.objective.heads(task.head)[number]
        alone = Siamese(task.encoder.torch.network, head.objective, head.module).eval()
        batch = Collator(one, setup.table, task.encoder.spec.collator, head.objective)(own)
        with torch.inference_mode():
            assert model(collator(rows_of_batch)).item() == pytest.approx(alone(batch).item())
        seen.add(head.name)
    assert seen == {"nli", "sts", "places"}


def test_a_run_has_heads_curves_and_a_card_by_set(root: Path, tmp_path: Path) -> None:
    quiet = config(epochs=2, learning_rate=1e-4)
    result = train_multi(
        root / "base", sets(root), tmp_path / "out", dev=root / "sts.tsv", config=quiet
    )
    assert [one["name"] for one in result.record["sets"]] == ["nli", "sts", "places"]
    assert [one["rows"] for one in result.record["sets"]] == [24, 12, 16]
    assert result.record["counts"]["nli: entailment"] == 8
    assert {"nli: entailment", "places: positive"} <= result.after.label_cosines.keys()
    logged = {key for row in result.log for key in row}
    assert {"loss nli", "loss sts", "loss places", "loss", "places: negative"} <= logged
    words = draw_curves(result.log)
    assert all(word in words for word in ("Loss by set", "Mean cosine by label, nli", ">places<"))
    card = (result.folder / "README.md").read_text()
    for part in ("| `places` | 16 | 8 | `triplet` |", "Loss of the set `sts`", "crowd workers"):
        assert part in card
    assert sets_with_head(result.folder) == ["nli"]
    head = read_head(result.folder, "nli")
    assert head is not None
    assert head.objective == Softmax()
    assert read_head(result.folder) is None
    (found,) = classify_pairs(result.folder, [("a heron eats", "nobody eats")], device="cpu")
    assert found.label in head.objective.labels
    assert Encoder.load(result.folder, device="cpu").dim == 32


def test_one_set_trains_as_its_own_command_does(root: Path, tmp_path: Path) -> None:
    alone = train_sts(
        root / "base", root / "sts.tsv", tmp_path / "alone", config=config(scale=(0, 5))
    )
    multi = train_multi(
        root / "base",
        [TrainingSet("sts", root / "sts.tsv", "cosent", scale=(0, 5))],
        tmp_path / "multi",
        config=config(),
    )
    assert weight_bytes(multi.folder) == weight_bytes(alone.folder)


@pytest.mark.parametrize("sampling", [PROPORTIONAL, ROUND_ROBIN])
def test_an_interrupted_run_is_resumed_to_the_same_weights(
    root: Path, tmp_path: Path, sampling: str
) -> None:
    """With progressive unfreezing, rates by depth and cached gradients."""

    def run(out: str, **more: Any) -> None:
        settings = config(
            epochs=3,
            checkpoint_steps=6,
            sampling=sampling,
            mini_batch=3,
            unfreeze="0:head,1:1,2:all",
            layer_decay=0.8,
            **more,
        )
        train_multi(root / "base", sets(root), tmp_path / out, config=settings)

    run("whole")
    with interrupted_run(10):
        run("other")
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")
    assert any("heads/nli" in name for name in weight_bytes(tmp_path / "other"))


def test_several_sets_have_the_lowest_of_their_own_rates() -> None:
    """With LoRA, too, whose rates are higher."""
    parts = tuple(
        SetObjective(one.name, form, one)
        for one, form in ((Softmax(), NLI), (Contrastive(), PAIRS))
    )
    for settings, factor in ((TrainConfig(), 1), (TrainConfig(lora=4), 10)):
        found = Several(parts).with_defaults(settings).learning_rate
        assert found == factor * min(Softmax.learning_rate, Contrastive.learning_rate)
    assert Several(parts).with_defaults(TrainConfig(learning_rate=1e-3)).learning_rate == 1e-3


def test_matryoshka_goes_around_each_objective(root: Path, tmp_path: Path) -> None:
    chosen = [
        TrainingSet("nli", root / "nli.jsonl", "contrastive"),
        TrainingSet("sts", root / "sts.tsv", Cosent(), scale=(0, 5)),
    ]
    result = train_multi(
        root / "base", chosen, tmp_path / "out", config=config(matryoshka=(16, 8), max_steps=4)
    )
    assert Encoder.load(result.folder, dim=8, device="cpu").dim == 8
    with pytest.raises(InputError, match="not for the objective softmax"):
        train_multi(root / "base", sets(root), tmp_path / "no", config=config(matryoshka=(16, 8)))


def test_a_head_is_continued_in_a_run_of_several_sets(root: Path, tmp_path: Path) -> None:
    first = train_nli(
        root / "base", root / "nli.jsonl", tmp_path / "nli", objective="softmax", config=config()
    )
    task = multi_recipe(first.folder, sets(root), pooling="mean", dev=None, config=config()).load()
    known = weights(first.folder / "head")
    (expected,) = (tensor for name, tensor in known.items() if name.endswith("weight"))
    assert torch.equal(task.head.state_dict()["0.weight"], expected)


def test_wrong_labels_of_one_set_are_found(root: Path, tmp_path: Path) -> None:
    from sbertkit.training.run.guard import SpaceSnapshot, any_wrong_order

    recipe = multi_recipe(root / "base", sets(root), pooling="mean", dev=None, config=config())
    orders = recipe.read(config()).form.orders
    assert [labels[0] for labels in orders] == ["nli: entailment", "sts: score above the mean"]
    means = {label: 0.5 for labels in orders for label in labels}
    errors = dict.fromkeys(means, 0.01)
    good = SpaceSnapshot(0.1, None, None, means, errors)
    assert any_wrong_order(good, orders) is None
    bad = SpaceSnapshot(0.1, None, None, {**means, "sts: other score": 0.9}, errors)
    assert "labeled sts: score above the mean" in (any_wrong_order(bad, orders) or "")


def test_sets_of_a_kind_get_names(root: Path) -> None:
    one = TrainingSet("sts", root / "sts.tsv", scale=(0, 5))
    recipe = multi_recipe(root / "base", [one, one], pooling=None, dev=None, config=config())
    assert {key.split(":")[0] for key in recipe.objective.options} == {"sts", "sts-2"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: TrainingSet("text", "a"), "a set must be one of nli, sts, pairs, not 'text'"),
        (lambda _: TrainingSet("nli", "a", "triplet"), "objective must be one of"),
        (lambda _: TrainingSet("nli", "a", name="a/b"), "the name of a set must have letters"),
        (lambda _: TrainingSet("nli", "a", scale=(0, 1)), "scale is not for a set of nli"),
        (lambda _: multi([]), "expected at least one set"),
        (lambda _: multi([TrainingSet("nli", "a", name="x")] * 2), "two named x"),
        (
            lambda root: multi([TrainingSet("sts", root / "sts.tsv")]).load(),
            "the set sts: .*outside 0 to 1",
        ),
    ],
)
def test_refusals(root: Path, make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(root)


def multi(chosen: list[TrainingSet]) -> Any:
    return multi_recipe("base", chosen, pooling=None, dev=None, config=config())


def test_sets_must_be_sets() -> None:
    with pytest.raises(InputTypeError, match="must be a list of TrainingSet"):
        multi(["nli"])  # type: ignore[list-item]


def test_sampling_is_for_several_sets(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sampling is not for scored pairs"):
        train_sts(
            root / "base",
            root / "sts.tsv",
            tmp_path / "out",
            config=config(sampling=ROUND_ROBIN, scale=(0, 5)),
        )


def test_other_sets_are_another_run(root: Path, tmp_path: Path) -> None:
    def run(chosen: list[TrainingSet], **more: Any) -> None:
        settings = config(checkpoint_steps=2, **more)
        train_multi(root / "base", chosen, tmp_path / "out", config=settings)

    with interrupted_run(4):
        run(sets(root))
    changed = [*sets(root)[:2], TrainingSet("pairs", root / "pairs.jsonl", name="places")]
    with pytest.raises(InputError, match='places: objective was "triplet", is "contrastive"'):
        run(changed, resume=True)


def test_the_command(run: Run, root: Path, tmp_path: Path) -> None:
    options = ("--base", root / "base", "--max-steps", 4, "--device", "cpu", "--batch-size", 4)
    ran = run(
        *("train-multi", "--set", f"nli:{root / 'nli.jsonl'},objective=softmax,features=u,v"),
        *("--set", f"sts:{root / 'sts.tsv'},scale=0-5,objective=angle,temperature=0.1,name=mine"),
        *("-o", tmp_path / "out", "--sampling", "round-robin", *options),
    )
    assert ran.status == 0, ran.err
    assert "softmax (nli), angle (mine)" in ran.out
    record = json.loads((tmp_path / "out" / "sbertkit.json").read_text())["lineage"]
    assert record["settings"]["mine: temperature"] == 0.1
    assert record["settings"]["nli: features"] == ["u", "v"]
    assert record["settings"]["sampling"] == "round-robin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other:a", "expected KIND:DATA with one of nli, sts, pairs"),
        ("nli", "expected KIND:DATA"),
        ("nli:a,objective=cosent", "objective must be one of contrastive, softmax"),
        ("nli:a,margin=3", "unknown option 'margin' of a set"),
        ("sts:a,temperature=x", "not a valid float"),
        ("sts:a,scale=5-0", "lower number first"),
        ("nli:a,scale=0-5", "scale is not for a set of nli"),
        ("nli:a,name=../b", "the name of a set must have"),
    ],
)
def test_the_command_refuses(run: Run, tmp_path: Path, text: str, message: str) -> None:
    ran = run("train-multi", "--set", text, "--base", "x", "-o", tmp_path / "out")
    assert ran.status == 2
    assert message in ran.err


def test_every_form_of_single_sets_is_a_kind() -> None:
    assert {kind.form.key for kind in KINDS.values()} == {"nli", "scored", "pairs"}


def test_a_single_order_is_that_of_its_set() -> None:
    lengths = np.full(40, 8, dtype=np.int64)
    assert list(order(20, sampling=PROPORTIONAL)) == list(
        BatchOrder(examples(20), lengths, 4, seed=1)
    )
