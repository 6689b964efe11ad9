"""Index a few sentences and search them by meaning.

python examples/semantic_search.py
"""

import tempfile
from pathlib import Path

from sbertkit import Encoder, SearchIndex

SENTENCES = {
    "food": "A man is eating food.",
    "baby": "The girl is carrying a baby.",
    "horse": "A man is riding a white horse on an enclosed ground.",
    "monkey": "A monkey is playing drums.",
    "cheetah": "A cheetah is running behind its prey.",
}


def main() -> None:
    """Builds the index in a temporary folder and prints the hits."""
    encoder = Encoder.load("all-MiniLM-L6-v2")
    with tempfile.TemporaryDirectory() as folder:
        index = SearchIndex.build(SENTENCES.items(), encoder, Path(folder) / "index")
        for query in ("somebody has a meal", "an animal makes music"):
            print(query)
            for hit in index.search(query, k=2):
                print(f"  {hit.score:.3f}  {hit.id}: {hit.text}")
        index.close()


if __name__ == "__main__":
    main()
