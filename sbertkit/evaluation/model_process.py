"""Measures one encoder; `main` is what `measure_models` runs in a process of its own."""

import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sbertkit.errors import SbertkitError
from sbertkit.evaluation.model_cost import ModelCost, ModelJob, answer_line
from sbertkit.schema import read_record

if TYPE_CHECKING:
    from sbertkit.encoder.report import EncodeReport

_RUNS = 5
_SECONDS = 2.0
"""More runs are made up to that many, or until they took so long together."""
_STATUS = Path("/proc/self/status")


def main() -> None:
    """Reads a `ModelJob` from standard input; its last line of output is the answer."""
    logging.disable(logging.WARNING)  # truncated texts, known prompts: nothing that costs
    try:
        line = answer_line(cost=_measure(read_record(sys.stdin.read(), ModelJob, "the job")))
    except SbertkitError as error:
        line = answer_line(error=error.in_shell)
    print(f"\n{line}")  # noqa: T201 - read by the process that started this one


def _measure(job: ModelJob) -> ModelCost:
    started = time.perf_counter()
    from sbertkit.encoder import Encoder

    encoder = Encoder.load(
        job.model,
        backend="torch",
        device=job.device,
        trust_remote_code=job.trust_remote_code,
    )
    encoder.encode(job.texts[:1])
    load_seconds = time.perf_counter() - started
    reports: list[EncodeReport] = []
    while len(reports) < _RUNS and sum(one.seconds for one in reports) < _SECONDS:
        reports.append(encoder.encode_with_report(job.texts).report)
    fastest = min(reports, key=lambda one: one.seconds)
    return ModelCost(
        model=job.model,
        dim=encoder.dim,
        max_tokens=encoder.max_tokens,
        parameters=sum(one.numel() for one in encoder.torch.network.parameters()),
        load_seconds=load_seconds,
        texts=fastest.rows,
        tokens=fastest.tokens,
        encode_seconds=fastest.seconds,
        memory=_memory(),
        device_memory=_device_memory(encoder.device),
        device=encoder.device,
        precision=encoder.precision,
    )


def _memory() -> int:
    """Most bytes that this process ever had resident."""
    try:
        # What getrusage gives on Linux counts the process that started this one, too.
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def _device_memory(device: str) -> int:
    if device != "cuda":
        return 0
    import torch

    return int(torch.cuda.max_memory_allocated())
