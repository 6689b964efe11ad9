"""Results of measurements: JSON files that say what was measured, with what and on what."""

import hashlib
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"

_LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers", "faiss-cpu", "numpy")
_CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")


def record(name: str, measured: Sequence[str], figures: dict[str, Any]) -> None:
    """Writes ``results/<name>.json``.

    Args:
        name: Name of the measurement.
        measured: The parts of the source that it measured, relative to the repository; a later
            change to one of them makes the result stale.
        figures: What was measured.
    """
    content = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": {library: version(library) for library in _LIBRARIES},
        "measured": {part: source_hash(part) for part in measured},
        "figures": figures,
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


def is_stale(result: dict[str, Any]) -> bool:
    """Whether the source that a result measured has changed since."""
    return any(source_hash(part) != known for part, known in result["measured"].items())


def source_hash(part: str) -> str:
    """A hash over the Python files below a part of the source."""
    path = ROOT / part
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def machine() -> dict[str, Any]:
    """The kind of machine: processor architecture, its vector instructions, cores, memory."""
    flags: set[str] = set()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = (line for line in info.read_text().splitlines() if line.startswith("flags"))
        flags = set(next(lines, "").split())
    return {
        "architecture": platform.machine(),
        "features": [feature for feature in _CPU_FEATURES if feature in flags],
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def alternate(runs: int, *timed: Callable[[], float]) -> list[list[float]]:
    """Seconds of each function, called in turn `runs` times after one round that does not count."""
    for function in timed:
        function()
    seconds: list[list[float]] = [[] for _ in timed]
    for _ in range(runs):
        for function, collected in zip(timed, seconds, strict=True):
            collected.append(function())
    return seconds


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median of the pairwise ratios, which holds when the machine's speed drifts."""
    return statistics.median(a / b for a, b in zip(first, second, strict=True))
