"""Results of measurements: JSON files that say what was measured, with what and on what."""

import hashlib
import json
import os
import platform
import statistics
import sys
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
    hashes = {part: source_hash(part) for part in measured}
    _write(RESULTS / f"{name}.json", {**_circumstances(), "measured": hashes, "figures": figures})


class Pieces:
    """A measurement of hours, made piece by piece: ``<name>.json`` is written after each.

    So it can be stopped at any time; what there is of it is not measured again. Several processes
    may measure pieces of one file, as long as they do not end in the same moment.

    Args:
        name: Name of the measurement.
        measured: See `record`.
        folder: Where the file is.
    """

    def __init__(self, name: str, measured: Sequence[str], folder: Path = RESULTS) -> None:
        self._path = folder / f"{name}.json"
        # As the source is now: a process goes on with what it has loaded.
        self._measured = {part: source_hash(part) for part in measured}

    def known(self, key: str, settings: dict[str, Any]) -> dict[str, Any] | None:
        """The figures of a piece that was measured with these settings and this code, if any."""
        piece = self._read().get(key)
        if piece is None or (piece["settings"], piece["measured"]) != (settings, self._measured):
            return None
        figures: dict[str, Any] = piece["figures"]
        return figures

    def add(self, key: str, settings: dict[str, Any], figures: dict[str, Any]) -> None:
        """Writes a piece, in the place of an older one."""
        piece = {
            **_circumstances(),
            "measured": self._measured,
            "settings": settings,
            "figures": figures,
        }
        _write(self._path, {"pieces": {**self._read(), key: piece}})

    def _read(self) -> dict[str, Any]:
        if not self._path.is_file():
            return {}
        pieces: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))["pieces"]
        return pieces


def records(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The records in a result: those of its pieces, or the one that it is."""
    return list(result["pieces"].values()) if "pieces" in result else [result]


def is_stale(result: dict[str, Any]) -> bool:
    """Whether the source that a result measured, or a piece of it, has changed since."""
    return any(
        source_hash(part) != known
        for one in records(result)
        for part, known in one["measured"].items()
    )


def source_hash(part: str) -> str:
    """A hash over the Python files below a part of the source.

    Args:
        part: A file or folder relative to the repository; ``FOLDER except NAME NAME`` is a folder
            without files of these names.
    """
    place, _, left_out = part.partition(" except ")
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    files = [file for file in files if file.name not in left_out.split()]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def data_folder(file: str) -> Path:
    """The folder of the data sets, which ``SBERTKIT_DATA`` names; ends the program without one.

    Args:
        file: One that is needed there, for the message.
    """
    folder = os.environ.get("SBERTKIT_DATA")
    if folder is None:
        sys.exit(f"set SBERTKIT_DATA to the folder that holds {file} and the other sets")
    return Path(folder)


def _circumstances() -> dict[str, Any]:
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": {library: version(library) for library in _LIBRARIES},
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    """Writes JSON in one step, so that a stopped process loses nothing of what was there."""
    path.parent.mkdir(exist_ok=True)
    staged = path.with_suffix(".tmp")
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)


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
