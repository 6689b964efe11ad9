"""How well the label-free choice of diagnose agrees with a labeled one.

    SBERTKIT_DATA=FOLDER python eval/diagnosis.py --model MODEL [MODEL ...]

FOLDER holds the corpora of `CORPORA` and the labeled sets that score all candidates: for sentences
sets of sentence pairs, for documents the queries of their collection. Each model and corpus is an
entry of results/diagnosis.json.
"""

import gzip
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from post_processing import ENCODER_SOURCES, Sentences, applied
from recording import Entries, Figures, arguments_of, data_folder
from threadpoolctl import threadpool_limits
from torch import nn

from sbertkit import Diagnosis, Encoder, diagnose
from sbertkit.data import read_corpus
from sbertkit.data.retrieval import read_collection
from sbertkit.data.sts import read_sts
from sbertkit.encoder.multi_pooling import encode_poolings
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.whitening import FITTERS
from sbertkit.evaluation.diagnosis import Candidate
from sbertkit.evaluation.measures import Measures
from sbertkit.evaluation.top_k import TopK
from sbertkit.metrics import spearman, unit_rows


class Corpus(NamedTuple):
    """Texts to diagnose on, and the labels that score the candidates.

    Attributes:
        path: Path in the data folder.
        sets: Sets of sentence pairs and their splits; none for a collection with queries.
    """

    path: str
    sets: tuple[tuple[str, str], ...] = ()


_BOTH = (("stsb", "dev"), ("sick", "dev"))
CORPORA = {
    "SNLI premises": Corpus("nli/snli/dev.jsonl.gz", _BOTH),
    "Reuters titles": Corpus("corpora/en_reuters_titles.txt.gz", _BOTH),
    "Stack Overflow titles": Corpus("corpora/en_stackoverflow_titles.txt.gz", _BOTH),
    "STS-B train sentences": Corpus("sts/stsb.tsv", (("stsb", "test"),)),
    "Cranfield documents": Corpus("retrieval/cranfield"),
    "CISI documents": Corpus("retrieval/cisi"),
}
_MEASURE = "nDCG@10"
SOURCES = [
    "sbertkit/evaluation/diagnosis",
    "sbertkit/data/pseudo_pairs.py",
    "sbertkit/metrics/cosine.py",
    *ENCODER_SOURCES,
]


def texts_of(path: Path) -> Path | list[str]:
    """A corpus; of NLI data the premises, of sentence pairs the training sentences."""
    if path.suffix == ".tsv":
        pairs = read_sts(path, split="train").pairs
        return list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    if not path.name.endswith(".jsonl.gz"):
        return path
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["premise"] for line in lines))


class Labels(Protocol):
    """Scores candidates with labels, times 100."""

    def score(self, pooling: Pooling, postprocessor: nn.Module | None) -> float:
        """The score of a pooling and a fitted post-processor."""
        ...


class SentencePairs:
    """Spearman times 100 of the cosine, mean over sets of sentence pairs."""

    def __init__(self, encoder: Encoder, poolings: Sequence[Pooling], files: Sequence[Any]) -> None:
        self._sets = [Sentences(read_sts(path, split=split)) for path, split in files]
        self._grids = [encode_poolings(encoder, one.texts, poolings) for one in self._sets]

    def score(self, pooling: Pooling, postprocessor: nn.Module | None) -> float:
        """The score of a pooling and a fitted post-processor."""
        scores = [
            sentences.scores(applied(postprocessor, grid[pooling]))["cosine"]
            for sentences, grid in zip(self._sets, self._grids, strict=True)
        ]
        return float(np.mean([score or 0.0 for score in scores]))


class Queries:
    """nDCG@10 times 100 of exact search in a collection."""

    def __init__(self, encoder: Encoder, poolings: Sequence[Pooling], folder: Path) -> None:
        documents = [one.document for one in read_corpus(folder)]
        self._ids = [document.id for document in documents]
        self._collection = read_collection(folder)
        queries = list(self._collection.queries.values())
        self._documents = encode_poolings(encoder, [one.text for one in documents], poolings)
        self._queries = encode_poolings(encoder, queries, poolings)
        self._measures = Measures([_MEASURE])

    def score(self, pooling: Pooling, postprocessor: nn.Module | None) -> float:
        """The score of a pooling and a fitted post-processor."""
        queries, documents = (
            unit_rows(applied(postprocessor, grid[pooling])).astype(np.float32)
            for grid in (self._queries, self._documents)
        )
        best = TopK(queries, 10)
        best.add(self._ids, documents)
        run = dict(zip(self._collection.queries, best.hits(), strict=True))
        values = self._measures.per_query(self._collection.qrels, run)[_MEASURE]
        return 100 * self._measures.mean(_MEASURE, values)


def labeled_scores(
    encoder: Encoder, found: Diagnosis, corpus: Corpus, root: Path
) -> dict[Candidate, float]:
    """The labeled score of each candidate, post-processors fitted on the texts of the diagnosis."""
    poolings = list(dict.fromkeys(one.candidate.pooling for one in found.candidates))
    labels: Labels
    if corpus.sets:
        files = [(root / f"sts/{name}.tsv", split) for name, split in corpus.sets]
        labels = SentencePairs(encoder, poolings, files)
    else:
        labels = Queries(encoder, poolings, root / corpus.path)
    fit = encode_poolings(encoder, found.texts, poolings)
    scores = {}
    for candidate in (one.candidate for one in found.candidates):
        pooling, name = candidate.pooling, candidate.postprocessor
        postprocessor = None if name is None else FITTERS[name](fit[pooling])
        scores[candidate] = labels.score(pooling, postprocessor)
    return scores


def measure(encoder: Encoder, corpus: Corpus, root: Path) -> Figures:
    """The agreement of a diagnosis with the labels."""
    texts = texts_of(root / corpus.path)
    started = time.perf_counter()
    found = diagnose(encoder, texts)
    seconds = time.perf_counter() - started
    with threadpool_limits(1, user_api="blas"):  # as diagnose does, for the same reason
        scores = labeled_scores(encoder, found, corpus, root)
    best = max(scores, key=lambda candidate: scores[candidate])
    agreement = spearman([one.score for one in found.candidates], list(scores.values()))
    return {
        "labels": "+".join(name for name, _ in corpus.sets) or _MEASURE,
        "pairs": found.pairs,
        "candidates": len(found.candidates),
        "seconds": round(seconds, 1),
        "rank_correlation": agreement.value,
        "labeled": {
            "current": scores[found.current.candidate],
            "selected": scores[found.best.candidate],
            "recommended": scores[found.recommended.candidate],
            "best": scores[best],
        },
        "selected": str(found.best.candidate),
        "recommended": str(found.recommended.candidate),
        "best": str(best),
        "gain": found.gain.difference,
        "interval": None if found.gain.interval is None else found.gain.interval._asdict(),
    }


def main() -> None:
    """Measures the missing models and corpora."""
    parser = arguments_of(__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("sts/stsb.tsv")
    entries = Entries("diagnosis", SOURCES)
    for model in arguments.model:
        encoder = Encoder.load(model, pooling="mean", device="cpu")
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        for name, corpus in CORPORA.items():
            key = f"{Path(model).name}:{name}"
            entries.measure(key, settings, partial(measure, encoder, corpus, root))


if __name__ == "__main__":
    main()
