"""Search by words: speed beside other libraries, quality, and what changes do to scores.

    SBERTKIT_DATA=FOLDER python eval/bench_lexical.py [--lines FILE] [--vectors FILE] [--runs 5]

Each system indexes the lines, one per line of FILE, and is then asked in turns for queries of 3 and
of 10 words of a line that are no stop words, one after another and all at once, with one thread.
The index folder for the first search from the shell is made with the given vectors of the lines
(``.npy``, by the bundled model, see index_vectors.py). Quality is nDCG@10 on the collections of
`SETS`. Each part is an entry of results/bench_lexical.json; the next call measures the missing
ones. Nothing else should run meanwhile.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from lexical_worker import PEERS, SYSTEMS, WORD, K
from peer_environment import peer_python
from recording import ROOT, Entries, Figures, alternate, arguments_of, data_folder

from sbertkit import BuildOptions, Encoder, ReadOptions, SearchIndex, evaluate_run
from sbertkit.data import read_corpus
from sbertkit.data.retrieval import read_collection
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.bm25 import Bm25
from sbertkit.lexical.languages import detect_language
from sbertkit.lexical.postings_file import PostingsFile
from sbertkit.lexical.postings_writer import write_postings
from sbertkit.lexical.query import parse_query
from sbertkit.lexical.search import LexicalSearch, LexicalSegment
from sbertkit.lexical.stop_words import STOP_WORDS

SETS = ("scifact", "nfcorpus_ecir", "cranfield", "cisi", "npl", "lisa", "zh_lcqmc_dup")
PARAMETERS = ((1.2, 0.75), (0.9, 0.4), (1.5, 0.75), (2.0, 0.75))
QUERIES = 200
WORDS = (3, 10)
DELETED = 0.1
SOURCES = [
    "sbertkit/lexical",
    "eval/bench_lexical.py",
    "eval/lexical_worker.py",
    "eval/peers/lexical.txt",
]


class Worker:
    """A system in its own process; see lexical_worker.py."""

    def __init__(self, system: str, lines: Path, folder: Path) -> None:
        python = peer_python("lexical.txt") if system in PEERS else sys.executable
        self._process = subprocess.Popen(
            [python, ROOT / "eval" / "lexical_worker.py", system, lines, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._orders: Any = self._process.stdin
        self._answers: Any = self._process.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.close()
        self._process.wait()

    def ask(self, *order: Any) -> tuple[Any, float]:
        """What a method of the system gives, and its seconds."""
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        answer, seconds = json.loads(self._answers.readline())
        return answer, seconds


def queries_of(lines: list[str], words: int) -> list[str]:
    """Queries of so many different words of a line each, none of them a stop word."""
    source = random.Random(words)
    queries: list[str] = []
    while len(queries) < QUERIES:
        found = dict.fromkeys(word.lower() for word in WORD.findall(source.choice(lines)))
        rare = [word for word in found if word not in STOP_WORDS["english"] and word.isascii()]
        if len(rare) >= words:
            queries.append(" ".join(source.sample(rare, words)))
    return queries


def speed(path: Path, runs: int) -> Figures:
    """Seconds to build, bytes, and milliseconds per query of each system."""
    lines = path.read_text(encoding="utf-8").splitlines()
    figures: Figures = {"lines": len(lines)}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name, path, Path(folder))) for name in SYSTEMS}
        for name, worker in workers.items():
            size, seconds = worker.ask("build")
            figures[name] = {"seconds": round(seconds, 1), "bytes": size}
        for words in WORDS:
            queries = queries_of(lines, words)

            def single(worker: Worker, queries: list[str] = queries) -> float:
                return sum(worker.ask("search", query)[1] for query in queries)

            def batch(worker: Worker, queries: list[str] = queries) -> float:
                return worker.ask("search_all", queries)[1]

            for kind, timed in (("single", single), ("batch", batch)):
                measured = alternate(runs, *(partial(timed, one) for one in workers.values()))
                for name, seconds_of in zip(workers, measured, strict=True):
                    milliseconds = 1_000 * statistics.median(seconds_of) / len(queries)
                    figures[name][f"ms_{kind}_{words}"] = round(milliseconds, 3)
    return figures


def cold(path: Path, vectors: Path, runs: int) -> Figures:
    """Seconds of the first search from the shell by mode; of a bare Python, too."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        encoder = Encoder.load(BUNDLED_NAME, device="cpu")
        options = BuildOptions(vectors=vectors)
        SearchIndex.build(
            path, encoder, index, kind="flat", long="truncate", options=options
        ).close()
        size = sum(file.stat().st_size for file in index.rglob("words.bin"))
        search = [sys.executable, "-m", "sbertkit", "search", index, "a red car on the road"]
        commands: dict[str, list[Any]] = {
            "lexical": [*search, "--mode", "lexical"],
            "hybrid": [*search, "--mode", "hybrid"],
            "python": [sys.executable, "-c", "import numpy"],
        }

        def timed(command: list[Any]) -> float:
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            return time.perf_counter() - started

        measured = alternate(runs, *(partial(timed, one) for one in commands.values()))
        medians = map(statistics.median, measured)
        return {
            "bytes": size,
            **{name: round(seconds, 3) for name, seconds in zip(commands, medians, strict=True)},
        }


