"""Encodes texts by a peer on request: python worker.py SYSTEM MODEL TEXTS.

SYSTEM is fastembed or onnxruntime, MODEL a folder with model.onnx and a tokenizer, TEXTS a JSON
file. For each line of standard input it encodes all texts, prints the seconds, and saves the
vectors as .npy where the line names a file.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Encode = Callable[[list[str]], Any]


def fastembed(folder: Path) -> Encode:
    """Fastembed with its defaults, its model taken from a folder."""
    from fastembed import TextEmbedding  # type: ignore[import-not-found]  # in its own environment

    model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=str(folder))
    return lambda texts: np.array(list(model.embed(texts)))


def onnxruntime(folder: Path) -> Encode:
    """Onnxruntime as one writes it by hand: sorted by length, batches of 32, default threads."""
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    session = InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    wanted = [given.name for given in session.get_inputs()]

    def encode(texts: list[str]) -> Any:
        order = np.argsort([-len(text) for text in texts])
        vectors = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            batch = tokenizer.encode_batch([texts[row] for row in rows])
            given = {
                "input_ids": np.array([one.ids for one in batch]),
                "attention_mask": np.array([one.attention_mask for one in batch]),
                "token_type_ids": np.array([one.type_ids for one in batch]),
            }
            (tokens,) = session.run(None, {name: given[name] for name in wanted})
            mask = given["attention_mask"][:, :, None].astype(np.float32)
            mean = (tokens * mask).sum(axis=1) / mask.sum(axis=1)
            vectors[rows] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    return encode


def main() -> None:
    """Reads what to do and does it."""
    system, folder, texts_file = sys.argv[1:]
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    encode = {"fastembed": fastembed, "onnxruntime": onnxruntime}[system](Path(folder))
    for line in sys.stdin:
        started = time.perf_counter()
        vectors = encode(texts)
        print(time.perf_counter() - started, flush=True)
        if line.strip():
            np.save(line.strip(), vectors)


if __name__ == "__main__":
    main()
