"""Lines to vectors from the shell, against a six-line script with sentence-transformers.

    SBERTKIT_DATA=FOLDER python eval/shell_encode.py [--runs 3]

The lines are distinct titles of FOLDER's corpora/en_stackoverflow_titles.txt.gz. Whole processes
run in turns: the script; `sbertkit encode` in fp32 and int8 with the model's export in the user's
cache; and in both with an empty cache, once. Each number of lines is measured with the default
threads and with one. Nothing else should run meanwhile.
"""

import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from processes import Command
from recording import Entries, Figures, alternate, arguments_of, data_folder, median_ratio

from sbertkit.arrays import Vectors
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model
from sbertkit.metrics.cosine import unit_rows

CORPUS = "corpora/en_stackoverflow_titles.txt.gz"
LINES = (1, 1_000, 5_000)
PRECISIONS = ("fp32", "int8")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
THREADS: dict[str, dict[str, str]] = {"default": {}, "one": ONE_THREAD}
SOURCES = [
    *("sbertkit/encoder", "sbertkit/data", "sbertkit/cli/app.py", "sbertkit/cli/encode.py"),
    *("eval/shell_encode.py", "eval/processes.py"),
]
BASE = "sentence-transformers"
PEER = """
import sys, numpy
from sentence_transformers import SentenceTransformer
model, source, output = sys.argv[1:]
texts = open(source, encoding="utf-8").read().splitlines()
vectors = SentenceTransformer(model, device="cpu").encode(texts, normalize_embeddings=True)
numpy.save(output, vectors)
"""


def write_lines(corpus: Path, count: int, path: Path) -> None:
    """Writes the first distinct titles."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        titles = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    path.write_text("\n".join(titles[:count]) + "\n", encoding="utf-8")


def ways_to_encode(folder: Path, environment: dict[str, str]) -> dict[str, Command]:
    """The commands by name; each writes its vectors to FOLDER/<name>.npy."""
    source = str(folder / "lines.txt")
    peer = [sys.executable, "-c", PEER, str(resolve_model(BUNDLED_NAME)), source]
    ways = {BASE: Command(*peer, str(folder / f"{BASE}.npy"), environment=environment)}
    for cache in ("cached", "empty cache"):
        for precision in PRECISIONS:
            name = f"sbertkit {precision}, {cache}"
            encode = ["encode", source, "-o", str(folder / f"{name}.npy"), "--quiet"]
            ways[name] = Command(
                *(sys.executable, "-m", "sbertkit", *encode, "--precision", precision),
                environment={**environment, "XDG_CACHE_HOME": str(folder / cache)},
            )
    return ways


def fill_cache(folder: Path) -> None:
    """Exports the model ahead of use, as a user does."""
    for precision in PRECISIONS:
        subprocess.run(
            [sys.executable, "-m", "sbertkit", "export", BUNDLED_NAME, "--precision", precision],
            stdout=subprocess.DEVNULL,
            check=True,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cached")},
        )


def measure(folder: Path, runs: int, environment: dict[str, str]) -> Figures:
    """The figures of all ways for the lines in a folder."""
    ways = ways_to_encode(folder, environment)
    timed: list[Callable[[], float]] = [
        way.seconds for name, way in ways.items() if "empty" not in name
    ]
    seconds = dict(zip(ways, alternate(runs, *timed), strict=False))
    for name, way in ways.items():
        if "empty" in name:
            shutil.rmtree(folder / "empty cache", ignore_errors=True)
            seconds[name] = [way.seconds()]
    expected = np.load(folder / f"{BASE}.npy")
    return {
        name: {
            "seconds": round(statistics.median(seconds[name]), 3),
            "cpu_seconds": round(statistics.median(way.cpu_seconds[-runs:]), 3),
            "ratio": round(median_ratio(seconds[BASE][: len(seconds[name])], seconds[name]), 2),
            "megabytes": round(max(way.kilobytes) / 1_000, 1),
            "min_cosine": round(min_cosine(expected, np.load(folder / f"{name}.npy")), 5),
            "all_seconds": [round(second, 3) for second in seconds[name]],
        }
        for name, way in ways.items()
    }


def min_cosine(expected: Vectors, found: Vectors) -> float:
    """The lowest cosine of two vectors of the same line."""
    return float((unit_rows(expected) * unit_rows(found)).sum(axis=1).min())


def main() -> None:
    """Measures, prints and records what is not known yet."""
    parser = arguments_of(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    corpus = data_folder(CORPUS) / CORPUS
    entries = Entries("shell_encode", SOURCES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill_cache(folder)
        for count in LINES:
            write_lines(corpus, count, folder / "lines.txt")
            for threads, environment in THREADS.items():
                settings: dict[str, Any] = {
                    "lines": count,
                    "threads": threads,
                    "runs": arguments.runs,
                }
                entries.measure(
                    f"{count}:{threads}",
                    settings,
                    lambda environment=environment: measure(folder, arguments.runs, environment),  # type: ignore[misc]
                )


if __name__ == "__main__":
    main()
