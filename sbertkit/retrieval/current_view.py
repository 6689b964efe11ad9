"""The view of an index that new searches use, until the index is closed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sbertkit.errors import InputError
from sbertkit.forks import fork_safe_lock
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.view import View


class CurrentView:
    """A view that can be replaced and closed while threads search.

    Running searches keep the view that they have; after `close`, the last one to end closes the
    files.

    Args:
        path: The index folder, for messages.
        view: The first view.
    """

    def __init__(self, path: Path, view: View) -> None:
        self.manifest = view.manifest
        self._path = path
        self._view: View | None = view
        self._lock = fork_safe_lock()
        self._closed = False
        self._users = 0
        self._process = os.getpid()

    @contextmanager
    def used(self) -> Iterator[View]:
        """The view, whose files stay open during the block.

        Raises:
            InputError: It was closed.
        """
        view = self._enter()
        try:
            yield view
        finally:
            self._leave()

    def replace(self, view: View, seen: Manifest) -> bool:
        """Makes new searches use another view, unless the index was closed.

        Args:
            view: The view.
            seen: The manifest before.

        Returns:
            Whether that was still the manifest; else nothing is replaced.
        """
        with self._lock:
            if self.manifest is not seen:
                return False
            self.manifest = view.manifest
            if not self._closed:
                self._view = view
            return True

    def close(self) -> None:
        """Refuses new searches."""
        with self._lock:
            self._closed = True
            self._forget_other_process()
            unused = self._unused()
        if unused is not None:
            unused.close()

    def _enter(self) -> View:
        with self._lock:
            self._forget_other_process()
            if self._closed or self._view is None:
                raise InputError(f"the index {self._path} was closed; open it again")
            self._users += 1
            return self._view

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            unused = self._unused()
        if unused is not None:
            unused.close()

    def _unused(self) -> View | None:
        """The view if it is to be closed now; given to one caller only."""
        if not self._closed or self._users > 0:
            return None
        view, self._view = self._view, None
        return view

    def _forget_other_process(self) -> None:
        """Forgets the threads of the parent process, which a fork does not copy."""
        if self._process != os.getpid():
            self._process, self._users = os.getpid(), 0