def quality(root: Path, name: str) -> Figures:
    """nDCG@10 and R@100 of a collection by each of the parameters."""
    collection = read_collection(root / "retrieval" / name)
    documents = [read.document for read in read_corpus(collection.folder, ReadOptions())]
    ids = [document.id for document in documents]
    texts = [document.text for document in documents]
    language = detect_language(texts[:: max(1, len(texts) // 1_000)])
    analyzer = Analyzer(language)
    figures: Figures = {"language": language}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.bin"
        write_postings(path, texts, analyzer)
        segment = LexicalSegment(PostingsFile(path, len(texts)), None)
        for k1, b in PARAMETERS:
            search = LexicalSearch([segment], Bm25(k1, b))
            run = {}
            for query, text in collection.queries.items():
                found = search.search(parse_query(text, analyzer), 100)
                run[query] = {
                    ids[number]: score
                    for number, score in zip(found.numbers, found.scores.tolist(), strict=True)
                }
            measures = evaluate_run(run, collection.qrels, measures=("nDCG@10", "R@100")).measures
            figures[f"{k1:g}, {b:g}"] = measures
    return figures


def changes(path: Path, count: int = 20_000) -> Figures:
    """Whether scores stay those of a fresh build after additions, upserts and deletions."""
    lines = list(islice(path.read_text(encoding="utf-8").splitlines(), 2 * count))
    count = min(count, len(lines) // 2)
    queries = [query for words in WORDS for query in queries_of(lines[:count], words)]
    encoder = Encoder.load(BUNDLED_NAME, device="cpu", precision="auto")
    source = random.Random(0)

    def hits(index: SearchIndex) -> list[list[tuple[str, float]]]:
        found = index.search_batch(queries, K, mode="lexical")
        return [[(hit.id, hit.score) for hit in of_query] for of_query in found]

    def fresh(index: SearchIndex, folder: Path) -> list[list[tuple[str, float]]]:
        listed = list(index.documents())
        with SearchIndex.build(listed, encoder, folder, with_encoder=False) as built:
            return hits(built)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = [(str(number), line) for number, line in enumerate(lines[:count])]
        with SearchIndex.build(corpus, encoder, folder / "index", with_encoder=False) as index:
            for turn in range(20):
                start = count + 50 * turn
                if turn % 2:
                    index.add((str(start + row), lines[start + row]) for row in range(50))
                else:
                    known = source.sample(range(count), 50)
                    index.upsert((str(one), lines[start + row]) for row, one in enumerate(known))
            equal = hits(index) == fresh(index, folder / "fresh")
            gone = source.sample([document.id for document in index.documents()], count // 10)
            index.delete(gone)
            deleted, again = hits(index), fresh(index, folder / "fresh")
            index.compact()
            overlaps = [
                len({one for one, _ in of} & {one for one, _ in other}) / max(1, len(other))
                for of, other in zip(deleted, again, strict=True)
            ]
            return {
                "queries": len(queries),
                "equal after changes": equal,
                "overlap after deletions": round(statistics.mean(overlaps), 4),
                "equal after compact": hits(index) == again,
            }


def main() -> None:
    """Measures the missing parts."""
    parser = arguments_of(__doc__)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="without them, no first search is timed")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    root, lines = data_folder("retrieval/scifact"), arguments.lines
    entries = Entries("bench_lexical", SOURCES)
    settings = {"runs": arguments.runs, "lines": lines.stat().st_size}
    for name in SETS:
        entries.measure(name, {}, partial(quality, root, name))
    entries.measure("changes", settings, partial(changes, lines))
    entries.measure("speed", settings, partial(speed, lines, arguments.runs))
    if arguments.vectors is not None:
        timed = partial(cold, lines, arguments.vectors, arguments.runs)
        entries.measure("cold", settings, timed)


if __name__ == "__main__":
    main()
