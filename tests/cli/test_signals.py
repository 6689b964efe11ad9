"""Signals that arrive at a bad moment."""

import os
import signal

import pytest

from sbertkit.cli.signals import held_signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_arrives_after_the_block(number: signal.Signals) -> None:
    met: list[str] = []
    before = signal.signal(number, lambda *_: met.append("signal"))
    try:
        with held_signals():
            os.kill(os.getpid(), number)
            met.append("block")
        met.append("after")
    finally:
        signal.signal(number, before)
    assert met == ["block", "signal", "after"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
