"""The torch backend: several streams, one device, threads as they were."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from sbertkit.encoder import Encoder
from sbertkit.encoder.backends.torch import choose_device
from sbertkit.errors import InputError

TEXTS = [f"text number {number} " + "and more " * (number % 9) for number in range(60)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_streams_gives_the_same(tiny_encoder: Encoder, threads: int) -> None:
    expected = tiny_encoder.encode(TEXTS)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = tiny_encoder.encode(TEXTS, batch_tokens=64)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.abs(found - expected).max() <= 1e-5


def test_an_error_in_a_stream_is_raised_and_the_threads_are_as_before(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")

    def fail(*_: object) -> torch.Tensor:
        raise MemoryError("no room")

    monkeypatch.setattr(encoder.torch.network, "forward", fail)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(MemoryError, match="no room"):
            encoder.encode(TEXTS, batch_tokens=32)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", ["cpu", "auto"])
def test_a_device_that_is_there(name: str) -> None:
    assert choose_device(name).type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize("name", ["gpu", "", "CPU 1", "meta", "privateuseone", "cuda:", "cuda:x"])
def test_a_name_that_is_no_device_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(InputError, match=f"unknown device '{name}'; expected auto, cpu, cuda"):
        choose_device(name)


@pytest.mark.parametrize("name", ["cuda:99", "mps"])
def test_a_device_that_is_not_there_is_refused_by_name(name: str) -> None:
    if name == "mps" and torch.backends.mps.is_available():
        pytest.skip("it is there")
    with pytest.raises(InputError, match=f"there is no device '{name}'") as no:
        choose_device(name)
    assert "\n" not in str(no.value)
    assert len(str(no.value)) < 120


def test_a_model_in_training_encodes_without_dropout(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    expected = encoder.encode(TEXTS)
    encoder.torch.network.train()
    np.testing.assert_array_equal(encoder.encode(TEXTS), expected)
    assert not any(module.training for module in encoder.torch.network.modules())


def test_encoding_leaves_gradients_as_they_were(tiny_encoder: Encoder) -> None:
    assert torch.is_grad_enabled()
    tiny_encoder.encode(TEXTS)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_gives_the_vectors_of_the_cpu(tiny_folder: Callable[[str], Path]) -> None:
    for architecture in ("bert", "xlnet", "gpt2"):
        folder = tiny_folder(architecture)
        on_cpu = Encoder.load(folder, pooling="mean", device="cpu")
        on_cuda = Encoder.load(folder, pooling="mean", device="cuda")
        assert np.abs(on_cpu.encode(TEXTS) - on_cuda.encode(TEXTS)).max() <= 1e-4
        assert on_cuda.fingerprint == on_cpu.fingerprint
