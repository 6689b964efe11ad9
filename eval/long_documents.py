"""What is done with texts longer than the limit, and what it does to retrieval.

    SBERTKIT_DATA=FOLDER python eval/long_documents.py [--precision int8]

FOLDER holds retrieval/scifact and the other collections of `SETS`. Each collection under each limit
of tokens is an entry of results/long_documents.json: truncation, the mean of the passages, and
passages with each overlap, of which the best one counts, or the mean of the best two. A further
entry looks for sentences of Python packages' descriptions by their place in the description.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import distributions
from typing import Any, NamedTuple

import numpy as np
from recording import VECTORS, Entries, Figures, arguments_of, data_folder

from sbertkit import Encoder, evaluate_retrieval
from sbertkit.arrays import Vectors
from sbertkit.data import read_corpus
from sbertkit.data.named import find_named
from sbertkit.data.retrieval import Collection, read_collection
from sbertkit.encoder.divided_texts import TextDivider
from sbertkit.encoder.passages import PassageSplitter
from sbertkit.metrics import unit_rows

MODEL = "all-MiniLM-L6-v2"
SETS = ("cisi", "nfcorpus-ecir", "cranfield", "scifact", "lisa")
LIMITS = (64, 128, 256)
OVERLAPS = (0, 32, 64)
MEASURES = ("nDCG@10", "R@100")
DEPTH = 1_000
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
    parser.add_argument("--precision", default="fp32")
    given = parser.parse_args()
    entries = Entries("long_documents", SOURCES)
    root = data_folder("retrieval/scifact")
    for limit in LIMITS:
        encoder = Encoder.load(MODEL, max_tokens=limit, precision=given.precision, device="cpu")
        settings = {"model": MODEL, "max_tokens": limit, "precision": given.precision}
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
