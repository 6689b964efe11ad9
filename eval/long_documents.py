"""What is done with texts longer than the limit, and what it does to retrieval.

    SBERTKIT_DATA=FOLDER python eval/long_documents.py [--costs]

FOLDER holds retrieval/scifact and the other collections of `SETS`. Each collection under each limit
of tokens is an entry of results/long_documents.json: truncation, the mean of the passages, and
passages with each overlap, of which the best one counts, or the mean of the best two. A further
entry looks for sentences of Python packages' descriptions by their place in the description.

--costs measures what can be measured on an idle machine only: time, size and latency of an index
of each kind, and what passages cost where no document is long.
"""

import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import distributions
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from recording import VECTORS, Entries, Figures, arguments_of, data_folder, median_ratio

from sbertkit import BuildOptions, Encoder, SearchIndex, evaluate_index, evaluate_retrieval
from sbertkit.arrays import Vectors
from sbertkit.data import read_corpus
from sbertkit.data.named import find_named
from sbertkit.data.retrieval import Collection, read_collection
from sbertkit.encoder.divided_texts import TextDivider
from sbertkit.encoder.passages import PassageSplitter
from sbertkit.metrics import unit_rows

MODEL = "all-MiniLM-L6-v2"
PRECISION = "int8"
"""Of the ways' comparison with each other, which is of millions of tokens for each."""
SETS = ("cisi", "nfcorpus-ecir", "cranfield", "scifact", "lisa")
LIMITS = (64, 128, 256)
OVERLAPS = (0, 32, 64)
MEASURES = ("nDCG@10", "R@100")
DEPTH = 1_000
COSTS = (("truncate", 0), ("passages", 0), ("passages", 32), ("passages", 64), ("mean", 0))
SHORT_TEXTS = ("en_reuters_titles", "en_stackoverflow_titles", "en_reuters_bodies")
SHORT_COUNT = 100_000
SHORT_RUNS = 3
PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Parts of a description: where a sentence that is looked for begins, of the whole length."""
MIN_TOKENS = 512
"""Of a description that is taken; so the first passage holds at most half of it."""
MIN_WORDS = 8
SOURCES = [
    *VECTORS,
    *(f"sbertkit/encoder/{name}.py" for name in ("divided_texts", "passages", "slots")),
    "sbertkit/data/text_breaks.py",
    "eval/long_documents.py",
]


class Found(NamedTuple):
    """Scores (q, n) of documents in two ways: by the best passage, and the mean of the best two."""

    best: Vectors
    two: Vectors


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    parser.add_argument("--costs", action="store_true")
    costs = parser.parse_args().costs
    entries = Entries("long_documents", SOURCES)
    root = data_folder("retrieval/scifact")
    if costs:
        for name in ("scifact", "lisa"):
            folder = root / find_named(name).path
            entries.measure(f"costs {name}", {"model": MODEL}, partial(measure_costs, folder))
        run = partial(measure_short, root / "corpora")
        entries.measure("short documents", {"model": MODEL}, run)
        return
    for limit in LIMITS:
        encoder = Encoder.load(MODEL, max_tokens=limit, precision=PRECISION, device="cpu")
        settings = {"model": MODEL, "max_tokens": limit, "precision": PRECISION}
        for name in SETS:
            collection = read_collection(root / find_named(name).path)
            run = partial(measure_collection, encoder, collection)
            entries.measure(f"{name} {limit}", settings, run)
        entries.measure(f"places {limit}", settings, partial(measure_places, encoder))


def measure_collection(encoder: Encoder, collection: Collection) -> Figures:
    """The measures of each way, and how many vectors it takes."""
    documents = [found.document for found in read_corpus(collection.folder)]
    texts = [document.text for document in documents]
    ids = [document.id for document in documents]
    queries = unit_queries(encoder, list(collection.queries.values()))

    def measures(scores: Vectors) -> Figures:
        run = {}
        for query, row in zip(collection.queries, scores, strict=True):
            best = np.argsort(-row, kind="stable")[: DEPTH + 1]
            run[query] = {ids[number]: float(row[number]) for number in best}
        result = evaluate_retrieval(run, collection, measures=MEASURES)
        return dict(result.measures)

    figures: Figures = {"documents": len(texts)}
    for name, (vectors, scores) in ways(encoder, texts, queries).items():
        figures[name] = {"vectors": vectors, **measures(scores)}
    return figures


def unit_queries(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Unit vectors (q, dim) of queries."""
    return unit_rows(encoder.encode(texts, kind="query")).astype(np.float32)


def ways(
    encoder: Encoder, texts: Sequence[str], queries: Vectors
) -> dict[str, tuple[int, Vectors]]:
    """The number of vectors and the scores (q, n) of each way."""
    figures: dict[str, tuple[int, Any]] = {
        "truncate": (len(texts), queries @ unit_rows(encoder.encode(texts)).T)
    }
    for overlap in OVERLAPS:
        if 2 * overlap >= (encoder.max_tokens or 0) - len(encoder.tokenizer.special):
            continue
        divider = TextDivider(encoder.spec, overlap)
        chunks = list(encoder.start_run().vectors(divider.passages(texts)))
        joined = list(divider.joined(chunks))
        counts = [len(text.passages) for divided, _ in joined for text in divided]
        vectors = np.concatenate([vectors for _, vectors in joined])
        found = scored(queries, unit_rows(vectors), counts)
        figures[f"passages {overlap}"] = (len(vectors), found.best)
        figures[f"best two {overlap}"] = (len(vectors), found.two)
        if overlap == 0:
            again = TextDivider(encoder.spec)
            for _ in again.passages(texts):
                pass
            means = np.concatenate(list(again.means([vectors])))
            figures["mean"] = (len(texts), queries @ unit_rows(means).T)
    return figures


