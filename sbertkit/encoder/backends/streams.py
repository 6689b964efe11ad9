"""Batches side by side on the cores of this process, never more than it has."""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.encoder.backends.first_use import FirstUse

Rows = npt.NDArray[np.int64]


def usable_cores() -> int:
    """Cores that this process may use.

    Those of its affinity, no more than a container's share of time allows, and no more than
    ``OMP_NUM_THREADS`` where that is set.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    cores = min(cores, quota_cores() or cores)
    return min(cores, int(wanted)) if wanted.isdecimal() and int(wanted) else cores


def quota_cores(root: Path = Path("/")) -> int | None:
    """Cores that are worth using under the time quota of this process's control group.

    Source: cgroup v2 (``cpu.max``) and v1 (``cpu.cfs_quota_us``), Linux kernel documentation.

    Args:
        root: Where the system's files lie.

    Returns:
        The quota rounded up; ``None`` where there is none.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    quotas: list[int | None] = []
    for group in groups:
        number, controllers, path = group.split(":", 2)
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("" if number == "0" else "cpu")
        own = top / path.lstrip("/")
        folders = [folder for folder in (own, *own.parents) if folder.is_relative_to(top)]
        quotas.extend(_quota_of(folder) for folder in folders)
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_of(folder: Path) -> int | None:
    """The quota of one control group in cores, rounded up."""
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        if quota != "max" and int(quota) > 0:
            return math.ceil(int(quota) / int(period))
    return None


class Streams(NamedTuple):
    """How batches run side by side; one stream is the caller's own thread.

    Attributes:
        threads: How many threads there are at most.
        cores: How many cores a batch uses.
        initializer: Called once in each thread, the caller's too, where there are several.
    """

    threads: int
    cores: int = 1
    initializer: Callable[[], object] = lambda: None


class _Cores:
    """What all encoders of the process share, whatever thread calls them.

    Who asks first gets them first, so that a batch that needs all is not kept from them by others.
    """

    def __init__(self) -> None:
        self.count = usable_cores()
        self._free = self.count
        self._waiting: deque[object] = deque()
        self._change = threading.Condition()

    @contextmanager
    def acquired(self, wanted: int) -> Iterator[None]:
        """Waits for so many cores, or all there are, and keeps them for the block."""
        taken, ticket = min(wanted, self.count), object()
        with self._change:
            self._waiting.append(ticket)
            try:
                self._change.wait_for(lambda: self._waiting[0] is ticket and self._free >= taken)
                self._free -= taken
            finally:
                self._waiting.remove(ticket)
                self._change.notify_all()
        try:
            yield
        finally:
            with self._change:
                self._free += taken
                self._change.notify_all()


_cores = _Cores()


def _reset_cores() -> None:
    """In a forked process, whose parent's threads had cores, and do not exist here."""
    global _cores  # one for the process
    _cores = _Cores()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_cores)


def run_streams(
    run_one: Callable[[Rows], None], plan: Sequence[Rows], streams: Streams, first_use: FirstUse
) -> None:
    """Runs every batch of a plan, in any order, so many at a time.

    The first batch that a model ever runs in this process runs alone.

    Args:
        run_one: Runs the batch of some rows.
        plan: Rows of each batch.
        streams: How they run side by side.
        first_use: Whether the model has been run.
    """

    def run_on_cores(rows: Rows) -> None:
        with _cores.acquired(streams.cores):
            run_one(rows)

    if len(plan) == 0:
        return
    if min(streams.threads, len(plan)) > 1:
        streams.initializer()  # so that the first batch is computed as all the others
    if first_use.run(lambda: run_on_cores(plan[0])):
        plan = plan[1:]
    count = min(streams.threads, len(plan))
    if count < 2:
        for rows in plan:
            run_on_cores(rows)
        return
    threads = ThreadPoolExecutor(count, "sbertkit-encode", initializer=streams.initializer)
    with threads:
        for _ in threads.map(run_on_cores, plan):
            pass
