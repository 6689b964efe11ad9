"""Peak anonymous memory (RssAnon) of ``sbertkit index`` as the corpus grows tenfold, kind flat.

python eval/index_memory.py [--lines 10000 100000]

The encoder's export is in the user's cache before the first build, which would otherwise load torch
to make it.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording import arguments_of, record

from sbertkit import Encoder
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME

_SECONDS_BETWEEN_CHECKS = 0.05


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--lines", type=int, nargs=2, default=[10_000, 100_000])
    arguments = parser.parse_args()
    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    Encoder.load(BUNDLED_NAME).export_folder()
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        for lines in arguments.lines:
            corpus = Path(folder) / f"{lines}.txt"
            # Numbered, so that all lines are distinct and each is encoded.
            text = "\n".join(f"{n} {glosses[n % len(glosses)]}" for n in range(lines))
            corpus.write_text(text, encoding="utf-8")
            peaks[lines] = _peak_mb(corpus, Path(folder) / f"index-{lines}")
            print(f"{lines:,} lines: {peaks[lines]:.0f} MB")
    small, large = (peaks[lines] for lines in arguments.lines)
    figures = {
        "lines": arguments.lines,
        "peak_anonymous_mb": [round(small, 1), round(large, 1)],
        "growth_mb": round(large - small, 1),
    }
    print(f"growth: {large - small:.0f} MB")
    sources = ["sbertkit/encoder", "sbertkit/index", "sbertkit/retrieval", "sbertkit/data"]
    record("index_memory", [*sources, "eval/index_memory.py"], figures)


def _peak_mb(corpus: Path, index: Path) -> float:
    """Peak RssAnon of indexing the corpus, in MB."""
    command = [sys.executable, "-m", "sbertkit", "index", str(corpus), "-o", str(index)]
    process = subprocess.Popen([*command, "--kind", "flat", "--quiet"])
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            break
        lines = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))
        peak = max(peak, int(next(lines, "0")))
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    if process.wait() != 0:
        raise SystemExit(f"indexing failed with exit status {process.returncode}")
    return peak / 1_000


if __name__ == "__main__":
    main()
