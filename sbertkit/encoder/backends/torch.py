"""The torch backend: CPU with one single-thread stream per core, CUDA or MPS with one stream."""

import copy
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse
from sbertkit.encoder.backends.streams import Streams, quota_cores
from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError

_DEVICE = re.compile(r"cpu|mps|cuda(:\d+)?")
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_BATCH_TOKENS = {"cpu": 1_024, "mps": 8_192, "cuda": 32_768}


def choose_device(name: str) -> torch.device:
    """The device of that name; ``auto`` takes CUDA, then MPS, then the CPU.

    Raises:
        InputError: There is no such device here.
    """
    if name == "auto":
        if torch.cuda.is_available():
            name = "cuda"
        elif torch.backends.mps.is_available():
            name = "mps"
        else:
            name = "cpu"
    if not isinstance(name, str) or not _DEVICE.fullmatch(name):
        raise InputError(f"unknown device {name!r}; expected auto, cpu, cuda, cuda:0 or mps")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"there is no device {name!r} that torch {torch.__version__} can use here; choose "
            "auto or cpu"
        ) from error
    return device


class TorchBackend:
    """Runs a network with torch.

    Args:
        network: From token ids (B, T), attention mask and token types to vectors (B, dim), as
            `Network`; it is moved to the device.
        device: Where to run.
        precision: ``fp32``, ``bf16`` or ``fp16``; below fp32 the network stays as it is and a copy
            is run, pooling and post-processing of it in float32.
    """

    def __init__(self, network: nn.Module, device: torch.device, precision: str = "fp32") -> None:
        network = network.to(device)
        self._network = network if precision == "fp32" else _lowered(network, precision)
        self._device = device
        self._process = os.getpid()
        self.first_use = FirstUse()
        quota = quota_cores()
        if quota is not None and quota < torch.get_num_threads():
            torch.set_num_threads(quota)  # torch counts the cores of the machine
        self.batch_tokens = _BATCH_TOKENS.get(device.type, _BATCH_TOKENS["cuda"])

    @contextmanager
    def streams(self, batches: int) -> Iterator[Streams]:
        """On the CPU one per core for enough batches, else one that uses all."""
        if self._device.type != "cpu":
            yield Streams(1)
            return
        if os.getpid() != self._process:
            # OpenMP's threads do not survive a fork, and waiting for them never ends.
            torch.set_num_threads(1)
        threads = torch.get_num_threads()
        if batches < 2 * threads:
            yield Streams(1, cores=threads)
            return
        # One thread per batch keeps every core busy without the waits of a shared matrix product.
        try:
            yield Streams(threads, initializer=partial(torch.set_num_threads, 1))
        finally:
            # The count of some math libraries is global, so that the streams have changed it here.
            torch.set_num_threads(threads)

    def embed(self, batch: Batch) -> Vectors:
        """The vectors of a batch, (B, dim)."""
        with torch.inference_mode():
            vectors = self._network(*batch_tensors(batch, self._device))
            result: Vectors = vectors.float().cpu().numpy()
        return result


def batch_tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
    """Token ids, attention mask and token types, if any, of a batch on a device; each (B, T)."""
    types = batch.token_type_ids
    return (
        torch.from_numpy(batch.input_ids).to(device),
        torch.from_numpy(batch.attention_mask).to(device),
        None if types is None else torch.from_numpy(types).to(device),
    )


def _lowered(network: nn.Module, precision: str) -> nn.Module:
    """A copy whose encoder computes in 16 bits; what follows it stays in float32.

    So does the head of a classifier, whose scores would be equal too often in 16 bits.
    """
    lowered = copy.deepcopy(network)
    transformer = lowered.get_submodule("transformer")  # a Network's
    transformer.to(_DTYPES[precision])
    base = getattr(transformer, "base_model_prefix", "")
    if hasattr(transformer, base):  # it is a model on top of an encoder
        for name, part in transformer.named_children():
            if name != base:
                part.float().register_forward_pre_hook(_in_float32)
    return lowered


def _in_float32(_module: nn.Module, inputs: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(one.float() if isinstance(one, Tensor) else one for one in inputs)