def scored(queries: Vectors, vectors: Any, counts: Sequence[int]) -> Found:
    """Scores of documents whose passages have these vectors, so many for each."""
    scores = queries @ vectors.T
    starts = np.cumsum([0, *counts[:-1]])
    best = np.maximum.reduceat(scores, starts, axis=1)
    two = best.copy()
    for number, (start, count) in enumerate(zip(starts.tolist(), counts, strict=True)):
        if count > 1:
            two[:, number] = np.sort(scores[:, start : start + count], axis=1)[:, -2:].mean(axis=1)
    return Found(best, two)


def measure_places(encoder: Encoder) -> Figures:
    """For sentences at each place, how often their description is among the first three and ten."""
    splitter = PassageSplitter(encoder.tokenizer, MIN_TOKENS)
    texts = [text for text in descriptions() if len(splitter.split([text])[0]) > 1]
    sentences = [sentence_at(text, place, texts) for text in texts for place in PLACES]
    places = [place for _ in texts for place in PLACES]
    rows = [number for number in range(len(texts)) for _ in PLACES]
    wanted = [number for number, sentence in enumerate(sentences) if sentence is not None]
    queries = unit_queries(encoder, [sentences[number] or "" for number in wanted])
    figures: Figures = {"documents": len(texts), "queries": len(wanted)}
    for name, (vectors, scores) in ways(encoder, texts, queries).items():
        ranks: dict[float, list[int]] = defaultdict(list)
        for number, row in zip(wanted, scores, strict=True):
            ranks[places[number]].append(int(np.sum(row > row[rows[number]])))
        figures[name] = {
            "vectors": vectors,
            **{
                str(place): {f"in {k}": float(np.mean(np.array(found) < k)) for k in (1, 3, 10)}
                for place, found in sorted(ranks.items())
            },
        }
    return figures


def measure_costs(folder: Path) -> Figures:
    """Seconds to build, bytes without the encoder and milliseconds per query of each way."""
    figures = {}
    for long, overlap in COSTS:
        with tempfile.TemporaryDirectory() as place:
            encoder = Encoder.load(MODEL, device="cpu")
            encoder.encode(["warm"] * 20_000)  # its export is opened
            started = time.perf_counter()
            options = BuildOptions(overlap=overlap)
            with SearchIndex.build(
                folder, encoder, Path(place) / "x", with_encoder=False, long=long, options=options
            ) as index:
                seconds = time.perf_counter() - started
                info = index.info()
                figures[f"{long} {overlap}"] = {
                    "seconds": round(seconds, 1),
                    "documents": info.documents,
                    "vectors": info.vectors,
                    "bytes": info.bytes,
                    "latency": evaluate_index(index, queries=200).latency._asdict(),
                }
    return figures


def short_texts(folder: Path) -> Iterator[str]:
    """Titles and sentences, each once, and none above some tens of words."""
    known: dict[str, None] = {}
    for name in SHORT_TEXTS:
        with gzip.open(folder / f"{name}.txt.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                for sentence in re.split(r"(?<=[.!?])\s+", line.strip()):
                    known.setdefault(sentence[:400])
    yield from known


def measure_short(folder: Path) -> Figures:
    """Seconds and megabytes of an index over short documents, with passages and truncated."""
    texts = list(islice(filter(None, short_texts(folder)), SHORT_COUNT))
    with tempfile.TemporaryDirectory() as place:
        corpus = Path(place) / "corpus.txt"
        corpus.write_text("\n".join(texts) + "\n", encoding="utf-8")
        runs: dict[str, list[tuple[float, float]]] = {"passages": [], "truncate": []}
        for _ in range(SHORT_RUNS):
            for long, found in runs.items():
                found.append(_built(corpus, Path(place) / long, long))
    return {
        "documents": len(texts),
        **{
            long: {
                "seconds": [round(seconds, 2) for seconds, _ in found],
                "peak_mb": [round(peak) for _, peak in found],
            }
            for long, found in runs.items()
        },
        "time_ratio": median_ratio(*([one for one, _ in found] for found in runs.values())),
        "memory_ratio": median_ratio(*([one for _, one in found] for found in runs.values())),
    }


def _built(corpus: Path, place: Path, long: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a process that builds an index."""
    command = [sys.executable, "-m", "sbertkit", "index", str(corpus), "-o", str(place)]
    command += ["--long", long, "--precision", "int8", "--without-encoder", "--quiet"]
    started = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("the build failed")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def descriptions() -> Iterator[str]:
    """The descriptions (README files) of the installed packages, each once."""
    known = {one.metadata["Name"]: str(one.metadata.get_payload()) for one in distributions()}  # type: ignore[attr-defined]
    yield from dict.fromkeys(known[name] for name in sorted(known))


def sentence_at(text: str, place: float, texts: Sequence[str]) -> str | None:
    """The first sentence of prose from a place on that no other text has; None if there is none."""
    end = min(len(text), int((place + 0.1) * len(text)))
    for line in text[int((place - 0.1) * len(text)) : end].splitlines()[1:]:
        for sentence in re.split(r"(?<=[.!?])\s+", line.strip()):
            words = re.findall(r"[A-Za-z]+", sentence)
            prose = len(words) >= MIN_WORDS and "http" not in sentence and "`" not in sentence
            if prose and sum(sentence in other for other in texts) == 1:
                return sentence
    return None


if __name__ == "__main__":
    main()
