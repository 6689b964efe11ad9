"""Results of measurements: JSON files that record what was measured, with what and on what."""

import argparse
import hashlib
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"

_LIBRARIES = ("torch", "transformers", "tokenizers", "sentence-transformers", "faiss-cpu", "numpy")
_CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")


def _files(folder: str, *names: str) -> list[str]:
    return [f"sbertkit/{folder}/{name}.py" for name in names]


def _modules(folder: str, *, without: str | None = None) -> list[str]:
    found = sorted(path.stem for path in (ROOT / "sbertkit" / folder).glob("*.py"))
    return _files(folder, *(name for name in found if name != without))


# Sources that decide a result: when one of them changes, the result becomes stale.
NETWORK = _files("encoder", "batching", "network", "pooling", "tokenization", "transformer")
"""From a text's tokens to its vector, without post-processing."""

VECTORS = [
    *NETWORK,
    *_files("encoder", "backends/torch", "settings", "postprocessors", "prompts"),
]
"""What decides a text's vector by torch in fp32.

Order, chunks and threads are left out: tests hold that they change no vector by more than 1e-5.
"""

WEIGHTS = [
    *NETWORK,
    *_modules("training"),
    "sbertkit/training/objectives",
    *_modules("training/run", without="guard"),
]
"""What decides the trained weights, and the speed of training, without the tasks of `adapt`.

The guard decides neither, but whether a run continues.
"""

RESUMING = [*WEIGHTS, *_files("encoder", "layout", "saving", "settings")]
"""What decides the weights of a run that was killed and resumed."""


def record(name: str, sources: Sequence[str], figures: Figures) -> None:
    """Writes ``results/<name>.json``.

    Args:
        name: Name of the measurement.
        sources: Files and folders of the repository whose change makes the result stale.
        figures: What was measured.
    """
    content = {**_circumstances(), "source_hashes": hashes_of(sources), "figures": figures}
    _write(RESULTS / f"{name}.json", content)


class Entries:
    """A long measurement in several entries: ``<name>.json`` is written after each of them.

    It can be stopped at any time; the next call skips the entries that are there. Several processes
    may add entries to one file, unless they finish at the same moment.

    Args:
        name: Name of the measurement.
        sources: See `record`.
        folder: Folder of the file.
    """

    def __init__(self, name: str, sources: Sequence[str], folder: Path = RESULTS) -> None:
        self._path = folder / f"{name}.json"
        # Hashed now, since the process continues with the source that it has loaded.
        self._hashes = hashes_of(sources)

    def known(self, key: str, settings: dict[str, Any]) -> Figures | None:
        """The figures of an entry that was measured with these settings and this source, if any."""
        entry = self._read().get(key)
        if entry is None or entry["settings"] != settings or entry["source_hashes"] != self._hashes:
            return None
        figures: Figures = entry["figures"]
        return figures

    def measure(self, key: str, settings: dict[str, Any], measure: Callable[[], Figures]) -> None:
        """Measures an entry unless it is known, prints its figures and writes them."""
        if self.known(key, settings) is not None:
            return
        figures = measure()
        print(key, figures, flush=True)
        hashes = {"source_hashes": self._hashes}
        entry = {**_circumstances(), **hashes, "settings": settings, "figures": figures}
        _write(self._path, {"entries": {**self._read(), key: entry}})

    def _read(self) -> dict[str, Any]:
        if not self._path.is_file():
            return {}
        entries: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))["entries"]
        return entries


@dataclass(frozen=True, slots=True)
class Entry:
    """What `Entries.measure` takes.

    Attributes:
        key: Its name.
        settings: What decides it.
        measure: Measures it.
    """

    key: str
    settings: Figures
    measure: Callable[[], Figures]


def table_arguments(
    doc: str | None, tables: Sequence[str], seeds: Sequence[int]
) -> argparse.ArgumentParser:
    """A parser of the arguments that `measure_tables` needs, and of the base."""
    parser = arguments_of(doc)
    parser.add_argument("--base", required=True, help="a plain model folder")
    parser.add_argument("--tables", nargs="+", choices=tables, default=list(tables))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(seeds))
    parser.add_argument("--only", nargs="+", help="what the names of entries begin with")
    parser.add_argument("--dry", action="store_true", help="two steps each, nothing recorded")
    return parser


def measure_tables(
    name: str,
    sources: Sequence[str],
    given: argparse.Namespace,
    entries_of: Callable[[str, int], Iterable[Entry]],
) -> None:
    """Measures the missing entries of the chosen tables, seed by seed.

    Args:
        name: Name of the measurement.
        sources: See `record`.
        given: What `table_arguments` parsed.
        entries_of: The entries of a table with a seed.
    """
    with tempfile.TemporaryDirectory() as folder:
        entries = Entries(name, sources, Path(folder) if given.dry else RESULTS)
        for seed in given.seeds:
            for table in given.tables:
                for one in entries_of(table, seed):
                    if not given.only or one.key.startswith(tuple(given.only)):
                        entries.measure(one.key, one.settings, one.measure)


def records(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a result, or the result itself if it has none."""
    return list(result["entries"].values()) if "entries" in result else [result]


def is_stale(result: dict[str, Any]) -> bool:
    """Whether the source that a result or one of its entries measured has changed since."""
    return any(
        _source_hash(part) != known
        for one in records(result)
        for part, known in one["source_hashes"].items()
    )


def hashes_of(sources: Sequence[str]) -> dict[str, str]:
    """A hash of each source, by its path."""
    for part in sources:
        if not (ROOT / part).exists():
            sys.exit(f"{part}: no such source; correct the list of the measurement")
    return {part: _source_hash(part) for part in sources}


def _source_hash(part: str) -> str:
    """A hash over a file, or over the Python files below a folder."""
    path = ROOT / part
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _circumstances() -> dict[str, Any]:
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": {library: version(library) for library in _LIBRARIES},
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    """Writes JSON atomically."""
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


def arguments_of(doc: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the docstring of the script."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def data_folder(file: str) -> Path:
    """The folder of the data sets, which ``SBERTKIT_DATA`` names; ends the program without one.

    Args:
        file: A file that is needed there, for the message.
    """
    folder = os.environ.get("SBERTKIT_DATA")
    if folder is None:
        sys.exit(f"set SBERTKIT_DATA to the folder that holds {file} and the other sets")
    return Path(folder)


def nli_files(folder: Path) -> list[Path]:
    """The NLI that encoders are trained on."""
    names = ("snli/train_part", "snli/train_part2", "lingnli/train")
    return [folder / "nli" / f"{name}.jsonl.gz" for name in names]


def alternate(runs: int, *timed: Callable[[], float]) -> list[list[float]]:
    """Seconds of each function, called in turn `runs` times after a warm-up round."""
    for function in timed:
        function()
    seconds: list[list[float]] = [[] for _ in timed]
    for _ in range(runs):
        for function, collected in zip(timed, seconds, strict=True):
            collected.append(function())
    return seconds


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median of the pairwise ratios, which is robust when the machine's speed drifts."""
    return statistics.median(a / b for a, b in zip(first, second, strict=True))
