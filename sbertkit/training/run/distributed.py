"""Distributed runs: this process among those that torchrun, or accelerate's launcher, started."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sbertkit.errors import InputError

_NEEDED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_NUMBERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
_OF_MPI = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_GRACE = 5.0
"""Seconds that a launcher has to end all processes after the first has ended."""
_SHARDING = ("ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP", "ACCELERATE_USE_MEGATRON_LM")


class Launch(NamedTuple):
    """This process among those that train together.

    Attributes:
        rank: Its number, from 0.
        processes: How many there are.
    """

    rank: int
    processes: int

    @property
    def is_main(self) -> bool:
        """Whether this process writes; of several that were started together, one does."""
        return self.rank == 0


def launch() -> Launch:
    """What the environment declares; a process that was started alone is the only one.

    Raises:
        InputError: Variables of a launcher are missing, contradict each other, or ask for what
            this trainer does not do.
    """
    for name in _SHARDING:
        if os.environ.get(name, "").lower() in ("1", "true", "yes"):
            raise InputError(
                f"{name} is set, but weights are not sharded here; unset it, or configure "
                "accelerate for plain data parallelism"
            )
    numbers = {name: _whole(name) for name in _NUMBERS}
    processes = numbers["WORLD_SIZE"] or 1
    if processes == 1 and numbers["LOCAL_RANK"] is None:  # a RANK alone is stale
        _refuse_mpi()
        return Launch(0, 1)
    missing = [name for name in _NEEDED if not os.environ.get(name)]
    if missing:
        known = "WORLD_SIZE" if processes > 1 else "LOCAL_RANK"
        raise InputError(
            f"{known} is {os.environ[known]}, but {', '.join(missing)} not set; start with "
            f"torchrun, which sets all of them, or unset {known}"
        )
    rank = numbers["RANK"] or 0
    if rank >= processes:
        raise InputError(f"RANK must be below WORLD_SIZE ({processes}), found {rank}")
    return Launch(rank, processes)


@contextmanager
def warned_once() -> Iterator[None]:
    """Lets one process alone log below errors in the block, since all find the same."""
    logger = logging.getLogger("sbertkit")
    before = logger.level
    if not launch().is_main:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def let_main_speak() -> None:
    """Waits before this process reports an error, in case all processes have the same.

    The first one then reports it, and the launcher ends the others meanwhile.
    """
    try:
        alone = launch().is_main
    except InputError:
        return
    if not alone:
        time.sleep(_GRACE)


def _whole(name: str) -> int | None:
    text = os.environ.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InputError(
            f"the environment variable {name} must be a whole number, found {text!r}; unset it, or "
            "start with torchrun"
        )
    return int(text)


def _refuse_mpi() -> None:
    for name in _OF_MPI:
        if (_whole(name) or 1) > 1:
            raise InputError(
                f"{name} shows that mpirun started several processes; start with torchrun"
            )
