"""LoRA: which layers get matrices, what is merged and saved, resuming, refusals."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from safetensors.torch import load_file, save_file
from test_gradient_cache import batch_of
from test_train_pairs import write
from test_train_reranker import DATA
from training_cases import (
    QUICK,
    SAME,
    contents,
    far,
    interrupted_run,
    rows,
    weight_bytes,
    weights,
    write_dev,
    write_nli,
)

from sbertkit import (
    Contrastive,
    Encoder,
    InputError,
    MissingDependency,
    Reranker,
    Softmax,
    TrainConfig,
    train_nli,
    train_pairs,
    train_reranker,
)
from sbertkit.training.run.checkpoints import CheckpointStore
from sbertkit.training.run.lora import LowRank
from sbertkit.training.run.moving import Moving
from sbertkit.training.run.siamese import Siamese
from sbertkit.training.run.trainer import SiameseTrainer

TEXTS = ["he runs by the sea", "Two bakers argue", "x", "the fox eats, then sleeps at home"]

ATTENTION = {
    "bert": {"query", "key", "value", "output.dense"},
    "distilbert": {"q_lin", "k_lin", "v_lin", "out_lin"},
    "roberta": {"query", "key", "value", "output.dense"},
    "mpnet": {"q", "k", "v", "o"},
    "albert": {"query", "key", "value", "attention.dense"},
    "xlnet": {"layer_1", "layer_2"},  # attention has no linear layers, the rest of a layer has
    "t5": {"q", "k", "v", "o"},
    "clip": {"q_proj", "k_proj", "v_proj", "out_proj"},
    "gpt2": {"c_attn", "attn.c_proj"},
    "llama": {"q_proj", "k_proj", "v_proj", "o_proj"},
    "electra": {"query", "key", "value", "output.dense"},
    "nomic_bert": None,
    "deberta_v2": {"query_proj", "key_proj", "value_proj", "output.dense"},
    "xlm_roberta": {"query", "key", "value", "output.dense"},
    "longformer": None,
    "big_bird": {"query", "key", "value", "output.dense"},
    "modernbert": {"Wqkv", "attn.Wo"},
}
"""Ends of the names of linear layers that get matrices; None where it is enough that some do."""


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "lora": 4, "learning_rate": 1e-2, "guard": False, **more})


def trained(
    base: Path, data: Path, output: Path, *, pooling: str | None = "mean", **more: Any
) -> Any:
    made = config(**{"max_steps": 4, **more})
    return train_pairs(base, data, output, pooling=pooling, config=made)


# --- layers by structure


def names_of(base: Path, **more: Any) -> set[str]:
    return set(LowRank(Encoder.load(base, device="cpu"), config(**more))._layers)


@pytest.mark.parametrize("kind", ATTENTION)
def test_the_linear_layers_of_attention_are_found_in_every_family(
    tmp_path: Path, kind: str
) -> None:
    path = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    found, every = names_of(path), names_of(path, lora_targets="all")
    assert found <= every
    ends = ATTENTION[kind]
    if ends is not None:
        layers = 1 if kind == "albert" else tiny_models.LAYERS
        assert len(found) == len(ends) * layers
        assert all(any(name.endswith(f".{one}") for one in ends) for name in found)
    if kind != "xlnet":
        assert len(found) < len(every)


def test_what_is_above_and_below_the_layers_gets_none(tmp_path: Path) -> None:
    for kind in ("bert", "electra", "albert"):
        path = tiny_models.ARCHITECTURES[kind](tmp_path / kind)
        for name in names_of(path, lora_targets="all"):
            assert not any(part in name for part in ("pooler", "embeddings", "hidden_mapping"))


def test_an_encoder_without_linear_layers_is_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(base, device="cpu")
    encoder.torch.used_parameters = {}
    with pytest.raises(InputError, match="needs linear layers, found none in"):
        LowRank(encoder, config())


# --- what comes out


@pytest.mark.parametrize("kind", ATTENTION)
def test_a_trained_folder_is_a_plain_encoder_of_the_vectors_in_training(
    tmp_path: Path, kind: str, plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sbertkit.training.run import runner

    base = tiny_models.ARCHITECTURES[kind](tmp_path / "base")
    Encoder.load(base, device="cpu", pooling="mean", normalize=True).save(tmp_path / "start")
    seen: list[Any] = []
    take_best = runner._take_best

    def look(setup: Any, *more: Any) -> None:
        seen.append((set(setup.low_rank._layers), setup.task.encoder.encode(TEXTS)))
        take_best(setup, *more)

    monkeypatch.setattr(runner, "_take_best", look)
    trained(base, write(tmp_path / "pairs.jsonl"), tmp_path / "out")
    layers, vectors = seen[0]
    start, again = (Encoder.load(tmp_path / name, device="cpu") for name in ("start", "out"))
    assert far(again.encode(TEXTS), vectors) <= SAME
    assert far(plain(tmp_path / "out").encode(TEXTS), vectors) <= SAME
    assert far(start.encode(TEXTS), vectors) > 10 * SAME
    assert weights(tmp_path / "start").keys() == weights(tmp_path / "out").keys()
    assert not any("lora" in path.name for path in (tmp_path / "out").rglob("*"))
    before, after = (one.torch.network.state_dict() for one in (start, again))
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    random = {f"transformer.{name}" for name in again.torch.transformer.missing}
    assert moved - random == {f"transformer.{name}.weight" for name in layers}
    for name in moved - random:
        assert int(torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-3)) <= 4


def test_the_start_is_the_base_and_the_formula_holds(base: Path) -> None:
    encoder = Encoder.load(base, device="cpu", pooling="mean")
    vectors, fingerprint = encoder.encode(TEXTS), encoder.fingerprint
    low_rank = LowRank(encoder, config(lora=3, lora_alpha=6.0, lora_dropout=0.0))
    assert np.array_equal(encoder.encode(TEXTS), vectors)
    encoder.torch.weights_changed()
    assert encoder.fingerprint == fingerprint
    name, layer = next(iter(low_rank._layers.items()))
    inner = layer.get_base_layer()
    down, up = layer.lora_A["default"].weight, layer.lora_B["default"].weight
    assert (down.shape, up.shape) == ((3, 32), (32, 3))
    assert not up.any()
    with torch.no_grad():
        up.normal_()
    weight = inner.weight.detach().clone()
    x = torch.randn(5, 32)
    expected = x @ (weight + 2 * up @ down).T + inner.bias
    torch.testing.assert_close(layer(x), expected, atol=1e-5, rtol=1e-5)
    changed = encoder.encode(TEXTS)
    with low_rank.merged():
        assert encoder.torch.transformer.model.get_submodule(name) is inner
        torch.testing.assert_close(inner.weight, weight + 2 * up @ down)
        merged = encoder.fingerprint
        assert far(encoder.encode(TEXTS), changed) <= SAME
    assert torch.equal(inner.weight, weight)
    assert encoder.torch.transformer.model.get_submodule(name) is layer
    assert np.array_equal(encoder.encode(TEXTS), changed)
    low_rank.merge()
    assert encoder.fingerprint == merged != fingerprint


def test_the_head_of_an_objective_moves_too(base: Path, tmp_path: Path) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(6))
    made = config(max_steps=5)
    result = train_nli(base, data, tmp_path / "out", objective=Softmax(), config=made)
    parts = {part["name"]: part for part in result.record["parts"]}
    assert [*parts] == ["head", "LoRA matrices", "encoder"]
    assert parts["head"]["parameters"] == 3 * 3 * 32 + 3
    assert parts["LoRA matrices"]["parameters"] == 2 * 4 * 4 * 2 * 32  # layers, rank, of 4, A and B
    assert parts["LoRA matrices"]["learning_rate"] == 1e-2
    assert parts["encoder"]["epoch"] is None
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| `LoRA matrices` | 2048 | 0.01 | 0 |" in card
    for line in ("| `lora` | 4 |", "| `lora_dropout` | 0.05 |", "| `lora_targets` | `attention` |"):
        assert line in card


def test_a_dense_layer_after_the_pooling_moves_too(tmp_path: Path) -> None:
    base = tiny_models.declare(tiny_models.bert(tmp_path / "base"), "Dense")
    result = trained(base, write(tmp_path / "pairs.jsonl"), tmp_path / "out", pooling=None)
    assert [part["name"] for part in result.record["parts"]] == ["head", "LoRA matrices", "encoder"]
    before, after = weights(base), weights(tmp_path / "out")
    dense = [name for name in before if "Dense" in name]
    assert dense
    assert not any(torch.equal(before[name], after[name]) for name in dense)


def test_the_result_is_averaged_with_the_base(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    for name, share in (("all", None), ("half", 0.5)):
        trained(base, data, tmp_path / name, merge_base=share)
    Encoder.load(base, device="cpu", pooling="mean", normalize=True).save(tmp_path / "start")
    start, whole, half = (weights(tmp_path / name) for name in ("start", "all", "half"))
    for name, tensor in half.items():
        torch.testing.assert_close(tensor, (start[name] + whole[name]) / 2, atol=1e-6, rtol=1e-5)


def test_a_re_rankers_head_moves_with_the_matrices(base: Path, tmp_path: Path) -> None:
    made = config(max_steps=6, checkpoint_steps=1)
    result = train_reranker(base, DATA, tmp_path / "out", config=made)
    assert [part["name"] for part in result.record["parts"]] == ["head", "LoRA matrices", "encoder"]
    with interrupted_run(3):
        train_reranker(base, DATA, tmp_path / "other", config=made)
    train_reranker(
        base, DATA, tmp_path / "other", config=config(max_steps=6, checkpoint_steps=1, resume=True)
    )
    assert weight_bytes(tmp_path / "out") == weight_bytes(tmp_path / "other")
    start = weights(base)
    words = "embeddings.word_embeddings.weight"
    after = weights(tmp_path / "out")
    assert torch.equal(
        next(tensor for name, tensor in start.items() if name.endswith(words)),
        next(tensor for name, tensor in after.items() if name.endswith(words)),
    )
    scores = Reranker.load(tmp_path / "out").score([("where is the cat", "the cat is here now")])
    assert np.isfinite(scores).all()


def test_gradients_are_those_of_mini_batches_and_of_activations_computed_again(base: Path) -> None:
    found = []
    for caches, again in ((False, False), (True, False), (False, True), (True, True)):
        encoder = Encoder.load(base, device="cpu")
        made = config(gradient_checkpointing=again)
        low_rank = LowRank(encoder, made)
        if again:
            from sbertkit.training.run.activations import checkpoint_activations

            checkpoint_activations(encoder)
        network = encoder.torch.network
        head = torch.nn.Identity()
        encoder.torch.make_trainable()
        Moving(encoder, head, made, steps_per_epoch=1, epochs=1, low_rank=low_rank).start()
        model = Siamese(network, Contrastive(), head, caches=caches).train()
        torch.manual_seed(3)
        loss = model(batch_of(encoder, Contrastive(), 5))
        loss.backward()
        grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        assert {name.rsplit(".", 3)[1] for name in grads} == {"lora_A", "lora_B"}
        found.append((loss.item(), grads))
    for loss, grads in found[1:]:
        assert loss == pytest.approx(found[0][0], abs=1e-6)
        for name, gradient in found[0][1].items():
            torch.testing.assert_close(grads[name], gradient, atol=1e-6, rtol=1e-5)


def test_the_optimizer_has_nothing_but_what_moves(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    create = SiameseTrainer.create_optimizer

    def noted(self: SiameseTrainer, model: Any = None) -> Any:
        made.append(create(self, model))
        return made[-1]

    monkeypatch.setattr(SiameseTrainer, "create_optimizer", noted)
    trained(base, write(tmp_path / "pairs.jsonl"), tmp_path / "out", max_steps=1)
    tensors = [one for group in made[0].param_groups for one in group["params"]]
    assert sum(one.numel() for one in tensors if one.requires_grad) == 2048
    assert len(tensors) == 2 * 2 * 4


# --- checkpoints


@pytest.mark.parametrize("more", [{}, {"mini_batch": 3, "gradient_checkpointing": True}], ids=str)
@pytest.mark.parametrize("done", [1, 5])
def test_a_run_is_resumed_to_the_same_weights(
    base: Path, tmp_path: Path, done: int, more: Any
) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(4))
    dev = write_dev(tmp_path / "dev.tsv")

    def run(out: str, **also: Any) -> None:
        settings = config(**{**more, "max_steps": 8, "checkpoint_steps": 1, **also})
        train_nli(base, data, tmp_path / out, objective="softmax", dev=dev, config=settings)

    run("whole")
    with interrupted_run(done):
        run("other")
    for name, value in (("lora", 5), ("lora_alpha", 3.0), ("lora_targets", "all")):
        with pytest.raises(InputError, match=f"{name} was"):
            run("other", **{name: value}, resume=True)
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


def test_a_checkpoint_has_a_plain_encoder_and_the_matrices(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    with interrupted_run(3):
        trained(base, data, tmp_path / "out", checkpoint_steps=1)
    store = CheckpointStore(tmp_path / "out.run" / "checkpoints")
    step = store.steps()[-1]
    folder = store.read(step).model
    assert (
        far(
            Encoder.load(folder, device="cpu").encode(TEXTS),
            Encoder.load(base, device="cpu", pooling="mean").encode(TEXTS),
        )
        > 10 * SAME
    )
    matrices = load_file(folder / "lora" / "model.safetensors")
    assert sum(tensor.numel() for tensor in matrices.values()) == 2048
    encoder = Encoder.load(base, device="cpu", pooling="mean", normalize=True)
    low_rank = LowRank(encoder, config())
    low_rank.read(folder)
    saved = Encoder.load(folder, device="cpu").encode(TEXTS)
    assert far(encoder.encode(TEXTS), saved) <= SAME
    other = LowRank(Encoder.load(base, device="cpu"), config(lora=2))
    with pytest.raises(InputError, match="has matrices of another run"):
        other.read(folder)
    (folder / "lora" / "model.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="cannot be read"):
        low_rank.read(folder)
    save_file({}, folder / "lora" / "model.safetensors")
    with pytest.raises(InputError, match="has matrices of another run"):
        low_rank.read(folder)


def test_the_best_checkpoint_is_the_one_that_comes_out(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sbertkit.training.dev_set import DevScore, DevSet

    scores = iter([0.1, 0.5, 0.9, 0.2, 0.1, 0.9])  # before, steps 1 to 4, after
    kept: list[Any] = []

    def score(self: DevSet, encoder: Encoder, *, interval: bool = False) -> DevScore:
        kept.append(encoder.encode(TEXTS))
        return DevScore(next(scores), None)

    monkeypatch.setattr(DevSet, "score", score)
    data, dev = write_nli(tmp_path / "pairs.jsonl", rows(4)), write_dev(tmp_path / "dev.tsv")
    made = config(max_steps=4, checkpoint_steps=1)
    result = train_nli(base, data, tmp_path / "out", dev=dev, config=made)
    best = result.record["best_step"]
    assert best == 2
    found = Encoder.load(tmp_path / "out", device="cpu").encode(TEXTS)
    assert far(found, kept[best]) <= SAME
    assert far(found, kept[4]) > 10 * SAME


# --- defaults and refusals


def test_the_rate_is_ten_times_that_of_whole_weights() -> None:
    for kind in (Contrastive, Softmax):
        objective: Any = kind()
        usual = objective.with_defaults(TrainConfig()).learning_rate
        assert objective.with_defaults(TrainConfig(lora=8)).learning_rate == 10 * usual
        given = objective.with_defaults(TrainConfig(lora=8, learning_rate=3e-5))
        assert given.learning_rate == 3e-5


@pytest.mark.parametrize(
    "other", [{"freeze_layers": 1}, {"unfreeze": "0:1,1:all"}, {"layer_decay": 0.9}], ids=str
)
def test_settings_of_whole_layers_do_not_go_with_it(other: Any) -> None:
    (name,) = other
    with pytest.raises(InputError, match=f"lora and {name} do not go together"):
        TrainConfig(lora=8, **other)


@pytest.mark.parametrize(
    "idle", [{"lora_alpha": 8.0}, {"lora_dropout": 0.1}, {"lora_targets": "all"}], ids=str
)
def test_what_is_for_it_alone_needs_it(idle: Any) -> None:
    (name,) = idle
    with pytest.raises(InputError, match=f"{name} needs lora"):
        TrainConfig(**idle)
    assert TrainConfig(lora=8, **idle)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lora": 0},
        {"lora": -1},
        {"lora": 8, "lora_alpha": 0.0},
        {"lora": 8, "lora_dropout": 1.0},
        {"lora": 8, "lora_dropout": -0.1},
        {"lora": 8, "lora_targets": "mlp"},
    ],
    ids=str,
)
def test_values_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="lora"):
        TrainConfig(**wrong)


def test_without_peft_the_pip_command_is_named_and_nothing_written(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    before = contents(tmp_path)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingDependency, match=r'pip install "sbertkit\[lora\]"'):
        trained(base, data, tmp_path / "out")
    assert contents(tmp_path) == before


def test_the_command_takes_it(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    options = ("--base", base, "--max-steps", 2, "--device", "cpu", "--batch-size", 8)
    asked = {"default": ("--lora",), "four": ("--lora", 4, "--lora-targets", "all")}
    for name, lora in asked.items():
        ran = run("train-pairs", data, *options, "-o", tmp_path / name, *lora)
        assert ran.status == 0, ran.err
    settings = {
        name: json.loads((tmp_path / name / "sbertkit.json").read_text())["lineage"]["settings"]
        for name in asked
    }
    assert {name: one["lora"] for name, one in settings.items()} == {"default": 16, "four": 4}
    assert settings["default"]["learning_rate"] == pytest.approx(5e-4)
    ran = run("train-pairs", data, *options, "-o", tmp_path / "x", "--lora-alpha", 8)
    assert (ran.status, "--lora-alpha needs --lora" in ran.err) == (1, True)
    ran = run("train-pairs", data, *options, "-o", tmp_path / "x", "--lora", "--freeze-layers", 1)
    assert ran.status == 1
    assert "do not go together" in ran.err
