"""Whether documents find themselves: 200 random glosses of unique text, for each kind of index.

python eval/self_search.py [--documents 200]
"""

import random
import tempfile
from collections import Counter
from pathlib import Path

from recording import VECTORS, arguments_of, record

from sbertkit import Encoder, SearchIndex
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME

KINDS = ("flat", "hnsw", "ivf")


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--documents", type=int, default=200)
    arguments = parser.parse_args()
    documents = [found.document for found in read_corpus(demo_corpus())]
    times = Counter(document.text for document in documents)
    unique = [document for document in documents if times[document.text] == 1]
    chosen = random.Random(0).sample(unique, arguments.documents)
    encoder = Encoder.load(BUNDLED_NAME, backend="torch", device="cpu")
    figures: dict[str, object] = {"indexed": len(documents), "searched": len(chosen)}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            path = Path(folder) / kind
            with SearchIndex.build(documents, encoder, path, kind=kind, progress=True) as index:
                hits = index.search_batch([document.text for document in chosen], 1, mode="dense")
            first = sum(
                found[0].id == document.id for found, document in zip(hits, chosen, strict=True)
            )
            min_score = min(found[0].score for found in hits)
            figures[kind] = {"ranked_first": first, "min_score": min_score}
            print(f"{kind}: {first} of {len(chosen)} ranked first, minimum score {min_score:.6f}")
    sources = [*VECTORS, "sbertkit/index", "sbertkit/retrieval"]
    record("self_search", [*sources, "eval/self_search.py"], figures)


if __name__ == "__main__":
    main()
