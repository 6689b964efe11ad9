"""The vectors that indexes are measured with: glosses, 300,000 lines and 2,000 unseen queries.

    SBERTKIT_DATA=FOLDER python eval/index_vectors.py [--wordnet FOLDER] [--work FOLDER]

The lines are the distinct glosses of WordNet and a fixed sample of news, questions, captions,
abstracts and premises. The queries are those of retrieval collections and sentences of STS sets,
none of them a line. Texts (``.txt``, one per line) and vectors (``.npy``, by the bundled model in
int8) are kept in the work folder; an interrupted run is resumed, and what is there is not made
again.
"""

import argparse
import csv
import gzip
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from recording import arguments_of, data_folder

from sbertkit import Encoder, Hit, encode_corpus
from sbertkit.arrays import Vectors
from sbertkit.encoder.resolve import BUNDLED_NAME

LINES = 300_000
QUERIES = 2_000
NAMES = ("glosses", "lines", "queries")

EQUAL = 1e-6
"""Cosines that differ by less are equal: it does not matter which of the rows is found."""

_WORDNET = ("data.noun", "data.verb", "data.adj", "data.adv")
_COLLECTIONS = ("scifact", "cranfield", "cisi", "npl", "lisa", "nfcorpus_ecir")
_CORPORA = ("en_reuters_titles", "en_reuters_bodies", "en_stackoverflow_titles")
_PREMISES = ("lingnli/train", "new_protocols/train", "snli/train_part", "conjnli/train")
_SIMILAR = ("stsb", "sts12", "sts13", "sts14", "sick")


class Embedded(NamedTuple):
    """Texts, and the vector of each, (n, dim)."""

    texts: list[str]
    vectors: Vectors


def recall_per_query(
    found: Sequence[Sequence[Hit]], exact: Sequence[Sequence[Hit]]
) -> Iterator[float]:
    """The share of the hits of exhaustive search, or of others as near, that each query found."""
    for hits, best in zip(found, exact, strict=True):
        yield sum(hit.score >= best[-1].score - EQUAL for hit in hits) / len(best)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `prepare` needs."""
    parser.add_argument("--wordnet", type=Path, help="by default, $SBERTKIT_DATA/wordnet")
    default = Path(tempfile.gettempdir()) / "sbertkit-bench-index"
    parser.add_argument("--work", type=Path, default=default, help=f"by default, {default}")
    parser.add_argument("--lines", type=int, default=LINES)


def prepare(arguments: argparse.Namespace) -> dict[str, Embedded]:
    """The vectors by `NAMES`; those that the work folder lacks are made."""
    root, work = data_folder("retrieval/scifact"), arguments.work
    work.mkdir(parents=True, exist_ok=True)
    texts = _texts(root, arguments.wordnet or root / "wordnet", arguments.lines)
    encoder = Encoder.load(BUNDLED_NAME, device="cpu", precision="int8")
    for name, wanted in texts.items():
        content = "".join(f"{text}\n" for text in wanted).encode()
        source, target = work / f"{name}.txt", work / f"{name}.npy"
        if not source.is_file() or source.read_bytes() != content:
            target.unlink(missing_ok=True)
            source.write_bytes(content)
        if not target.is_file():
            encode_corpus(encoder, source, target, progress=True, resume=True)
    return {name: Embedded(texts[name], np.load(work / f"{name}.npy")) for name in NAMES}


def _texts(root: Path, wordnet: Path, count: int) -> dict[str, list[str]]:
    """The texts by `NAMES`, those of the lines in no order."""
    glosses = [" ".join(gloss.split()) for gloss in _glosses(wordnet)]
    queries = _queries(root)
    rest = list(dict.fromkeys(_clean(_others(root))).keys() - {*glosses, *queries})
    random.Random(0).shuffle(rest := sorted(rest))
    lines = sorted(set(glosses) - set(queries))
    lines = [*lines, *rest[: max(0, count - len(lines))]]
    if len(lines) < count:
        sys.exit(f"expected {count} distinct lines, found {len(lines)}; check {root} and {wordnet}")
    random.Random(1).shuffle(lines)
    return {"glosses": glosses, "lines": lines[:count], "queries": queries}


def _glosses(folder: Path) -> Iterator[str]:
    """The gloss of every synset."""
    for name in _WORDNET:
        path = folder / name
        if not path.is_file():
            sys.exit(
                f"there is no {path}: give the folder of WordNet's data files with --wordnet (the "
                "Debian package wordnet-base has them, in share/wordnet)"
            )
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line and not line.startswith("  "):  # else of the license
                yield line.split("|", 1)[1]


def _queries(root: Path) -> list[str]:
    """Distinct queries, half of them of retrieval collections, half sentences."""
    searched = (
        query["text"]
        for name in _COLLECTIONS
        for query in _json_lines(root / "retrieval" / name / "queries.jsonl")
    )
    sentences = (
        row[column]
        for name in _SIMILAR
        for row in _table(root / "sts" / f"{name}.tsv")
        for column in ("sentence1", "sentence2")
    )
    chosen: dict[str, None] = {}
    for texts, count in ((searched, QUERIES // 2), (sentences, QUERIES)):
        new = sorted(set(_clean(texts)) - chosen.keys())
        chosen |= dict.fromkeys(random.Random(0).sample(new, count - len(chosen)))
    return list(chosen)


def _others(root: Path) -> Iterator[str]:
    """The lines besides the glosses, with duplicates."""
    for name in _CORPORA:
        yield from _open(root / "corpora" / f"{name}.txt.gz")
    for row in _table(root / "pairs" / "flickr8k_groups.tsv.gz"):
        yield row["sentence"]
    for name in _COLLECTIONS:
        for document in _json_lines(root / "retrieval" / name / "corpus.jsonl"):
            yield f"{document.get('title') or ''} {document['text']}"
    for name in _PREMISES:
        for pair in _json_lines(root / "nli" / f"{name}.jsonl.gz"):
            yield pair["premise"]
            yield pair["hypothesis"]


def _clean(texts: Iterable[str]) -> Iterator[str]:
    """The texts without line breaks; blank ones are left out."""
    return filter(None, (" ".join(text.split()) for text in texts))


def _open(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        yield from lines


def _json_lines(path: Path) -> Iterator[dict[str, str]]:
    return map(json.loads, _open(path))


def _table(path: Path) -> Iterator[dict[str, str]]:
    return csv.DictReader(_open(path), delimiter="\t", quoting=csv.QUOTE_NONE)


def main() -> None:
    """Makes the vectors."""
    parser = arguments_of(__doc__)
    add_arguments(parser)
    for name, (texts, vectors) in prepare(parser.parse_args()).items():
        print(f"{name}: {len(texts):,} texts, vectors {vectors.shape}")


if __name__ == "__main__":
    main()
