"""Two processes train as one does with the same batches, whatever is trained."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from test_distributed import PROCESSES, together
from test_train_pairs import ROWS, write
from training_cases import rows, weights, write_dev, write_nli
from training_children import command, ended

from sbertkit.errors import InputError
from sbertkit.training.run.collective import average_gradients, gathered, join, use_own_gpu

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

CASES = {
    "softmax": ("train-nli", "nli", "--objective", "softmax"),
    "contrastive": ("train-nli", "nli", "--objective", "contrastive"),
    "cosent": ("train-sts", "sts", "--scale", "0-5"),
    "angle": ("train-sts", "sts", "--scale", "0-5", "--objective", "angle"),
    "triplet": ("train-pairs", "pairs", "--objective", "triplet", "--margin", "1"),
    "caching": ("train-pairs", "pairs", "--mini-batch", "3"),
    "matryoshka": ("train-pairs", "pairs", "--matryoshka", "16,8"),
    "unfreeze": ("train-nli", "nli", "--objective", "softmax", "--unfreeze", "0:head,1:1,2:all"),
    "decay": ("train-pairs", "pairs", "--layer-decay", "0.5", "--accumulation", "2"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base without dropout, and data of each kind."""
    root = tmp_path_factory.mktemp("processes")
    base = tiny_models.bert(root / "base")
    tiny_models.edit_json(
        base / "config.json", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    write_nli(root / "nli.jsonl", rows(9)[:-1])
    write_dev(root / "sts.tsv", rows(7)[:-2])
    write(root / "pairs.jsonl", *ROWS)
    return root


def arguments(root: Path, output: Path, case: tuple[str, ...], batch_size: int) -> list[str]:
    name, kind, *more = case
    (data,) = root.glob(f"{kind}.*")
    return [
        name, str(data), "--base", str(root / "base"), "-o", str(output), *more, "--epochs", "3",
        "--batch-size", str(batch_size), "--lr", "1e-3", "--precision", "fp32", "--device", "cpu",
        "--no-guard", "--quiet",
    ]  # fmt: skip


def losses(folder: Path) -> list[float]:
    found = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in found if "loss" in row]


@pytest.mark.parametrize("name", CASES)
def test_losses_and_weights_are_those_of_one_process(root: Path, name: str) -> None:
    alone, both = root / name / "alone", root / name / "both"
    single = ended(command, arguments(root, alone, CASES[name], 4 * PROCESSES), alone)
    assert single.status == 0, single.said
    for one in together(command, arguments(root, both, CASES[name], 4), both):
        assert one.status == 0, one.said
    assert len(losses(alone)) >= 3
    assert losses(both) == pytest.approx(losses(alone), abs=2e-4)
    expected, found, start = weights(alone), weights(both), weights(root / "base")
    for key, tensor in expected.items():
        if "key.bias" in key:  # whose gradient is only rounding, which Adam makes large
            continue
        torch.testing.assert_close(found[key], tensor, atol=5e-5, rtol=1e-3)
    assert any(not torch.equal(start[key], expected[key]) for key in start)


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """This process is the second of two."""
    known = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**known, "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return monkeypatch


def test_each_process_has_a_gpu_of_its_own(second: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    second.setattr(torch.cuda, "set_device", taken.append)
    second.setattr(torch.cuda, "device_count", lambda: 2)
    use_own_gpu("auto")
    use_own_gpu("cpu")
    assert taken == [1]
    with pytest.raises(InputError, match="the device cuda:1 for process 1 of this machine"):
        use_own_gpu("cuda:1")
    second.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match="found 1 and the device auto for process 1"):
        use_own_gpu("auto")


@pytest.mark.usefixtures("second")
def test_other_devices_are_refused() -> None:
    with pytest.raises(InputError, match="on the CPU or with CUDA, found mps"):
        join(torch.device("mps"))


def test_alone_nothing_is_gathered_or_averaged() -> None:
    vectors = torch.randn(3, 4, requires_grad=True)
    assert torch.equal(gathered(vectors, [3]), vectors)
    assert torch.equal(gathered(vectors, [2]), vectors[:2])  # what does not count is left out
    weight: Any = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    average_gradients([weight])
    assert weight.grad.tolist() == [1, 1]
