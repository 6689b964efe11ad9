"""Whole runs on every encoder family and pooling: what is saved is what was trained."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tiny_models
import torch
from training_cases import SAME, Job, far, quick_runs, rows, weights, write_nli

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoder
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.training.run import runner
from sbertkit.training.run.setup import Setup

TEXTS = ["he runs by the sea", "Two bakers argue", "x", "the fox eats, then sleeps at home", "he"]
CAUSAL = ("clip_text", "clip", "gpt2", "llama")
"""Their first token sees nothing of the text, which does not suit the pooling cls."""
COMMON = ("cls", "mean", "max", "eos")
FAMILIES = [
    (architecture, pooling)
    for architecture in tiny_models.ARCHITECTURES
    for pooling in COMMON
    if not (architecture in CAUSAL and pooling == "cls")
]
FAMILIES += [("bert", pooling) for pooling in POOLINGS if pooling not in COMMON]


class Trained(NamedTuple):
    """The encoder that a run trained, and the vectors that it had at the end."""

    encoder: Encoder
    vectors: Vectors


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nli(tmp_path_factory.mktemp("data") / "pairs.jsonl", rows(4))


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with quick_runs():
        yield


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Callable[[Job], Trained]:
    """Runs a job, and looks at its encoder before it is saved."""
    kept: list[Trained] = []
    write_output = runner.write_output

    def look(setup: Setup, *more: Any) -> None:
        kept.append(Trained(setup.task.encoder, setup.task.encoder.encode(TEXTS)))
        write_output(setup, *more)

    def trained(job: Job) -> Trained:
        # A random model may look like one that collapsed, which is not what this is about.
        assert job.run(max_steps=5, batch_size=3, learning_rate=1e-3, guard=False).steps == 5
        return kept.pop()

    monkeypatch.setattr(runner, "write_output", look)
    return trained


def assert_loads_the_same(trained: Trained, folder: Path, plain: Callable[[Path], Any]) -> None:
    again = Encoder.load(folder, device="cpu")
    assert far(again.encode(TEXTS), trained.vectors) <= SAME
    assert far(plain(folder).encode(TEXTS), trained.vectors) <= SAME
    assert again.fingerprint == trained.encoder.fingerprint
    lengths = np.linalg.norm(trained.vectors, axis=1)
    assert (np.abs(lengths - 1).max() <= SAME) == trained.encoder.normalizes


def assert_moved(before: Encoder, after: Encoder) -> None:
    """All weights that reach a vector are other ones now, and no others but their aliases.

    Those that the files lacked are random in every encoder. In a last layer with global attention,
    the first token alone has it and the others alone attend in windows: where one token is the
    vector, no gradient moves the biases of the other attention.
    """
    random = {f"transformer.{name}" for name in after.torch.transformer.missing}
    used = dict(after.torch.used_parameters)
    if after.torch.transformer.global_attention:
        attention = f"transformer.encoder.layer.{tiny_models.LAYERS - 1}.attention.self"
        kinds = {"cls": ("",), "eos": ("_global",)}.get(after.pooling, ())
        for name, kind in itertools.product(("query", "key", "value"), kinds):
            del used[f"{attention}.{name}{kind}.bias"]
    old, new = before.torch.network.state_dict(), after.torch.network.state_dict()
    moved = {name for name in new if not torch.equal(old[name], new[name])} - random
    places = {tensor.data_ptr() for tensor in used.values()}
    assert used.keys() <= moved
    assert {new[name].data_ptr() for name in moved} == places


@pytest.mark.parametrize(("architecture", "pooling"), FAMILIES)
def test_what_was_trained_is_what_is_loaded(
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    data: Path,
    train: Callable[[Job], Trained],
    plain: Callable[[Path], Any],
    architecture: str,
    pooling: str,
) -> None:
    base = tiny_folder(architecture)
    objective = "contrastive" if pooling in ("mean", "eos") else "softmax"
    job = Job(base, data, tmp_path / "out", objective, pooling=pooling)
    trained = train(job)
    assert (trained.encoder.pooling, trained.encoder.normalizes) == (
        pooling,
        objective == "contrastive",
    )
    assert_loads_the_same(trained, job.output, plain)
    before = Encoder.load(base, pooling=pooling, normalize=trained.encoder.normalizes, device="cpu")
    assert far(before.encode(TEXTS), trained.vectors) > 100 * SAME
    assert_moved(before, trained.encoder)
    assert all(tensor.isfinite().all() for tensor in weights(job.output).values())


@pytest.mark.parametrize(
    ("pooling", "objective", "normalize"),
    list(itertools.product(COMMON, ("softmax", "contrastive"), (True, False))),
)
def test_each_objective_trains_vectors_of_unit_length_and_others(
    tiny_bert: Path,
    tmp_path: Path,
    data: Path,
    train: Callable[[Job], Trained],
    plain: Callable[[Path], Any],
    pooling: str,
    objective: str,
    normalize: bool,
) -> None:
    settings = {"normalize": normalize}
    job = Job(tiny_bert, data, tmp_path / "out", objective, pooling=pooling, settings=settings)
    trained = train(job)
    assert trained.encoder.normalizes == normalize
    assert_loads_the_same(trained, job.output, plain)
    assert (job.output / "2_Normalize").is_dir() == normalize
    assert (job.output / "head").is_dir() == (objective == "softmax")


def test_layers_that_share_their_weights_are_trained_as_one(
    tiny_folder: Callable[[str], Path], tmp_path: Path, data: Path, train: Callable[[Job], Trained]
) -> None:
    job = Job(tiny_folder("albert"), data, tmp_path / "out")
    encoder = train(job).encoder
    assert encoder.torch.transformer.layer_count == 2
    layers = {name.split(".attention.")[0] for name in weights(job.output) if ".attention." in name}
    assert layers == {". encoder.albert_layer_groups.0.albert_layers.0"}
    assert Encoder.load(job.output, device="cpu").torch.transformer.layer_count == 2
