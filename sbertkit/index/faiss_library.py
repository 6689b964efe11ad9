"""The one place where faiss is imported, with a check that a single build of it is installed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sbertkit.errors import MissingDependency

_BUILDS = "faiss_[cg]pu-*.dist-info"
"""What pip leaves beside the module of a build; to ask `importlib.metadata` takes 20 ms."""


@cache  # looking up what is installed takes longer than searching a small segment
def load_faiss() -> Any:
    """The faiss module.

    Raises:
        MissingDependency: faiss is not installed, or two builds that overwrite each other are.
    """
    if _installed_builds() > 1:
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


@contextmanager
def faiss_threads(limit: int) -> Iterator[None]:
    """Lets this thread use at most so many threads of faiss.

    A thread without work of its own costs what it takes to wake it, which is far more than a query
    while the cores are busy.
    """
    faiss = load_faiss()
    known = faiss.omp_get_max_threads()
    if limit >= known:
        yield
        return
    faiss.omp_set_num_threads(limit)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(known)


def _installed_builds() -> int:
    spec = find_spec("faiss")
    if spec is None or spec.origin is None:
        return 0
    builds = Path(spec.origin).parents[1].glob(_BUILDS)
    return len({build.name.partition("-")[0] for build in builds})
