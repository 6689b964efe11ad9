"""What the processes of a distributed run do together: begin, gather vectors, average gradients."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor, nn
from torch.nn import functional

from sbertkit.errors import InputError, TrainingStopped
from sbertkit.training.run.distributed import launch

TIMEOUT = timedelta(minutes=10)
"""How long a process waits for the others; what each does alone, such as saving, must be faster."""
_BUCKET = 2**25
"""Numbers per message, so that all gradients need not be in memory twice."""


def use_own_gpu(device: str) -> None:
    """Makes CUDA's current device that of this process, where several share a machine.

    Raises:
        InputError: There are fewer GPUs than processes, or all would use the same one.
    """
    if launch().processes == 1 or device == "cpu" or not torch.cuda.is_available():
        return
    number, found = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if ":" in device or number >= found:
        raise InputError(
            f"each process needs a GPU of its own, found {found} and the device {device} for "
            f"process {number} of this machine; start at most {found}, with device (--device) cuda"
        )
    torch.cuda.set_device(number)


def join(device: torch.device) -> None:
    """Meets the other processes, if there are any; the Trainer uses the same group.

    Raises:
        InputError: They cannot exchange what is on such a device.
        TrainingStopped: They did not come within `TIMEOUT`.
    """
    if launch().processes == 1:
        return
    on_cpu = device.type == "cpu"
    if not on_cpu and device.type != "cuda":
        raise InputError(
            f"several processes train on the CPU or with CUDA, found {device.type}; start one, or "
            "pass device (--device) cpu"
        )
    with peer_errors():
        PartialState(cpu=on_cpu, timeout=TIMEOUT, **({"backend": "gloo"} if on_cpu else {}))


def check_same(content: str, device: torch.device) -> None:
    """Nothing, if all processes have the same content.

    Raises:
        InputError: They have not.
    """
    if launch().processes == 1:
        return
    digest = int.from_bytes(hashlib.sha256(content.encode()).digest()[:7])
    own = torch.tensor([digest, -digest], device=device)
    with peer_errors():
        dist.all_reduce(own, dist.ReduceOp.MAX)
    if own[0] != -own[1]:
        raise InputError(
            "the processes of this run have other bases, data, settings or checkpoints; give all "
            "of them the same files and the same command"
        )


def wait_for_all() -> None:
    """Returns when all processes have come so far.

    Raises:
        TrainingStopped: One has ended.
    """
    if launch().processes > 1:
        with peer_errors():
            dist.barrier()


def gathered(own: Tensor, sizes: Sequence[int]) -> Tensor:
    """The vectors of all processes, (N, dim), one process after another.

    Each process then computes the loss of the whole batch, whose gradient is complete for its own
    vectors. It is multiplied by the number of processes, since `average_gradients` divides by it.

    Args:
        own: Those of this process, of which the first count.
        sizes: How many of each process count.
    """
    rank, processes = launch()
    counted = own[: sizes[rank]]
    if processes == 1:
        return counted
    padded = functional.pad(counted, (0, 0, 0, max(sizes) - sizes[rank])).contiguous()
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded.detach())
    if counted.requires_grad:
        counted.register_hook(  # type: ignore[no-untyped-call]
            lambda gradient: gradient * processes
        )
    parts[rank] = counted
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replaces each gradient by its mean over all processes, whose parameters move alike."""
    processes = launch().processes
    if processes == 1:
        return
    gradients = [one.grad for one in parameters if one.grad is not None]
    for bucket in _buckets(gradients):
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        dist.all_reduce(flat)
        parts = torch.split(flat.div_(processes), [gradient.numel() for gradient in bucket])
        for gradient, part in zip(bucket, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Gradients of one type, as many as a message may have."""
    bucket: list[Tensor] = []
    for gradient in gradients:
        full = sum(one.numel() for one in bucket) + gradient.numel() > _BUCKET
        if bucket and (full or gradient.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket


@contextmanager
def peer_errors() -> Iterator[None]:
    """Turns what the network reports when another process has ended into one error.

    Raises:
        TrainingStopped: Another process has ended, or does not answer.
    """
    try:
        yield
    except RuntimeError as error:
        if launch().processes == 1 or not _is_of_network(error):
            raise
        raise TrainingStopped(
            "another process of this run has ended or does not answer; see its own message, and "
            "continue with resume (--resume) if a checkpoint was saved"
        ) from error


def _is_of_network(error: RuntimeError) -> bool:
    text = str(error).lower()
    words = ("gloo", "nccl", "connection", "timed out", "timeout")
    return isinstance(error, dist.DistError) or any(word in text for word in words)
