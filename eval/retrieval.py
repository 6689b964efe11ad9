"""How well all-MiniLM-L6-v2 finds what people judged relevant, with exact search.

    SBERTKIT_DATA=FOLDER python eval/retrieval.py

FOLDER holds retrieval/scifact and the other collections of `SETS`. Each is written to
results/retrieval.json when it is measured; the next call measures those that are missing.
"""

import time

from measured import VECTORS
from recording import Pieces, data_folder

from sbertkit import Encoder, evaluate_retrieval
from sbertkit.data.named import find_named

MODEL = "all-MiniLM-L6-v2"
SETS = ("scifact", "cranfield", "cisi", "npl", "lisa", "nfcorpus-ecir")
MEASURES = ("nDCG@10", "AP", "RR@10", "R@100")
MEASURED = [
    *VECTORS,
    "sbertkit/data/retrieval",
    *(f"sbertkit/evaluation/{name}.py" for name in ("top_k", "measures", "retrieval")),
]


def main() -> None:
    """Measures what is missing, prints and records."""
    root = data_folder("retrieval/scifact")
    encoder = Encoder.load(MODEL, backend="torch", device="cpu")
    pieces = Pieces("retrieval", MEASURED)
    settings = {"model": MODEL, "fingerprint": encoder.fingerprint}
    for name in SETS:
        if pieces.known(name, settings) is not None:
            continue
        started = time.perf_counter()
        result = evaluate_retrieval(encoder, root / find_named(name).place, measures=MEASURES)
        interval = result.intervals["nDCG@10"]
        figures = {
            "measures": result.measures,
            "interval": None if interval is None else interval._asdict(),
            "queries": result.queries,
            "left_out": len(result.left_out),
            "seconds": round(time.perf_counter() - started, 1),
        }
        print(name, figures, flush=True)
        pieces.add(name, settings, figures)


if __name__ == "__main__":
    main()
