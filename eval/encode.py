"""Encoding speed against other ways to run the same model, alternating in one run.

    SBERTKIT_DATA=FOLDER python eval/encode.py [--runs 5]

Short texts are 6,000 WordNet glosses of the bundled demo corpus; FOLDER holds the longer ones
(nli/snli/dev.jsonl.gz, corpora/en_reuters_bodies.txt.gz), without it only the short are measured.
The peers are sentence-transformers, with its defaults and in bf16, in this process; fastembed and
onnxruntime as one writes it by hand in processes and an environment of their own (peers/). Each
length is written to results/encode.json. Nothing else should run meanwhile.
"""

import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from peer_environment import PEERS, peer_python
from recording import Entries, Figures, alternate, arguments_of, median_ratio
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

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
SOURCES = [
    "sbertkit/encoder",
    "eval/encode.py",
    "eval/peer_environment.py",
    "eval/peers/worker.py",
    "eval/peers/requirements.txt",
]


class System(NamedTuple):
    """One way to encode the texts: its seconds for all of them, and the vectors."""

    seconds: Callable[[], float]
    vectors: Callable[[], Vectors]


def short() -> list[str]:
    """Glosses of about 18 tokens."""
    glosses = [found.document.text for found in read_corpus(demo_corpus())]
    return random.Random(0).sample(glosses, 6_000)


def medium(root: Path) -> list[str]:
    """Distinct premises."""
    with gzip.open(root / "nli/snli/dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        premises = list(dict.fromkeys(json.loads(line)["premise"] for line in lines))
    return random.Random(0).sample(premises, 3_000)


def long(root: Path) -> list[str]:
    """News that are truncated at the limit of 256 tokens."""
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
    """All systems by name, the baseline first."""
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


def write_peer_models(source: Path, folder: Path) -> dict[str, Path]:
    """Folders with the encoder as model.onnx, as peers publish it: ``fp32`` and ``int8``."""
    from onnxruntime.quantization import quantize_dynamic

    folders = {precision: folder / precision for precision in ("fp32", "int8")}
    model = AutoModel.from_pretrained(source).eval()
    given = {
        name: torch.ones((2, 8), dtype=torch.long)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for target in folders.values():
        target.mkdir(parents=True)
        for name in ("config.json", "tokenizer.json", "special_tokens_map.json"):
            if (source / name).is_file():
                shutil.copy(source / name, target / name)
        content = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
        content |= {"model_max_length": 256, "max_length": 256}
        (target / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Tokens(model),
            tuple(given.values()),
            str(folders["fp32"] / "model.onnx"),
            input_names=list(given),
            output_names=["last_hidden_state"],
            dynamic_axes={
                name: {0: "texts", 1: "tokens"} for name in (*given, "last_hidden_state")
            },
            opset_version=17,
            dynamo=False,
        )
    quantize_dynamic(folders["fp32"] / "model.onnx", folders["int8"] / "model.onnx")
    return folders


class _Tokens(torch.nn.Module):
    """The token vectors only."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """(B, T, dim)."""
        output: torch.Tensor = self._model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return output


class PeerProcess:
    """A peer in its own process and environment that encodes the same texts on request.

    Args:
        system: ``fastembed`` or ``onnxruntime``.
        model: A folder of `write_peer_models`.
        texts: The texts.
        folder: Folder for exchanged files.
    """

    def __init__(self, system: str, model: Path, texts: list[str], folder: Path) -> None:
        texts_file = folder / f"{system}-{model.name}.json"
        texts_file.write_text(json.dumps(texts), encoding="utf-8")
        self._vectors = texts_file.with_suffix(".npy")
        self._process = subprocess.Popen(
            [peer_python(), PEERS / "worker.py", system, model, texts_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._orders: Any = self._process.stdin
        self._answers: Any = self._process.stdout

    def seconds(self, save: str = "") -> float:
        """The seconds of encoding all texts, without loading."""
        print(save, file=self._orders, flush=True)
        return float(self._answers.readline())

    def vectors(self) -> Vectors:
        """The vectors (n, dim)."""
        self.seconds(str(self._vectors))
        self.seconds()  # when this one is done, the file is written
        vectors: Vectors = np.load(self._vectors)
        return vectors

    def close(self) -> None:
        """Ends the process."""
        self._orders.close()
        self._answers.close()
        self._process.wait(timeout=60)


def measure(texts: list[str], runs: int) -> Figures:
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
                "min_cosine": float((vectors * expected).sum(axis=1).min()),
                "largest_difference": float(np.abs(vectors - expected).max()),
                "seconds": [round(second, 3) for second in seconds[name]],
            }
    report = Encoder.load(BUNDLED_NAME, device="cpu").encode_with_report(texts).report
    tokens = report.tokens_per_second * report.seconds / (len(texts) - report.duplicates)
    return {"texts": len(texts), "tokens": round(tokens, 1), "runs": runs, "systems": figures}


def main() -> None:
    """Measures the missing lengths."""
    parser = arguments_of(__doc__)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    lengths: dict[str, Callable[[], list[str]]] = {"short": short}
    if root := os.environ.get("SBERTKIT_DATA"):
        lengths |= {"medium": lambda: medium(Path(root)), "long": lambda: long(Path(root))}
    entries = Entries("encode", SOURCES)
    settings = {"model": BUNDLED_NAME, "runs": arguments.runs}
    for name, texts in lengths.items():
        entries.measure(name, settings, lambda texts=texts: measure(texts(), arguments.runs))  # type: ignore[misc]


if __name__ == "__main__":
    main()
