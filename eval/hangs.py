"""Whether any job hangs: processes of the main jobs, more at a time than there are cores.

python eval/hangs.py [--runs 30] [--first-uses 200] [--only JOB ...]

A job that has not ended within its limit is counted as hung and killed. First uses are those of
a runtime by two threads, each of which loads an encoder, with the interpreter switching threads as
often as it can. With SBERTKIT_DATA, `train-nli` and `eval sts` read real data, else those two are
left out.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from recording import Entries, Figures, arguments_of

from sbertkit import Encoder
from sbertkit.encoder.resolve import BUNDLED_NAME

_CONCURRENCY = 4
"""Jobs at the same time."""

_LIMIT = 900.0
"""Seconds after which a job counts as hung."""

_RUNTIMES = ("torch", "onnx", "openvino")

_FIRST_USE = """
import sys, threading
sys.setswitchinterval(1e-6)
from sbertkit import Encoder
folder, backend = sys.argv[1:]
texts = [f"line number {number} about things" for number in range(300)]
shapes = []
def work():
    shapes.append(Encoder.load(folder, backend=backend).encode(texts).shape)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(shapes) == 2
"""


class Ended(NamedTuple):
    """How a process ended: its status (None: it hung) and its seconds."""

    status: int | None
    seconds: float


def main() -> None:
    """Runs the missing jobs."""
    parser = arguments_of(__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first-uses", type=int, default=200)
    parser.add_argument("--signals", type=int, default=30)
    parser.add_argument("--only", nargs="*", default=[], metavar="JOB")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    entries = Entries("hangs", ["sbertkit", "eval/hangs.py"])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        jobs = _jobs(work)
        first_uses = {} if arguments.only else _first_uses(work)
        if arguments.only:
            jobs = {name: jobs[name] for name in arguments.only}
        for name, command in first_uses.items():
            runs = arguments.first_uses if name == "openvino" else arguments.runs
            _measure(entries, f"first use, {name}", command, runs, work)
        for name, command in jobs.items():
            _measure(entries, name, command, arguments.runs, work)
        for name, command in jobs.items():
            _measure(entries, f"{name}, signal", command, arguments.signals, work, interrupt=True)


def _measure(
    entries: Entries,
    name: str,
    command: Sequence[str],
    runs: int,
    work: Path,
    *,
    interrupt: bool = False,
) -> None:
    def run(number: int) -> Ended:
        chance = random.Random(f"{name} {number}") if interrupt else None
        filled = [part.format(number=f"{name}-{number}".replace(" ", "")) for part in command]
        return _run(filled, work, chance)

    def measure() -> Figures:
        with ThreadPoolExecutor(_CONCURRENCY) as threads:
            return _figures(list(threads.map(run, range(runs))), interrupt=interrupt)

    entries.measure(name, {"runs": runs, "concurrency": _CONCURRENCY}, measure)


def _figures(ended: Sequence[Ended], *, interrupt: bool) -> Figures:
    expected = (0, 130, 143) if interrupt else (0,)
    seconds = sorted(one.seconds for one in ended if one.status is not None)
    return {
        "runs": len(ended),
        "hung": sum(one.status is None for one in ended),
        "failed": sum(one.status is not None and one.status not in expected for one in ended),
        "median_seconds": round(seconds[len(seconds) // 2], 2),
        "max_seconds": round(seconds[-1], 2),
    }


def _run(command: Sequence[str], work: Path, chance: random.Random | None) -> Ended:
    """Runs a process; with `chance` it gets a signal at a random time, from which seconds count."""
    process = subprocess.Popen(
        command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    started = time.monotonic()
    if chance is not None:
        # Not before Python has read the program, while the system's default still applies.
        time.sleep(chance.uniform(1.0, 12.0))
        started = time.monotonic()
        process.send_signal(chance.choice((signal.SIGINT, signal.SIGTERM)))
    try:
        status = process.wait(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return Ended(None, _LIMIT)
    return Ended(status, time.monotonic() - started)


def _first_uses(work: Path) -> dict[str, Sequence[str]]:
    Encoder.load(BUNDLED_NAME, backend="torch").export(work / "exported")
    folders = {"torch": BUNDLED_NAME, "onnx": "exported", "openvino": "exported"}
    return {
        name: (sys.executable, "-c", _FIRST_USE, folders[name], name)
        for name in reversed(_RUNTIMES)
    }


def _jobs(work: Path) -> dict[str, Sequence[str]]:
    """The main jobs by name; ``{number}`` gives every run its own output."""
    for name, count in (("thousand", 1_000), ("six_thousand", 6_000)):
        lines = (f"line number {number} about things\n" for number in range(count))
        (work / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    long = (
        " ".join(f"{number}.{word} of many words." for word in range(2_000)) for number in range(8)
    )
    (work / "long.txt").write_text("\n".join(long), encoding="utf-8")
    sbertkit = (sys.executable, "-m", "sbertkit")
    index = work / "index"
    subprocess.run([*sbertkit, "index", "six_thousand.txt", "-o", str(index)], cwd=work, check=True)
    truncated = ("index", "long.txt", "-o", "truncated", "--long", "truncate")
    subprocess.run([*sbertkit, *truncated], cwd=work, check=True)
    trained = ("--kind", "ivfpq")
    subprocess.run(
        [*sbertkit, "index", "six_thousand.txt", "-o", "trained", *trained], cwd=work, check=True
    )
    upgrade, tune = (f"exec {sys.executable} -m sbertkit {name}" for name in ("upgrade", "tune"))
    jobs: dict[str, Sequence[str]] = {
        "search": (*sbertkit, "search", "index", "a line about something"),
        "encode": (*sbertkit, "encode", "thousand.txt", "-o", "{number}.npy"),
        "index": (*sbertkit, "index", "six_thousand.txt", "-o", "{number}"),
        "index, ivfpq": (*sbertkit, "index", "six_thousand.txt", "-o", "{number}", *trained),
        "tune": (
            "sh",
            "-c",
            f"cp -r index {{number}} && {tune} {{number}} --kind ivfpq --recall 0.95",
        ),
        "search, ivfpq": (*sbertkit, "search", "trained", "a line about something"),
        "index, long": (*sbertkit, "index", "long.txt", "-o", "{number}", "--overlap", "16"),
        "encode, long": (*sbertkit, "encode", "long.txt", "-o", "{number}.npy", "--long", "mean"),
        "upgrade": ("sh", "-c", f"cp -r truncated {{number}} && {upgrade} {{number}}"),
        "demo": (*sbertkit, "demo", "-o", "{number}"),
    }
    data = os.environ.get("SBERTKIT_DATA")
    if data:
        pairs, scored = Path(data, "nli/sick/train.jsonl.gz"), Path(data, "sts/stsb.tsv")
        jobs["eval sts"] = (*sbertkit, "eval", "sts", str(scored), "--model", BUNDLED_NAME)
        jobs["train-nli"] = (
            *sbertkit,
            *("train-nli", str(pairs), "--base", BUNDLED_NAME, "-o", "{number}"),
            *("--max-steps", "10", "--batch-size", "16", "--no-guard"),
        )
    return jobs


if __name__ == "__main__":
    main()
