"""Tiny random cross-encoders, saved by sentence-transformers itself."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tiny_models
import torch
from sentence_transformers import CrossEncoder

QUERIES = ("a cat sleeps on the mat", "people are eating food", "x")
DOCUMENTS = (
    "the cat lies on a mat and sleeps the whole day",
    "a man is playing a guitar",
    "",
    "two dogs run over the green field while it rains and nobody looks at them " * 3,
    "food",
)
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS]


def cross_encoder(folder: Path, architecture: str = "bert", **options: Any) -> Path:
    """Writes a cross-encoder with random weights; `options` are those of `CrossEncoder`."""
    plain = tiny_models.ARCHITECTURES[architecture](folder.with_name(f"{folder.name}-plain"))
    torch.manual_seed(7)
    model = CrossEncoder(str(plain), **{"num_labels": 1, "max_length": 60, **options})
    model.save_pretrained(str(folder))
    return folder


def write_collection(
    folder: Path,
    corpus: Mapping[str, str],
    queries: Mapping[str, str],
    qrels: Mapping[str, Mapping[str, int]],
) -> Path:
    """Writes a folder in BEIR's layout."""
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", corpus), ("queries", queries)):
        lines = (json.dumps({"_id": one, "text": text}) for one, text in texts.items())
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = (f"{q}\t{d}\t{grade}\n" for q, found in qrels.items() for d, grade in found.items())
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(header + "".join(rows))
    return folder
