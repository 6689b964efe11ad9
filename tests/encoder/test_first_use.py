"""A native library is first used by one thread alone; cores are those that a container grants."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sbertkit.encoder.backends import streams
from sbertkit.encoder.backends.first_use import FirstUse, alone


class _Meter:
    """Counts how many threads do work at a time."""

    def __init__(self) -> None:
        self.calls = self.max = self._now = 0
        self._lock = threading.Lock()

    def work(self) -> None:
        """Takes a moment."""
        with self._lock:
            self.calls += 1
            self._now += 1
            self.max = max(self.max, self._now)
        time.sleep(0.02)
        with self._lock:
            self._now -= 1


def _together(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)


def test_first_uses_of_several_models_never_overlap() -> None:
    meter = _Meter()
    models = [FirstUse() for _ in range(4)]
    _together(*(partial(model.run, meter.work) for model in models))
    assert (meter.calls, meter.max) == (4, 1)


def test_a_model_has_one_first_use_however_many_threads_come() -> None:
    meter, first_use = _Meter(), FirstUse()
    _together(*(lambda: first_use.run(meter.work) for _ in range(4)))
    assert meter.calls == 1
    assert not first_use.run(meter.work)


def test_a_first_use_that_fails_is_none() -> None:
    first_use = FirstUse()
    with pytest.raises(ZeroDivisionError):
        first_use.run(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert first_use.run(lambda: None)


def test_the_first_batch_of_a_model_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "usable_cores", lambda: 4)
    monkeypatch.setattr(streams, "_cores", streams._Cores())
    started: list[int] = []
    beside_first: list[int] = []

    def run_one(rows: streams.Rows) -> None:
        started.append(int(rows[0]))
        time.sleep(0.05)
        if rows[0] == 0:
            beside_first.extend(started)

    streams.run_streams(
        run_one, [np.array([number]) for number in range(9)], streams.Streams(4), FirstUse()
    )
    assert beside_first == [0]
    assert sorted(started) == list(range(9))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_a_first_use_and_its_child_can_have_one() -> None:
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        with alone():
            inside.set()
            time.sleep(0.2)
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if done.is_set() and FirstUse().run(lambda: None) else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join(10)


_TWO_ENCODERS = """
import sys, threading
sys.setswitchinterval(1e-6)
from sbertkit import Encoder
folders, backend = sys.argv[1:3], sys.argv[3]
texts = [f"text number {number}" for number in range(300)]
shapes = []
def work(folder):
    shapes.append(Encoder.load(folder, backend=backend).encode(texts).shape)
threads = [threading.Thread(target=work, args=(folder,)) for folder in folders]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(shapes)
"""


@pytest.mark.parametrize("backend", ["torch", "onnx", "openvino"])
def test_two_threads_that_first_use_two_encoders_end(
    backend: str, tiny_bert: Path, tmp_path: Path
) -> None:
    library = {"onnx": "onnxruntime"}.get(backend, backend)
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    folders = [str(tiny_bert)] * 2
    if backend != "torch":
        from sbertkit.encoder import Encoder

        folders = [str(tmp_path / "one"), str(tmp_path / "two")]
        for folder in folders:
            Encoder.load(tiny_bert, pooling="mean").export(folder)
    ran = subprocess.run(
        [sys.executable, "-c", _TWO_ENCODERS, *folders, backend],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.strip() == "[(300, 32), (300, 32)]"


def _control_group(root: Path, lines: str, files: dict[str, str]) -> Path:
    for name, content in {"proc/self/cgroup": lines, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")
    return root


@pytest.mark.parametrize(
    ("lines", "files", "cores"),
    [
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"sys/fs/cgroup/a/cpu.max": "50000 100000\n"}, 1),
        (
            "0::/a/b\n",
            {
                "sys/fs/cgroup/a/cpu.max": "400000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n",
            },
            3,
        ),
        (
            "4:cpu,cpuacct:/a\n2:memory:/a\n",
            {
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            "4:cpu,cpuacct:/\n",
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        ("0::/\n", {"sys/fs/cgroup/cpu.max": "nonsense\n"}, None),
    ],
)
def test_cores_follow_the_time_quota_of_the_control_group(
    lines: str, files: dict[str, str], cores: int | None, tmp_path: Path
) -> None:
    assert streams.quota_cores(_control_group(tmp_path, lines, files)) == cores


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert streams.quota_cores(tmp_path) is None


def test_a_batch_that_needs_all_cores_is_not_kept_from_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "usable_cores", lambda: 2)
    cores = streams._Cores()
    stop, done = threading.Event(), threading.Event()

    def small() -> None:
        while not stop.is_set():
            with cores.acquired(1):
                time.sleep(0.01)

    def large() -> None:
        with cores.acquired(2):
            done.set()

    others = [threading.Thread(target=small, daemon=True) for _ in range(4)]
    for thread in others:
        thread.start()
    time.sleep(0.05)
    threading.Thread(target=large, daemon=True).start()
    assert done.wait(60)
    stop.set()
    for thread in others:
        thread.join(60)
    with cores.acquired(2):
        assert not cores._waiting
