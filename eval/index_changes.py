"""What changes to an index cost, and how they slow down searches.

    python eval/index_changes.py [--rounds 7]

The corpus is that of the demo. An update changes 1 % of its texts; the searches compare an index of
16 segments with a tenth of its documents deleted with one that is built at once from the rest.
Nothing else should run meanwhile.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recording import Figures, alternate, arguments_of, median_ratio, record

from sbertkit import BuildOptions, Document, Encoder, SearchIndex
from sbertkit.data import read_corpus
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder import encoding
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.retrieval import merge_policy

QUERIES = 200
SEGMENTS = 16
SOURCES = ["sbertkit/index", "sbertkit/retrieval", "eval/index_changes.py"]


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    corpus = [found.document for found in read_corpus(demo_corpus())]
    encoder = Encoder.load(BUNDLED_NAME, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        figures = {"documents": len(corpus), "update": update(corpus, encoder, root)}
        figures["search"] = {
            kind: search(corpus, encoder, root, kind, arguments.rounds)
            for kind in ("flat", "hnsw", "ivfpq")
        }
    print(json.dumps(figures, indent=2))
    record("index_changes", SOURCES, figures)


def update(corpus: list[Document], encoder: Encoder, folder: Path) -> Figures:
    """An update in which one percent of the texts has changed."""
    source = random.Random(0)
    path, file = folder / "index", folder / "corpus.jsonl"
    SearchIndex.build(corpus, encoder, path, kind="flat").close()
    chosen = set(source.sample(range(len(corpus)), len(corpus) // 100))
    with file.open("w", encoding="utf-8") as lines:
        for number, document in enumerate(corpus):
            text = f"changed: {document.text}" if number in chosen else document.text
            line = {"id": document.id, "text": text, **document.metadata}
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    encoded = 0
    spent = 0.0
    vectors = encoding.EncodingRun.vectors

    def timed(self: encoding.EncodingRun, *given: Any, **named: Any) -> Any:
        nonlocal encoded, spent
        chunks = vectors(self, *given, **named)
        while True:
            started = time.perf_counter()
            chunk = next(chunks, None)
            spent += time.perf_counter() - started
            if chunk is None:
                return
            encoded += len(chunk)
            yield chunk

    encoding.EncodingRun.vectors = timed  # type: ignore[method-assign]
    try:
        with SearchIndex.open(path, encoder) as index:
            started = time.perf_counter()
            changes = index.update(file)
            seconds = time.perf_counter() - started
    finally:
        encoding.EncodingRun.vectors = vectors  # type: ignore[method-assign]
    return {
        "changed": changes.changed,
        "unchanged": changes.unchanged,
        "encoded": encoded,
        "seconds": round(seconds, 3),
        "seconds_without_encoding": round(seconds - spent, 3),
    }


def search(
    corpus: list[Document], encoder: Encoder, folder: Path, kind: str, rounds: int
) -> Figures:
    """Latency of single queries over many segments, over one segment, and after compaction."""
    source = random.Random(1)
    deleted_ids = {
        corpus[number].id for number in source.sample(range(len(corpus)), len(corpus) // 10)
    }
    queries = encoder.encode([document.text for document in source.sample(corpus, QUERIES)])
    vectors = encoder.encode([document.text for document in corpus])
    step = -(-len(corpus) // SEGMENTS)
    cheap, merge_policy.CHEAP = merge_policy.CHEAP, 0  # so that nothing is merged or rewritten
    try:
        many = SearchIndex.build(
            corpus[:step],
            encoder,
            folder / f"many-{kind}",
            kind=kind,
            options=BuildOptions(vectors=vectors[:step]),
        )
        for start in range(step, len(corpus), step):
            many.add(corpus[start : start + step])
        many.delete(deleted_ids)
    finally:
        merge_policy.CHEAP = cheap
    kept = [number for number, document in enumerate(corpus) if document.id not in deleted_ids]
    rebuilt = SearchIndex.build(
        [corpus[number] for number in kept],
        encoder,
        folder / f"rebuilt-{kind}",
        kind=kind,
        options=BuildOptions(vectors=vectors[kept]),
    )

    def latency(index: SearchIndex) -> Callable[[], float]:
        def seconds() -> float:
            times = []
            for query in queries:
                started = time.perf_counter()
                index.search(query, 10, mode="dense")
                times.append(time.perf_counter() - started)
            return statistics.median(times)

        return seconds

    def hits(index: SearchIndex) -> list[list[str]]:
        found = index.search_batch(list(queries), 10, mode="dense")
        return [[hit.id for hit in of_query] for of_query in found]

    if kind == "flat" and hits(many) != hits(rebuilt):
        raise SystemExit("many segments and one give other hits")
    segments, deleted = many.info().segments, many.info().deleted
    by_many, by_rebuilt = alternate(rounds, latency(many), latency(rebuilt))
    exact = [
        [hit.id for hit in found]
        for found in rebuilt.search_batch(list(queries), 10, mode="dense", exact=True)
    ]
    recall = {
        name: statistics.mean(
            len(set(one) & set(right)) / 10 for one, right in zip(hits(index), exact, strict=True)
        )
        for name, index in (("segments", many), ("rebuilt", rebuilt))
    }
    many.compact()
    by_compact, again = alternate(rounds, latency(many), latency(rebuilt))
    if kind == "flat" and hits(many) != hits(rebuilt):
        raise SystemExit("the compacted index gives other hits")
    return {
        "segments": segments,
        "deleted": deleted,
        "milliseconds": round(1_000 * statistics.median(by_many), 3),
        "rebuilt_milliseconds": round(1_000 * statistics.median(by_rebuilt), 3),
        "ratio": round(median_ratio(by_many, by_rebuilt), 2),
        "ratio_compacted": round(median_ratio(by_compact, again), 2),
        "recall_at_10": recall,
    }


if __name__ == "__main__":
    main()
