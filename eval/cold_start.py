"""One query from the shell, against a script with sentence-transformers and faiss.

python eval/cold_start.py [--runs 7]

The corpus is that of the demo. The script is the obvious one: it loads the model, stored vectors
and texts, and searches.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from processes import Command
from recording import alternate, arguments_of, median_ratio, record

from sbertkit import Encoder, SearchIndex
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model

SOURCES = [
    *("sbertkit/encoder", "sbertkit/index", "sbertkit/retrieval"),
    *("sbertkit/cli/app.py", "sbertkit/cli/search", "eval/cold_start.py", "eval/processes.py"),
]
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
    parser = arguments_of(__doc__)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "index")
        encoder = Encoder.load(BUNDLED_NAME, device="cpu")
        with SearchIndex.build(demo_corpus(), encoder, path, progress=True) as index:
            write_peer_index(index, Path(folder))
            best = index.search(QUERY, 1, mode="dense")[0]
        search = (sys.executable, "-m", "sbertkit", "search", path, QUERY)
        ways = {
            "sentence-transformers and faiss": Command(
                sys.executable, "-c", PEER, str(resolve_model(BUNDLED_NAME)), folder, QUERY
            ),
            "sbertkit search, by vectors": Command(*search, "--mode", "dense"),
            "sbertkit search, by vectors and words": Command(*search),
        }
        peer, *ours = alternate(arguments.runs, *(way.seconds for way in ways.values()))
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
            for (name, way), seconds in zip(ways.items(), (peer, *ours), strict=True)
        },
    }
    print(json.dumps(figures, indent=2))
    record("cold_start", SOURCES, figures)


if __name__ == "__main__":
    main()
