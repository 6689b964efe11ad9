"""Freed memory goes back to the system."""

import subprocess
import sys

import pytest

PROGRAM = """
from pathlib import Path
from sbertkit.memory import give_back

def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

blocks = [bytearray(2_000) for _ in range(50_000)]  # 100 MB that malloc has
kept = blocks[-1]  # at the end of the heap
del blocks
before = anonymous()
give_back()
print(before - anonymous())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_what_small_objects_took_is_given_back() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True
    )
    assert int(ran.stdout) > 50_000  # kB
