"""How well all-MiniLM-L6-v2 finds relevant documents, with exact search.

    SBERTKIT_DATA=FOLDER python eval/retrieval.py

FOLDER holds retrieval/scifact and the other collections of `SETS`. Each of them is an entry of
results/retrieval.json; the next call measures the missing ones.
"""

import time
from functools import partial

from recording import VECTORS, Entries, Figures, arguments_of, data_folder

from sbertkit import Encoder, evaluate_retrieval
from sbertkit.data.named import find_named

MODEL = "all-MiniLM-L6-v2"
SETS = ("scifact", "cranfield", "cisi", "npl", "lisa", "nfcorpus-ecir")
MEASURES = ("nDCG@10", "AP", "RR@10", "R@100")
SOURCES = [
    *VECTORS,
    "sbertkit/data/retrieval",
    *(
        f"sbertkit/evaluation/{name}.py"
        for name in ("answers", "measures", "retrieval", "self_matches", "top_k")
    ),
]


def main() -> None:
    """Measures the missing collections."""
    arguments_of(__doc__).parse_args()
    root = data_folder("retrieval/scifact")
    encoder = Encoder.load(MODEL, backend="torch", device="cpu")
    entries = Entries("retrieval", SOURCES)
    settings = {"model": MODEL, "fingerprint": encoder.fingerprint}

    def measure(name: str) -> Figures:
        started = time.perf_counter()
        result = evaluate_retrieval(encoder, root / find_named(name).path, measures=MEASURES)
        interval = result.intervals["nDCG@10"]
        return {
            "measures": result.measures,
            "interval": None if interval is None else interval._asdict(),
            "queries": result.queries,
            "left_out": len(result.left_out),
            "seconds": round(time.perf_counter() - started, 1),
        }

    for name in SETS:
        entries.measure(name, settings, partial(measure, name))


if __name__ == "__main__":
    main()
