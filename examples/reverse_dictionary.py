"""Look words up by their meaning, in an index over WordNet glosses.

    python examples/reverse_dictionary.py "fear of closed rooms" [--words 2000]

Without --words all 27,254 glosses are indexed, which takes a minute or two on two cores.
"""

import argparse
import tempfile
from itertools import islice
from pathlib import Path

from sbertkit import Encoder, SearchIndex
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus


def main() -> None:
    """Builds the index in a temporary folder and prints the words found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("description")
    parser.add_argument("--words", type=int, help="index so many glosses only")
    arguments = parser.parse_args()
    glosses = (found.document for found in islice(read_corpus(demo_corpus()), arguments.words))
    encoder = Encoder.load("all-MiniLM-L6-v2")
    with (
        tempfile.TemporaryDirectory() as folder,
        SearchIndex.build(glosses, encoder, Path(folder) / "index", progress=True) as index,
    ):
        hits = index.search(arguments.description, k=5, mode="dense")  # the words differ
    for hit in hits:
        print(f"{hit.score:.3f}  {', '.join(hit.metadata['lemmas'])}: {hit.text}")


if __name__ == "__main__":
    main()
