"""Hashing files while others are hashed and opened."""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from sbertkit.data.streams import reading
from sbertkit.files import inside, open_regular
from sbertkit.retrieval.results import Problem
from sbertkit.sealed import SealedFile

_THREADS = 2
"""One hashes as much as a core can, and a first search has work of its own meanwhile."""


class _Pending(NamedTuple):
    """A file that is being hashed, and what will be wrong with it."""

    file: BufferedReader
    fault: Future[str | None]


class Hashing:
    """Hashes files in threads of its own, in the order they come, until the end of the block.

    Args:
        root: The folder that they are in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(_THREADS)
        self._pending: dict[SealedFile, _Pending] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        for pending in self._pending.values():
            pending.file.close()

    def start(self, entry: SealedFile) -> None:
        """Opens a file, so that a writer may remove it, and begins to hash it.

        Raises:
            InputError: It is missing, or no regular file.
            StorageError: It cannot be opened.
        """
        if entry in self._pending:
            return
        with reading(str(self._root / entry.path)):
            file = open_regular(inside(self._root, entry.path))
        self._pending[entry] = _Pending(file, self._pool.submit(self._fault, entry, file))

    def wait(self, entries: Iterable[SealedFile]) -> Problem | None:
        """The first problem of some files, as far as they were started, once they are hashed.

        Raises:
            StorageError: One cannot be read.
        """
        for entry in entries:
            fault = self._pending[entry].fault.result() if entry in self._pending else None
            if fault is not None:
                return Problem(entry.path, fault)
        return None

    def _fault(self, entry: SealedFile, file: BufferedReader) -> str | None:
        with file, reading(str(self._root / entry.path)):
            return entry.hash_fault(file)
