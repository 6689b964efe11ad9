"""Encoding speed against sentence-transformers with its defaults, in one process, alternating.

    SBERTKIT_DATA=FOLDER python eval/bench_encode.py [--runs 5]

Short texts are 6,000 WordNet glosses of the bundled demo corpus; FOLDER holds the longer ones
(nli/snli/dev.jsonl.gz, corpora/en_reuters_bodies.txt.gz), without it only the short are measured.
Each length is written to results/encode.json. Nothing else should run on the cores.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from recording import Pieces, alternate, median_ratio
from sentence_transformers import SentenceTransformer

from sbertkit import Encoder
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model
from sbertkit.metrics.cosine import unit_rows

WAYS: dict[str, dict[str, Any]] = {
    "torch, fp32": {"backend": "torch"},
    "onnxruntime, fp32": {"backend": "onnx"},
    "torch, bf16": {"precision": "bf16"},
    "onnxruntime, int8": {"precision": "int8"},
}
MEASURED = ["sbertkit/encoder", "eval/bench_encode.py"]


def short() -> list[str]:
    """Glosses, about 18 tokens each."""
    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    return random.Random(0).sample(glosses, 6_000)


def medium(root: Path) -> list[str]:
    """Premises that differ."""
    with gzip.open(root / "nli/snli/dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        premises = list(dict.fromkeys(json.loads(line)["premise"] for line in lines))
    return random.Random(0).sample(premises, 3_000)


def long(root: Path) -> list[str]:
    """News that the limit of 256 tokens cuts."""
    bodies = [one.document.text for one in read_corpus(root / "corpora/en_reuters_bodies.txt.gz")]
    chosen = [text for text in bodies if len(text.split()) > 256]
    return random.Random(0).sample(chosen, 200)


def timed(encode: Callable[[list[str]], Any], texts: list[str]) -> Callable[[], float]:
    """A function that encodes the texts and tells the seconds."""

    def run() -> float:
        started = time.perf_counter()
        encode(texts)
        return time.perf_counter() - started

    return run


def measure(texts: list[str], runs: int) -> dict[str, Any]:
    """All ways and the peer on some texts."""
    peer = SentenceTransformer(str(resolve_model(BUNDLED_NAME)), device="cpu")
    encoders = {
        name: Encoder.load(BUNDLED_NAME, device="cpu", **options) for name, options in WAYS.items()
    }
    expected = unit_rows(peer.encode(texts))
    peers, *ours = alternate(
        runs, *(timed(one.encode, texts) for one in (peer, *encoders.values()))
    )
    ways = {}
    for (name, encoder), seconds in zip(encoders.items(), ours, strict=True):
        vectors = encoder.encode(texts)
        ways[name] = {
            "sentences_per_second": round(len(texts) / statistics.median(seconds), 1),
            "ratio": round(median_ratio(peers, seconds), 3),
            "least_cosine": float((unit_rows(vectors) * expected).sum(axis=1).min()),
            "largest_difference": float(np.abs(vectors - expected).max()),
            "seconds": [round(second, 3) for second in seconds],
        }
    report = encoders["torch, fp32"].encode_with_report(texts).report
    tokens = report.tokens_per_second * report.seconds / (len(texts) - report.duplicates)
    return {
        "texts": len(texts),
        "tokens": round(tokens, 1),
        "runs": runs,
        "sentence_transformers": round(len(texts) / statistics.median(peers), 1),
        "sentence_transformers_seconds": [round(second, 3) for second in peers],
        "ways": ways,
    }


def main() -> None:
    """Measures what is missing, prints and records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    lengths: dict[str, Callable[[], list[str]]] = {"short": short}
    if root := os.environ.get("SBERTKIT_DATA"):
        lengths |= {"medium": lambda: medium(Path(root)), "long": lambda: long(Path(root))}
    pieces = Pieces("encode", MEASURED)
    settings = {"model": BUNDLED_NAME, "runs": arguments.runs}
    for name, texts in lengths.items():
        if pieces.known(name, settings) is None:
            figures = measure(texts(), arguments.runs)
            print(name, figures, flush=True)
            pieces.add(name, settings, figures)


if __name__ == "__main__":
    main()
