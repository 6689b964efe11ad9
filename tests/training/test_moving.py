"""What of an encoder moves: layers by structure, rates by depth, epochs, resuming, refusals."""

import logging
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from command_line import Run
from test_train_pairs import write
from training_cases import QUICK, quick_runs, rows, weight_bytes, weights, write_nli

from sbertkit import Encoder, InputError, InputTypeError, TrainConfig, train_nli, train_pairs
from sbertkit.training.run.depths import Depths
from sbertkit.training.run.moving import Moving
from sbertkit.training.run.trainer import SiameseTrainer

RATE = 1e-2


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "learning_rate": RATE, "guard": False, **more})


def moving(base: Path, head: torch.nn.Module | None = None, **more: Any) -> Moving:
    encoder = Encoder.load(base, pooling="mean", device="cpu")
    given = torch.nn.Identity() if head is None else head
    return Moving(encoder, given, config(**more), steps_per_epoch=2, epochs=4)


# --- layers by structure


@pytest.mark.parametrize("kind", tiny_models.ARCHITECTURES)
def test_layers_are_found_in_every_family(tmp_path: Path, kind: str) -> None:
    path = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    network = Encoder.load(path, pooling="mean", device="cpu").torch.network
    depths = Depths(network.transformer, kind)
    by_depth: dict[int, list[str]] = {}
    for name, tensor in network.named_parameters():
        by_depth.setdefault(depths.of(tensor), []).append(name)
    layers = set(by_depth) - {0, depths.top}
    assert layers == set(range(1, depths.layers + 1))
    numbered = getattr(network.transformer.config, "num_hidden_layers", None)
    if kind == "albert":
        assert depths.layers == 1
    elif kind not in ("funnel", "byte_t5", "clip", "clip_text"):
        assert depths.layers == numbered
    embeddings = by_depth[0]
    assert embeddings
    assert any("emb" in name or "wte" in name or "shared" in name for name in embeddings)
    for depth in layers:  # all layers are alike
        assert not any("word_emb" in name for name in by_depth[depth])
        assert len(by_depth[depth]) >= 4


@pytest.mark.parametrize(
    ("kind", "part", "depth"),
    [
        ("electra", "embeddings_project.weight", "embeddings"),
        ("albert", "embedding_hidden_mapping_in.weight", "embeddings"),
        ("xlnet", "mask_emb", "embeddings"),
        ("modernbert", "final_norm.weight", "head"),
        ("bert", "pooler.dense.weight", "head"),
    ],
)
def test_parts_beside_the_layers_have_their_place(
    tmp_path: Path, kind: str, part: str, depth: str
) -> None:
    path = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    network = Encoder.load(path, pooling="mean", device="cpu").torch.network
    depths = Depths(network.transformer, kind)
    found = [t for name, t in network.named_parameters() if name.endswith(part)]
    assert [depths.name(depths.of(one)) for one in found] == [depth]


def test_a_model_without_a_list_of_layers_is_refused() -> None:
    with pytest.raises(InputError, match="no list of layers"):
        Depths(torch.nn.Linear(2, 2), "this")


# --- freezing and rates


def trained(base: Path, data: Path, output: Path, **more: Any) -> Any:
    with quick_runs():
        return train_pairs(base, data, output, config=config(**{"max_steps": 4, **more}))


def moved(base: Path, folder: Path) -> set[str]:
    """The parts of the model that training has changed."""
    before, after = weights(base), weights(folder)
    changed = [name for name in after if not torch.equal(before[name], after[name])]
    network = Encoder.load(base, device="cpu").torch.network
    depths = Depths(network.transformer, "base")
    parameters = {n: depths.name(depths.of(t)) for n, t in network.named_parameters()}
    found = set()
    for name in changed:
        tensor = name.split()[-1]
        (part,) = {where for known, where in parameters.items() if known.endswith(tensor)}
        found.add(part)
    return found


