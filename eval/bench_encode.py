"""Encoding speed against other ways to run the same model, alternating in one run.

    SBERTKIT_DATA=FOLDER python eval/bench_encode.py [--runs 5]

Short texts are 6,000 WordNet glosses of the bundled demo corpus; FOLDER holds the longer ones
(nli/snli/dev.jsonl.gz, corpora/en_reuters_bodies.txt.gz), without it only the short are measured.
The peers are sentence-transformers, with its defaults and in bf16, in this process; fastembed and
onnxruntime as one writes it by hand in processes and an environment of their own (peers/). Each
length is written to results/encode.json. Nothing else should run on the cores.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from peer_processes import PeerProcess, write_peer_models
from recording import Pieces, alternate, median_ratio
from sentence_transformers import SentenceTransformer

from sbertkit import Encoder
from sbertkit.arrays import Vectors
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model
from sbertkit.metrics.cosine import unit_rows

OURS: dict[str, dict[str, Any]] = {
    "sbertkit, OpenVINO, fp32": {"backend": "openvino"},
    "sbertkit, onnxruntime, fp32": {"backend": "onnx"},
    "sbertkit, torch, fp32": {"backend": "torch"},
    "sbertkit, OpenVINO, bf16": {"backend": "openvino", "precision": "bf16"},
    "sbertkit, torch, bf16": {"backend": "torch", "precision": "bf16"},
    "sbertkit, OpenVINO, int8": {"backend": "openvino", "precision": "int8"},
    "sbertkit, onnxruntime, int8": {"backend": "onnx", "precision": "int8"},
}
BASE = "sentence-transformers, fp32"
MEASURED = [
    "sbertkit/encoder",
    "eval/bench_encode.py",
    "eval/peer_processes.py",
    "eval/peers/worker.py",
    "eval/peers/requirements.txt",
]


class System(NamedTuple):
    """One way to encode the texts: its seconds for all of them, and the vectors."""

    seconds: Callable[[], float]
    vectors: Callable[[], Vectors]


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


def of_function(encode: Callable[[list[str]], Any], texts: list[str]) -> System:
    """A system that is called in this process."""

    def seconds() -> float:
        started = time.perf_counter()
        encode(texts)
        return time.perf_counter() - started

    return System(seconds, lambda: np.asarray(encode(texts), np.float32))


def systems(texts: list[str], folder: Path, stack: ExitStack) -> dict[str, System]:
    """All systems by name, the one that the others are compared with first."""
    source = resolve_model(BUNDLED_NAME)
    found = {}
    for name, dtype in ((BASE, torch.float32), ("sentence-transformers, bf16", torch.bfloat16)):
        model = SentenceTransformer(str(source), device="cpu", model_kwargs={"dtype": dtype})
        found[name] = of_function(model.encode, texts)
    models = write_peer_models(source, folder)
    for system, precision in (
        ("fastembed", "fp32"),
        ("onnxruntime", "fp32"),
        ("onnxruntime", "int8"),
    ):
        process = PeerProcess(system, models[precision], texts, folder)
        stack.enter_context(closing(process))
        by_hand = " by hand" if system == "onnxruntime" else ""
        found[f"{system}{by_hand}, {precision}"] = System(process.seconds, process.vectors)
    for name, options in OURS.items():
        found[name] = of_function(Encoder.load(BUNDLED_NAME, device="cpu", **options).encode, texts)
    return found


def measure(texts: list[str], runs: int) -> dict[str, Any]:
    """All systems on some texts."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        found = systems(texts, Path(folder), stack)
        seconds = dict(
            zip(found, alternate(runs, *(one.seconds for one in found.values())), strict=True)
        )
        expected = unit_rows(found[BASE].vectors())
        figures = {}
        for name, system in found.items():
            vectors = unit_rows(system.vectors())
            figures[name] = {
                "sentences_per_second": round(len(texts) / statistics.median(seconds[name]), 1),
                "ratio": round(median_ratio(seconds[BASE], seconds[name]), 3),
                "least_cosine": float((vectors * expected).sum(axis=1).min()),
                "largest_difference": float(np.abs(vectors - expected).max()),
                "seconds": [round(second, 3) for second in seconds[name]],
            }
    report = Encoder.load(BUNDLED_NAME, device="cpu").encode_with_report(texts).report
    tokens = report.tokens_per_second * report.seconds / (len(texts) - report.duplicates)
    return {"texts": len(texts), "tokens": round(tokens, 1), "runs": runs, "systems": figures}


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
