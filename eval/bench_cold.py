"""One query from the shell, against a script with sentence-transformers and faiss.

python eval/bench_cold.py [--runs 7]

The corpus is that of the demo. The script is what one would write by hand: it loads the model,
stored vectors and texts, and searches.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recording import alternate, median_ratio, record

from sbertkit import Encoder, SearchIndex
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model

QUERY = "fear of being trapped in a small closed room"
PEER = """
import json, sys
import faiss, numpy
from sentence_transformers import SentenceTransformer

model, folder, query = sys.argv[1:]
index = faiss.read_index(folder + "/index.faiss")
texts = json.load(open(folder + "/texts.json", encoding="utf-8"))
vector = SentenceTransformer(model, device="cpu").encode([query], normalize_embeddings=True)
scores, rows = index.search(vector, 10)
for score, row in zip(scores[0], rows[0]):
    print(f"{score:.4f} {texts[row]}")
"""


class Command:
    """A command that is timed from its start to its end.

    Args:
        arguments: The command.
    """

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.kilobytes: list[int] = []
        self.output = ""

    def seconds(self) -> float:
        """Runs it once."""
        started = time.perf_counter()
        with subprocess.Popen(
            self._arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            self.output = process.stdout.read() if process.stdout else ""
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        if process.returncode != 0:
            raise SystemExit(f"{self._arguments[:4]} failed with {process.returncode}")
        self.kilobytes.append(usage.ru_maxrss)
        return seconds


def write_peer_index(index: SearchIndex, folder: Path) -> None:
    """The same vectors and texts as faiss and JSON files."""
    import faiss

    ids, vectors = index.sample(len(index))
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    faiss.write_index(flat, str(folder / "index.faiss"))
    texts = [index.get(identifier).text for identifier in ids]
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")


def main() -> None:
    """Measures, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "index")
        encoder = Encoder.load(BUNDLED_NAME, device="cpu")
        with SearchIndex.build(demo_corpus(), encoder, place, progress=True) as index:
            write_peer_index(index, Path(folder))
            best = index.search(QUERY, 1)[0]
        ways = {
            "sentence-transformers and faiss": Command(
                sys.executable, "-c", PEER, str(resolve_model(BUNDLED_NAME)), folder, QUERY
            ),
            "sbertkit search": Command(sys.executable, "-m", "sbertkit", "search", place, QUERY),
        }
        peer, ours = alternate(arguments.runs, *(way.seconds for way in ways.values()))
        for way in ways.values():
            if best.text[:30] not in way.output:
                raise SystemExit(f"another answer: {way.output[:500]}")
    figures = {
        "runs": arguments.runs,
        "ways": {
            name: {
                "seconds": round(statistics.median(seconds), 3),
                "ratio": round(median_ratio(peer, seconds), 2),
                "megabytes": round(max(way.kilobytes) / 1_000, 1),
                "all_seconds": [round(second, 3) for second in seconds],
            }
            for (name, way), seconds in zip(ways.items(), (peer, ours), strict=True)
        },
    }
    print(json.dumps(figures, indent=2))
    measured = [
        "sbertkit/encoder",
        "sbertkit/index",
        "sbertkit/retrieval",
    ]
    shell = ["sbertkit/cli/app.py", "sbertkit/cli/search.py"]
    record("cold", [*measured, *shell, "eval/bench_cold.py"], figures)


if __name__ == "__main__":
    main()
