"""Batches side by side: a thread each, which computes on one core."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def run_streams(
    run_one: Callable[[Rows], None],
    plan: Sequence[Rows],
    streams: int,
    initializer: Callable[[], object] = lambda: None,
) -> None:
    """Runs every batch of a plan, so many at a time; one stream is the caller's own thread.

    Args:
        run_one: Runs the batch of some rows.
        plan: Rows of each batch.
        streams: How many threads there are at most.
        initializer: Called once in each thread.
    """
    streams = min(streams, len(plan))
    if streams < 2:
        for rows in plan:
            run_one(rows)
        return
    with ThreadPoolExecutor(streams, "sbertkit-encode", initializer=initializer) as threads:
        for _ in threads.map(run_one, plan):
            pass
