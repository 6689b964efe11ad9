"""Tiny random cross-encoders, saved by sentence-transformers itself."""

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
