"""Re-ranking speed against sentence-transformers' CrossEncoder, alternating in one run.

    python eval/bench_reranker.py [--model FOLDER] [--rounds 7] [--candidates 100] [--tokens 128]
        [--backends onnx,openvino] [--dry]

One query with 100 candidates, made of WordNet glosses of the bundled demo corpus: each of 128
tokens (equal), and of a quarter to seven quarters of that (mixed). Without ``--model`` the network
is that of all-MiniLM-L6-v2 with a new head, whose scores mean nothing; with one the scores are
compared, too. Each set is written to results/bench_reranker.json, with ``--dry`` only printed.
Nothing else should run meanwhile.
"""

import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from recording import Entries, Figures, alternate, arguments_of, median_ratio
from sentence_transformers import CrossEncoder

from sbertkit import Reranker
from sbertkit.arrays import Vectors
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.backends.libraries import backends_for
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model
from sbertkit.metrics import spearman

BASE = "sentence-transformers, fp32"
QUERY = "which animal was kept as a guard of houses in the cities of the ancient world"
SOURCES = ["sbertkit/encoder", "sbertkit/reranking", "eval/bench_reranker.py"]
PRECISIONS = {"torch": ("fp32", "bf16"), "onnx": ("fp32", "int8"), "openvino": ("fp32", "int8")}

Pairs = list[tuple[str, str]]


def untrained(folder: Path) -> Path:
    """The network of the bundled encoder with a new head, as a CrossEncoder saves it."""
    torch.manual_seed(0)
    model = CrossEncoder(str(resolve_model(BUNDLED_NAME)), num_labels=1, max_length=512)
    model.save_pretrained(str(folder / "model"))
    return folder / "model"


def documents(model: CrossEncoder, counts: list[int]) -> list[str]:
    """A text of so many tokens for each count."""
    words = (word for one in read_corpus(demo_corpus()) for word in one.document.text.split())

    def lengths() -> Iterator[tuple[str, int]]:
        for word in words:
            yield word, len(model.tokenizer(word, add_special_tokens=False)["input_ids"])

    found, source = [], lengths()
    for count in counts:
        text: list[str] = []
        tokens = 0
        while tokens < count:
            word, size = next(source)
            if tokens + size <= count:
                text.append(word)
                tokens += size
        found.append(" ".join(text))
    return found


def systems(folder: Path, backends: tuple[str, ...]) -> dict[str, Callable[[Pairs], Vectors]]:
    """All systems by name, the baseline first."""
    found: dict[str, Callable[[Pairs], Vectors]] = {}
    identity = torch.nn.Identity()
    for name, dtype in ((BASE, torch.float32), ("sentence-transformers, bf16", torch.bfloat16)):
        model = CrossEncoder(
            str(folder), device="cpu", model_kwargs={"dtype": dtype}, activation_fn=identity
        )
        found[name] = model.predict
    for backend in backends:
        for precision in PRECISIONS[backend]:
            if backend not in ("torch", *backends_for(precision, "auto")):
                continue
            reranker = Reranker.load(folder, backend=backend, precision=precision, device="cpu")
            found[f"sbertkit, {backend}, {precision}"] = (
                lambda pairs, reranker=reranker: reranker.score(pairs, activated=False)  # type: ignore[misc]
            )
    return found


def measure(folder: Path, counts: list[int], rounds: int, backends: tuple[str, ...]) -> Figures:
    """All systems on candidates of so many tokens."""
    library = CrossEncoder(str(folder), device="cpu")
    pairs = [(QUERY, text) for text in documents(library, counts)]
    found = systems(folder, backends)
    exact = found[BASE](pairs)

    def timed(score: Callable[[Pairs], Vectors]) -> Callable[[], float]:
        def seconds() -> float:
            started = time.perf_counter()
            score(pairs)
            return time.perf_counter() - started

        return seconds

    all_seconds = alternate(rounds, *(timed(one) for one in found.values()))
    seconds = dict(zip(found, all_seconds, strict=True))
    figures = {}
    for name, score in found.items():
        scores = score(pairs)
        figures[name] = {
            "milliseconds": round(1_000 * statistics.median(seconds[name]), 1),
            "ratio": round(median_ratio(seconds[BASE], seconds[name]), 3),
            "largest_difference": float(np.abs(scores - exact).max()),
            "rank_correlation": spearman(exact, scores).value,
            "seconds": [round(second, 4) for second in seconds[name]],
        }
    lengths = [len(ids) for ids in library.tokenizer(pairs)["input_ids"]]
    return {"pairs": len(pairs), "tokens_per_pair": statistics.mean(lengths), "systems": figures}


def main() -> None:
    """Measures the missing sets."""
    parser = arguments_of(__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--backends", default="torch,onnx,openvino")
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    count, tokens = given.candidates, given.tokens
    spread = np.linspace(tokens / 4, 7 * tokens / 4, count).round().astype(int)
    sets = {
        "equal": [tokens] * count,
        "mixed": np.random.default_rng(0).permutation(spread).tolist(),
    }
    backends = tuple(given.backends.split(","))
    name = "untrained" if given.model is None else given.model.name
    settings = {"model": name, "rounds": given.rounds, "candidates": count, "tokens": tokens}
    entries = Entries("bench_reranker", SOURCES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.model or untrained(Path(scratch))
        for key, counts in sets.items():
            if given.dry:
                print(key, measure(folder, counts, given.rounds, backends), flush=True)
                continue
            entries.measure(
                key,
                settings | {"backends": list(backends)},
                lambda counts=counts: measure(folder, counts, given.rounds, backends),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
