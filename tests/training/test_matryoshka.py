"""Vectors trained for several sizes: the loss, whole runs, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from test_train_pairs import ROWS, write
from training_cases import QUICK, quick_runs, rows, weight_bytes, write_nli

from sbertkit import (
    Cosent,
    Cosine,
    Encoder,
    InputError,
    InputTypeError,
    TrainConfig,
    Triplet,
    train_nli,
    train_pairs,
    train_reranker,
)
from sbertkit.training.objectives import Objective
from sbertkit.training.run.siamese import Siamese

NO_HEAD = torch.nn.Identity()


class Given(torch.nn.Module):
    """A network whose vectors are its inputs."""

    def __init__(self, *, normalizes: bool) -> None:
        super().__init__()
        self.normalizes = normalizes

    def forward(self, vectors: torch.Tensor, *_: Any) -> torch.Tensor:
        """The vectors as they are."""
        return vectors


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def loss_of(
    objective: Objective, vectors: torch.Tensor, sizes: Any, *, normalizes: bool
) -> torch.Tensor:
    columns = [[0, 1, 2], [3, 4, 5]] if isinstance(objective, Triplet) else [[0, 1], [2, 3], [4, 5]]
    batch = {
        "groups": [{"input_ids": vectors, "mask": None}],
        "columns": torch.tensor(columns),
        "targets": torch.tensor([0.9, 0.1, 0.4], dtype=torch.float32),
        "sizes": [len(vectors)],
    }
    network = Given(normalizes=normalizes)
    found: torch.Tensor = Siamese(network, objective, NO_HEAD, sizes=sizes)(batch)
    return found


@pytest.mark.parametrize("normalizes", [True, False])
@pytest.mark.parametrize("objective", [Cosent(), Cosine(), Triplet("euclidean", 1.0)], ids=str)
def test_the_loss_is_the_sum_of_those_of_all_sizes(objective: Objective, normalizes: bool) -> None:
    torch.manual_seed(1)
    vectors = torch.randn(6, 8)
    if normalizes:
        vectors = torch.nn.functional.normalize(vectors, dim=1)
    expected = 0.0
    for size in (8, 4, 2):
        part = vectors[:, :size]
        if normalizes:
            part = part / part.norm(dim=1, keepdim=True)
        expected += loss_of(objective, part, None, normalizes=normalizes).item()
    found = loss_of(objective, vectors, (8, 4, 2), normalizes=normalizes)
    assert found.item() == pytest.approx(expected, rel=1e-5)
    alone = loss_of(objective, vectors, (8,), normalizes=normalizes)
    plain = loss_of(objective, vectors, None, normalizes=normalizes)
    assert alone.item() == pytest.approx(plain.item(), rel=1e-6)


def test_the_loss_is_that_of_sentence_transformers() -> None:
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(1)
    vectors = torch.nn.functional.normalize(torch.randn(6, 8), dim=1)
    model: Any = None
    plain = losses.CosineSimilarityLoss(model)
    targets = torch.tensor([0.9, 0.1, 0.4])
    expected = 0.0
    for size in (8, 4, 2):  # as MatryoshkaLoss: truncated, and unit length again
        part = torch.nn.functional.normalize(vectors[:, :size], dim=1)
        expected += plain.compute_loss_from_embeddings([part[0::2], part[1::2]], targets).item()
    found = loss_of(Cosine(), vectors, (8, 4, 2), normalizes=True)
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_a_run_is_resumed_and_its_vectors_can_be_truncated(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    dim = Encoder.load(base, device="cpu").dim
    sizes = (dim, dim // 2, dim // 4)

    def run(out: str, **more: Any) -> Any:
        config = TrainConfig(
            **QUICK,
            learning_rate=1e-3,
            max_steps=8,
            checkpoint_steps=2,
            guard=False,
            matryoshka=sizes,
            **more,
        )
        with quick_runs():
            return train_pairs(base, data, tmp_path / out, config=config)

    result = run("whole")
    settings = result.record["settings"]
    assert settings["matryoshka"] == list(sizes)
    card = (result.folder / "README.md").read_text()
    assert f"truncated to {dim}, {dim // 2}, {dim // 4} numbers" in card
    assert f"dim={dim // 4})" in card
    small = Encoder.load(result.folder, dim=dim // 4, device="cpu")
    texts = [row["anchor"] for row in ROWS]
    assert small.encode(texts).shape == (len(texts), dim // 4)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sbertkit.training.run.runner.write_output", stop)
        with pytest.raises(KeyboardInterrupt):
            run("other")
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")
    plain = TrainConfig(**QUICK, learning_rate=1e-3, max_steps=8, guard=False)
    with quick_runs():
        train_pairs(base, data, tmp_path / "plain", config=plain)
    one, two = (Encoder.load(tmp_path / name, device="cpu") for name in ("plain", "whole"))
    assert not np.allclose(one.encode(texts), two.encode(texts), atol=1e-3)


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((), InputTypeError),
        (8, InputTypeError),
        ("8,4", InputTypeError),
        ((8, 8), InputError),
        ((8, 0), InputError),
        ((8, -1), InputError),
        ((8, 2.5), InputTypeError),
        ((8, "4"), InputTypeError),
        ((8, True), InputTypeError),
    ],
)
def test_sizes_that_are_none_are_refused(sizes: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="matryoshka"):
        TrainConfig(matryoshka=sizes)


def test_what_cannot_be_truncated_is_refused_before_anything_is_written(
    base: Path, tmp_path: Path
) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(4))
    dim = Encoder.load(base, device="cpu").dim
    out = tmp_path / "out"
    config = TrainConfig(**QUICK, matryoshka=(dim, dim + 1))
    with pytest.raises(InputError, match=f"up to that of the vectors, {dim}, found {dim + 1}"):
        train_nli(base, data, out, config=config)
    config = TrainConfig(**QUICK, matryoshka=(dim,))
    with pytest.raises(InputError, match="not for the objective softmax, whose head"):
        train_nli(base, data, out, objective="softmax", config=config)
    with pytest.raises(InputError, match="matryoshka is not for pairs of query and document"):
        train_reranker(base, data, out, config=config)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_the_command_takes_sizes(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    options = ("--base", base, "--max-steps", 2, "--batch-size", 4, "--device", "cpu")
    arguments = ("train-pairs", data, "-o", tmp_path / "out", *options)
    assert run(*arguments, "--matryoshka", "8,4").status == 0
    refused = run("train-pairs", data, "-o", tmp_path / "no", *options, "--matryoshka", "8,x")
    assert refused.status == 2
    refused = run("train-pairs", data, "-o", tmp_path / "no", *options, "--matryoshka", "9999,8")
    assert refused.status == 1
    assert "--matryoshka must be sizes up to" in refused.err
