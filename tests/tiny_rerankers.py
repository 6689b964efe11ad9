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


def multi_vector(folder: Path, architecture: str = "bert", **options: Any) -> Path:
    """Writes a multi-vector encoder; `options` are those of the library's Transformer."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    plain = tiny_models.ARCHITECTURES[architecture](folder.with_name(f"{folder.name}-plain"))
    torch.manual_seed(5)
    similarity = options.pop("similarity_fn_name", None)
    prompts = options.pop("prompts", None)
    names = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    identity = torch.nn.Identity()
    modules = [
        Transformer(str(plain), **options),
        Dense(tiny_models.HIDDEN, 16, bias=False, activation_function=identity, **names),
        MultiVectorMask(skiplist_words=["."]),
        Normalize(module_input_name="token_embeddings"),
    ]
    model = MultiVectorEncoder(modules=modules, similarity_fn_name=similarity, prompts=prompts)
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