def test_frozen_layers_and_embeddings_stay_as_they_were(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    layers = Depths(Encoder.load(base, device="cpu").torch.network.transformer, "base").layers
    assert layers >= 2
    every = {"embeddings", *(f"layer {n}" for n in range(1, layers + 1))}
    trained(base, data, tmp_path / "full")
    assert moved(base, tmp_path / "full") == every
    trained(base, data, tmp_path / "none", freeze_layers=0)
    assert moved(base, tmp_path / "none") == every - {"embeddings"}
    result = trained(base, data, tmp_path / "one", freeze_layers=1)
    assert moved(base, tmp_path / "one") == every - {"embeddings", "layer 1"}
    parts = {part["name"]: part["epoch"] for part in result.record["parts"]}
    assert parts == {name: None if name in ("embeddings", "layer 1") else 0 for name in every}
    card = (result.folder / "README.md").read_text()
    assert "| `layer 1` | " in card
    assert "| frozen | never |" in card


def test_rates_fall_with_the_depth(base: Path) -> None:
    found = moving(base, layer_decay=0.5)
    rates = [part.learning_rate for part in found.parts]
    assert rates == pytest.approx([RATE * 0.5**n for n in range(len(rates))])
    assert [part.name for part in found.parts][-1] == "embeddings"
    head = torch.nn.Linear(3, 3)
    with_head = moving(base, head, layer_decay=0.5)
    assert (with_head.parts[0].name, with_head.parts[0].parameters) == ("head", 12)
    assert with_head.parts[0].learning_rate == RATE
    assert with_head.parts[1].learning_rate == RATE / 2


@pytest.mark.parametrize("weight_decay", [0.1, 0.0])
def test_the_optimizer_has_each_tensor_once_at_its_rate(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight_decay: float
) -> None:
    made: list[Any] = []
    create = SiameseTrainer.create_optimizer

    def noted(self: SiameseTrainer, model: Any = None) -> Any:
        made.append((create(self, model), self.model))
        return made[-1][0]

    monkeypatch.setattr(SiameseTrainer, "create_optimizer", noted)
    data = write(tmp_path / "pairs.jsonl")
    trained(base, data, tmp_path / "out", layer_decay=0.5, weight_decay=weight_decay, max_steps=1)
    optimizer, model = made[0]
    tensors = [one for group in optimizer.param_groups for one in group["params"]]
    expected = [one for one in model.parameters() if one.requires_grad]
    assert sorted(map(id, tensors)) == sorted(map(id, expected))
    depths = Depths(model.network.transformer, "base")
    for group in optimizer.param_groups:
        (depth,) = {depths.of(one) for one in group["params"]}
        assert group["initial_lr"] == pytest.approx(RATE * 0.5 ** (depths.layers - depth))
        flat = {one.ndim == 1 for one in group["params"]}
        if weight_decay:
            assert flat == {group["weight_decay"] == 0}


def test_the_lowest_parts_move_least(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    trained(base, data, tmp_path / "out", layer_decay=0.1, weight_decay=0.0)
    before, after = weights(base), weights(tmp_path / "out")
    size = {name: float((after[name] - before[name]).abs().max()) for name in after}
    words = next(value for name, value in size.items() if "word_embeddings" in name)
    top = max(value for name, value in size.items() if "layer.1.output.dense.weight" in name)
    assert words < 0.2 * top


# --- progressive


def test_parts_begin_to_move_with_their_epochs(base: Path) -> None:
    head = torch.nn.Linear(3, 3)
    found = moving(base, head, unfreeze="0:head,1:1,3:all")
    found.start()
    depth_of = {part.name: part.epoch for part in found.parts}
    names = list(depth_of)
    assert depth_of["head"] == 0
    assert depth_of[names[1]] == 1
    assert {depth_of[name] for name in names[2:]} == {3}
    counts = {part.name: part.parameters for part in found.parts}
    for step, epoch in ((0, 0), (1, 0), (2, 1), (5, 2), (6, 3), (9, 4), (1, 0)):
        found.at_step(step)
        wanted = sum(n for name, n in counts.items() if (depth_of[name] or 0) <= epoch)
        tensors = [one for group in found._by_depth.values() for one in group]
        assert sum(one.numel() for one in tensors if one.requires_grad) == wanted


def test_what_does_not_move_yet_stays_as_it_was(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")  # two steps per epoch
    layers = Depths(Encoder.load(base, device="cpu").torch.network.transformer, "base").layers
    top = f"layer {layers}"
    plan = {"unfreeze": "0:1,2:all", "warmup": 0.0}
    trained(base, data, tmp_path / "early", max_steps=5, **plan)
    assert moved(base, tmp_path / "early") > {top}
    plan["unfreeze"] = "0:1"
    trained(base, data, tmp_path / "late", max_steps=5, **plan)
    assert moved(base, tmp_path / "late") == {top}


@pytest.mark.parametrize(
    "strategy",
    [
        {"unfreeze": "0:head,1:1,2:all"},
        {"layer_decay": 0.8},
        {"freeze_layers": 1, "layer_decay": 0.8},
        {"unfreeze": "0:1,1:all", "layer_decay": 0.8},
    ],
    ids=str,
)
@pytest.mark.parametrize("done", [1, 5])
def test_a_run_is_resumed_to_the_same_weights(
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    strategy: dict[str, Any],
    done: int,
) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(4))  # three steps per epoch

    def run(out: str, **more: Any) -> None:
        settings = config(**strategy, max_steps=8, checkpoint_steps=1, **more)
        with quick_runs():
            train_nli(base, data, tmp_path / out, objective="softmax", config=settings)

    run("whole")
    from sbertkit.training.run.monitor import Monitor

    assess = Monitor._assess

    def stop(self: Monitor, step: int, control: Any) -> None:
        assess(self, step, control)
        control.should_training_stop |= step == done
        if step == done:
            self._clock.interrupted = 2

    with monkeypatch.context() as patch:
        patch.setattr(Monitor, "_assess", stop)
        with pytest.raises(KeyboardInterrupt):
            run("other")
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


def test_the_parts_are_reported_before_the_start(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    with caplog.at_level(logging.INFO):
        trained(base, data, tmp_path / "out", unfreeze="0:1,1:all", max_steps=4)
        assert "what moves: layer" in caplog.text
        assert "embeddings rate 0.01 from epoch 1" in caplog.text
        caplog.clear()
        trained(base, data, tmp_path / "plain", max_steps=1)
        assert "what moves" not in caplog.text


# --- refusals


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"freeze_layers": 99}, "names 99 layers, but there are"),
        ({"unfreeze": "0:99"}, "names 99 layers, but there are"),
        ({"unfreeze": "0:1,7:all"}, "names epoch 7, but the run has 4"),
        ({"unfreeze": "0:head,1:all"}, "nothing in epoch 0"),
    ],
)
def test_what_does_not_exist_is_refused(base: Path, settings: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        moving(base, **settings)


def test_a_freeze_of_everything_is_refused_and_nothing_is_written(
    base: Path, tmp_path: Path
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    layers = Depths(Encoder.load(base, device="cpu").torch.network.transformer, "base").layers
    with pytest.raises(InputError, match=f"freeze_layers {layers} freezes everything"):
        trained(base, data, tmp_path / "out", freeze_layers=layers)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]
    head = moving(base, torch.nn.Linear(2, 2), freeze_layers=layers)
    assert [part.name for part in head.parts if part.epoch == 0] == ["head"]


def test_weights_that_all_layers_share_are_one_layer(tmp_path: Path) -> None:
    base = tiny_models.ARCHITECTURES["albert"](tmp_path / "base")
    with pytest.raises(InputError, match="there are 1, which all steps of the encoder share"):
        moving(base, freeze_layers=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "head",
        "0:",
        "0:heads",
        "1:head",
        "0:1,0:2",
        "0:2,1:1",
        "0:all,1:2",
        "0:1,1:head",
        "0:-1",
    ],
)
def test_a_malformed_plan_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="unfreeze must have epochs from 0 on"):
        TrainConfig(unfreeze=text)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"freeze_layers": -1}, InputError),
        ({"freeze_layers": 1.5}, InputTypeError),
        ({"layer_decay": 0}, InputError),
        ({"layer_decay": 1.1}, InputError),
        ({"layer_decay": "0.9"}, InputTypeError),
        ({"unfreeze": 3}, InputTypeError),
        ({"unfreeze": "0:1", "freeze_layers": 1}, InputError),
    ],
)
def test_settings_out_of_range_are_refused(settings: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        TrainConfig(**settings)


def test_the_command_shows_what_moves(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    options = ("--base", base, "--max-steps", 2, "--batch-size", 4, "--device", "cpu")
    arguments = ("train-pairs", data, "-o", tmp_path / "out", *options)
    ran = run(*arguments, "--freeze-layers", 1, "--layer-decay", 0.9)
    assert ran.status == 0, ran.err
    assert "layer 1 frozen" in ran.err
    wrong = run("train-pairs", data, "-o", tmp_path / "no", *options, "--unfreeze", "1:all")
    assert wrong.status == 1
    assert "--unfreeze must have epochs" in wrong.err
