"""Encoding speed against sentence-transformers with its defaults, in one process, alternating.

    python eval/bench_encode.py [--runs 5] [--texts 6000]

Texts are WordNet glosses of the bundled demo corpus. Nothing else should run on the cores.
"""

import argparse
import random
import statistics
import time

import numpy as np
from recording import alternate, median_ratio, record
from sentence_transformers import SentenceTransformer

from sbertkit import Encoder
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model


def main() -> None:
    """Measures, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--texts", type=int, default=6_000)
    arguments = parser.parse_args()

    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    texts = random.Random(0).sample(glosses, arguments.texts)
    ours = Encoder.load(BUNDLED_NAME)
    theirs = SentenceTransformer(str(resolve_model(BUNDLED_NAME)))

    difference = float(np.abs(ours.encode(texts[:2_000]) - theirs.encode(texts[:2_000])).max())

    def run_ours() -> float:
        started = time.perf_counter()
        ours.encode(texts)
        return time.perf_counter() - started

    def run_theirs() -> float:
        started = time.perf_counter()
        theirs.encode(texts)
        return time.perf_counter() - started

    our_seconds, their_seconds = alternate(arguments.runs, run_ours, run_theirs)
    figures = {
        "texts": len(texts),
        "runs": arguments.runs,
        "sbertkit_sentences_per_second": round(len(texts) / statistics.median(our_seconds), 1),
        "sentence_transformers_sentences_per_second": round(
            len(texts) / statistics.median(their_seconds), 1
        ),
        "ratio_median": round(median_ratio(their_seconds, our_seconds), 3),
        "largest_difference_on_2000": difference,
        "sbertkit_seconds": [round(second, 3) for second in our_seconds],
        "sentence_transformers_seconds": [round(second, 3) for second in their_seconds],
    }
    for name, value in figures.items():
        print(f"{name}: {value}")
    record("encode", ["sbertkit/encoder", "eval/bench_encode.py"], figures)


if __name__ == "__main__":
    main()
