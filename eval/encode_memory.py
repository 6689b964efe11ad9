"""Memory of `sbertkit encode` on a long file, and the file that a killed and resumed run writes.

python eval/encode_memory.py [--lines 300000]

The encoder is tiny and random: the measurement is of everything around it.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from recording import ROOT, arguments_of, record

from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus

sys.path.append(str(ROOT / "tests"))
import tiny_models  # from the tests

FIRST_LINES = 30_000
_SECONDS_BETWEEN_CHECKS = 0.02


def write_corpus(path: Path, lines: int) -> None:
    """Numbered glosses, all distinct."""
    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    with path.open("w", encoding="utf-8") as file:
        for line in range(lines):
            file.write(f"{line} {glosses[line % len(glosses)]}\n")


def lines_done(output: Path) -> int:
    """Lines whose vectors are on the disk, as the log of the chunks says."""
    log = output.with_name(f".{output.name}.chunks") / "chunks.jsonl"
    try:
        parts = log.read_text(encoding="ascii").splitlines(keepends=True)[1:]
    except FileNotFoundError:
        return 0
    return sum(json.loads(part)["rows"] for part in parts if part.endswith("\n"))


def watch(process: subprocess.Popen[bytes], check: Callable[[float], bool]) -> None:
    """Calls `check` with the process's RssAnon in MB until it is true or the process ends."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon") and check(int(line.split()[1]) / 1_000):
                return
        time.sleep(_SECONDS_BETWEEN_CHECKS)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--lines", type=int, default=300_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = tiny_models.ARCHITECTURES["bert"](folder / "bert")
        corpus, output = folder / "corpus.txt", folder / "vectors.npy"
        write_corpus(corpus, arguments.lines)
        command = [sys.executable, "-m", "sbertkit", "encode", str(corpus), "-o", str(output)]
        command += ["--model", str(model), "--pooling", "mean", "--quiet", "--resume"]
        early, late = [0.0], [0.0]

        def note(megabytes: float) -> bool:
            (early if lines_done(output) < FIRST_LINES else late).append(megabytes)
            return False

        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            watch(process, note)
        if process.returncode != 0:
            raise SystemExit("encoding failed")
        expected = digest(output)
        output.unlink()
        killed_after = []
        for share in (0.25, 0.6):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                wanted = share * arguments.lines
                watch(process, lambda _, wanted=wanted: lines_done(output) >= wanted)  # type: ignore[misc]
                process.kill()
            killed_after.append(lines_done(output))
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        figures = {
            "lines": arguments.lines,
            "early_peak_mb": round(max(early), 1),
            "late_peak_mb": round(max(late), 1),
            "growth_mb": round(max(late) - max(early), 1),
            "killed_after": killed_after,
            "equal": digest(output) == expected,
        }
    print(figures)
    sources = ["sbertkit/encoder", "sbertkit/data/vector_files.py", "sbertkit/data/chunk_log.py"]
    record("encode_memory", [*sources, "eval/encode_memory.py"], figures)


if __name__ == "__main__":
    main()
