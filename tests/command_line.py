"""What a run of the command line gives."""

from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    """Exit status, standard output and standard error."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]
