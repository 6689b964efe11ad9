"""Locks in a forked process."""

import os
import threading

import pytest

from sbertkit.forks import RenewedLock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    lock = RenewedLock()
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    child = os.fork()
    if child == 0:
        taken = threading.Event()

        def take() -> None:
            with lock, lock:  # it is reentrant
                taken.set()

        threading.Thread(target=take, daemon=True).start()
        os._exit(0 if taken.wait(20) else 1)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(status) == 0
    with lock:
        pass


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_lock_that_the_forking_thread_holds_is_its_own_in_the_child() -> None:
    lock = RenewedLock()
    with lock:
        child = os.fork()
        if child == 0:
            try:
                lock.__exit__()
                os._exit(0)
            finally:
                os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
