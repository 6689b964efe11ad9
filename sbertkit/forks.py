"""Locks that a forked process finds free, whatever other threads did when it was forked."""

import os
import threading
import weakref

_registry = threading.RLock()
_locks: "weakref.WeakSet[threading.RLock]" = weakref.WeakSet()
_acquired: "list[threading.RLock]" = []
_renewed: "weakref.WeakSet[RenewedLock]" = weakref.WeakSet()


def fork_safe_lock() -> threading.RLock:
    """A new reentrant lock, for which a fork waits, so that no child inherits it acquired.

    What it guards (also locks inside a C library) is therefore at rest in every child. It must not
    be acquired while another such lock is, since a fork acquires all of them in any order.
    """
    lock = threading.RLock()
    with _registry:  # none appears between the moment a fork has acquired all and the fork
        _locks.add(lock)
    return lock


class RenewedLock:
    """A reentrant lock that a forked process finds free, and no fork waits for.

    For what may take long, and what a child can do again that another thread has only begun.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        with _registry:
            _renewed.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Makes it free in a forked process, unless the thread that forked holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


def _renew_all() -> None:
    _release_all()
    for lock in _renewed:
        lock.renew()


def _acquire_all() -> None:
    _registry.acquire()
    _acquired.extend(_locks)
    for lock in _acquired:
        lock.acquire()


def _release_all() -> None:
    for lock in _acquired:
        lock.release()
    _acquired.clear()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_all, after_in_parent=_release_all, after_in_child=_renew_all
    )
