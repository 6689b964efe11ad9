"""Batches side by side on the cores of this process, never more than it has."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def usable_cores() -> int:
    """Cores that this process may use, no more than ``OMP_NUM_THREADS`` where that is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores, int(wanted)) if wanted.isdecimal() and int(wanted) else cores


class _Cores:
    """What all encoders of the process share, whatever thread calls them."""

    def __init__(self) -> None:
        self.count = usable_cores()
        self._free = self.count
        self._change = threading.Condition()

    @contextmanager
    def held(self, wanted: int) -> Iterator[None]:
        """Waits for so many cores, or all there are, and holds them for the block."""
        taken = min(wanted, self.count)
        with self._change:
            self._change.wait_for(lambda: self._free >= taken)
            self._free -= taken
        try:
            yield
        finally:
            with self._change:
                self._free += taken
                self._change.notify_all()


_cores = _Cores()


def _begin_anew() -> None:
    """In a forked process, whose parent's threads held cores, and do not exist here."""
    global _cores  # one for the process
    _cores = _Cores()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def run_streams(
    run_one: Callable[[Rows], None],
    plan: Sequence[Rows],
    streams: int,
    *,
    cores: int = 1,
    initializer: Callable[[], object] = lambda: None,
) -> None:
    """Runs every batch of a plan, so many at a time; one stream is the caller's own thread.

    Args:
        run_one: Runs the batch of some rows.
        plan: Rows of each batch.
        streams: How many threads there are at most.
        cores: How many cores a batch uses.
        initializer: Called once in each thread.
    """

    def run_on_cores(rows: Rows) -> None:
        with _cores.held(cores):
            run_one(rows)

    streams = min(streams, len(plan))
    if streams < 2:
        for rows in plan:
            run_on_cores(rows)
        return
    with ThreadPoolExecutor(streams, "sbertkit-encode", initializer=initializer) as threads:
        for _ in threads.map(run_on_cores, plan):
            pass
