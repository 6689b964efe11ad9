"""Peak anonymous memory (RssAnon) of ``sbertkit index`` as the corpus grows tenfold.

python eval/index_memory.py [--only CASE ...]

Once with the bundled encoder, whose export is in the user's cache before the first build, which
would otherwise load torch to make it; and up to a million lines with a tiny one of random weights,
so that the measurement is of everything around it. Each case is an entry of
results/index_memory.json; the next call measures the missing ones.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from encode_memory import watch, write_corpus
from recording import ROOT, Entries, Figures, arguments_of

from sbertkit import Encoder
from sbertkit.encoder.resolve import BUNDLED_NAME

sys.path.append(str(ROOT / "tests"))
import tiny_models  # from the tests

TINY = "tiny"
CASES = {
    "bundled, flat": (BUNDLED_NAME, "flat", (10_000, 100_000)),
    "tiny, flat": (TINY, "flat", (100_000, 1_000_000)),
    "tiny, ivfpq": (TINY, "ivfpq", (100_000, 1_000_000)),
}
SOURCES = [
    "sbertkit/encoder",
    "sbertkit/index",
    "sbertkit/retrieval",
    "sbertkit/data",
    "eval/index_memory.py",
]


def main() -> None:
    """Measures the missing cases."""
    parser = arguments_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    chosen = parser.parse_args().only
    entries = Entries("index_memory", SOURCES)
    for name in chosen:
        model, kind, lines = CASES[name]
        settings = {"model": model, "kind": kind, "lines": list(lines)}
        entries.measure(name, settings, partial(grown, model, kind, lines))


def grown(model: str, kind: str, counts: tuple[int, ...]) -> Figures:
    """The peak for each number of lines, and the bytes of the index besides the vectors."""
    peaks, sizes = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if model == TINY:
            model = str(tiny_models.ARCHITECTURES["bert"](folder / "bert"))
        Encoder.load(model, pooling="mean").export_folder()
        for lines in counts:
            corpus, index = folder / f"{lines}.txt", folder / f"index-{lines}"
            write_corpus(corpus, lines)
            command = [sys.executable, "-m", "sbertkit", "index", str(corpus), "-o", str(index)]
            command += ["--model", model, "--pooling", "mean", "--kind", kind, "--quiet"]
            # The vectors of a random model are too near each other for more.
            command += ["--recall", "0.1"] if kind != "flat" else []
            peaks.append(round(_peak_mb(command), 1))
            learnt = (*index.glob("segments/*/codes.npy"), *index.glob("segments/*/lists.npy"))
            learnt = (*learnt, *index.glob("trained/*/*"))
            sizes.append(round(sum(path.stat().st_size for path in learnt) / 1e6, 1))
            print(f"{lines:,} lines: {peaks[-1]:.0f} MB", flush=True)
    return {
        "peak_anonymous_mb": peaks,
        "growth_mb": round(peaks[-1] - peaks[0], 1),
        "index_mb": sizes,
    }


def _peak_mb(command: list[str]) -> float:
    """Peak RssAnon of a command, in MB."""
    peak = [0.0]

    def note(megabytes: float) -> bool:
        peak[0] = max(peak[0], megabytes)
        return False

    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        watch(process, note)
    if process.returncode != 0:
        raise SystemExit(f"indexing failed with exit status {process.returncode}")
    return peak[0]


if __name__ == "__main__":
    main()
