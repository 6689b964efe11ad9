"""The one place where faiss is imported, with a check that a single build of it is installed."""

import os
from functools import cache
from typing import Any

from sbertkit.errors import MissingDependency

_DISTRIBUTIONS = ("faiss-cpu", "faiss-gpu")


@cache  # looking up what is installed takes longer than searching a small segment
def load_faiss() -> Any:
    """The faiss module.

    Raises:
        MissingDependency: faiss is not installed, or two builds that overwrite each other are.
    """
    installed = [name for name in _DISTRIBUTIONS if _is_installed(name)]
    if len(installed) > 1:
        raise MissingDependency(
            "faiss-cpu and faiss-gpu are both installed and overwrite each other's files; "
            "keep one: pip uninstall -y faiss-cpu faiss-gpu && pip install faiss-cpu"
        )
    try:
        import faiss
    except ImportError as error:
        raise MissingDependency(
            'the index needs faiss: pip install "sbertkit[cpu]" (or "sbertkit[gpu]")'
        ) from error
    if hasattr(os, "register_at_fork"):
        # Forked processes search with one thread: OpenMP's threads do not survive a fork.
        os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))
    return faiss


def _is_installed(name: str) -> bool:
    from importlib import metadata  # here, since the command line imports this module for its help

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
