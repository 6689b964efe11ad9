"""Commands that are measured from the start of their process to its end."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

_RUNNER = """
import json, os, subprocess, sys, time

started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
output = process.stdout.read().decode()
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - started
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([seconds, cpu, usage.ru_maxrss, os.waitstatus_to_exitcode(status), output]))
"""
"""Run in a small process, since the peak memory of a child includes its parent's at the start."""


class Command:
    """A command that is timed from its start to its end.

    Attributes:
        cpu_seconds: Those of each run, of all its threads.
        kilobytes: The peak memory of each run.
        output: What the last run wrote to its standard output.

    Args:
        arguments: The command.
        environment: Variables that are set or changed.
    """

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._arguments = [sys.executable, "-S", "-c", _RUNNER, *arguments]
        self._environment = {**os.environ, **(environment or {})}
        self.cpu_seconds: list[float] = []
        self.kilobytes: list[int] = []
        self.output = ""

    def seconds(self) -> float:
        """Runs it once."""
        done = subprocess.run(
            self._arguments,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=self._environment,
        )
        seconds, cpu, kilobytes, status, self.output = json.loads(done.stdout)
        if status != 0:
            raise SystemExit(f"{self._arguments[4:8]} failed with {status}")
        self.cpu_seconds.append(float(cpu))
        self.kilobytes.append(kilobytes)
        return float(seconds)
