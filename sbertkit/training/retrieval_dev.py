"""The retrieval dev set: queries with judged documents, searched among others."""

import hashlib
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import path_text
from sbertkit.data import read_corpus
from sbertkit.data.named import local_path
from sbertkit.data.retrieval import Collection, find_splits_of, is_collection, read_collection
from sbertkit.data.sts import StsPair, StsSet
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.metrics import bootstrap_interval, ndcg, unit_rows
from sbertkit.training.dev_set import DevScore, DevSet

logger = logging.getLogger(__name__)

MAX_DOCUMENTS = 20_000
"""Documents that are searched at most, so that a score takes no longer than training between two:
the judged ones, and others drawn from the rest, among which the score is higher than among all."""
_SPLIT = "dev"
_DEPTH = 10
_QUERIES_PER_CHUNK = 256

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RetrievalDevSet(DevSet):
    """Queries and documents to score an encoder on, by nDCG@10 of exact search.

    Attributes:
        queries: Their texts.
        documents: Texts of the documents, in descending order of their ids: the order of ties.
        grades: Of each query, the grades above 0 by the place of the document.
        excluded: Of each query, the place of the document with its own id; -1 for none.
    """

    queries: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    grades: tuple[dict[int, int], ...] = field(default=())
    excluded: tuple[int, ...] = ()

    measure: ClassVar[str] = "ndcg"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "RetrievalDevSet":
        """The dev set in a folder in BEIR's layout, or a named one.

        Of several splits ``dev`` is read; a file below ``qrels`` stands for another one.

        Raises:
            InputError: There is no such split, or no query has a relevant document with a text.
        """
        folder, split = _folder_and_split(path)
        collection = read_collection(folder, split)
        texts = _texts(collection)
        ids = sorted(texts, reverse=True)
        places = {name: place for place, name in enumerate(ids)}
        judged = {
            query: {
                places[document]: grade
                for document, grade in collection.qrels[query].items()
                if grade > 0 and document in places
            }
            for query in collection.queries
        }
        judged = {query: grades for query, grades in judged.items() if grades}
        if not judged:
            raise InputError(
                f"{path}: expected queries with a relevant document as dev set, found none in the "
                f"split {split}"
            )
        documents = tuple(texts[name] for name in ids)
        queries = {query: collection.queries[query] for query in judged}
        pairs = tuple(
            StsPair(float(grade), queries[query], documents[place])
            for query, grades in judged.items()
            for place, grade in grades.items()
        )
        content = repr([documents, queries, judged]).encode()
        own = (places.get(query, -1) for query in judged)
        return cls(
            StsSet(pairs, split, (), path_text(path)),
            hashlib.sha256(content).hexdigest(),
            tuple(queries.values()),
            documents,
            tuple(judged.values()),
            tuple(
                -1 if place in grades else place
                for place, grades in zip(own, judged.values(), strict=True)
            ),
        )

    def score(self, encoder: Encoder, *, interval: bool = False) -> DevScore:
        """Mean nDCG@10 over the queries; the encoder is put in evaluation mode."""
        documents = unit_rows(encoder.encode(self.documents))
        queries = unit_rows(encoder.encode(self.queries, kind="query"))
        values = ndcg(self._found(queries, documents), self._ideal())
        return DevScore(
            float(values.mean()), bootstrap_interval(np.mean, values) if interval else None
        )

    def _found(self, queries: Float64, documents: Float64) -> Float64:
        """The grades of the documents that are found for each query, (queries, depth)."""
        found = np.zeros((len(queries), _DEPTH))
        for start in range(0, len(queries), _QUERIES_PER_CHUNK):
            scores = queries[start : start + _QUERIES_PER_CHUNK] @ documents.T
            for row, own in enumerate(scores, start):
                if self.excluded[row] >= 0:
                    own[self.excluded[row]] = -np.inf
                best = np.argsort(-own, kind="stable")[:_DEPTH]
                found[row, : len(best)] = [self.grades[row].get(place, 0) for place in best]
        return found

    def _ideal(self) -> Float64:
        """The best grades that each query could find, (queries, depth)."""
        ideal = np.zeros((len(self.grades), _DEPTH))
        for row, grades in enumerate(self.grades):
            best = sorted(grades.values(), reverse=True)[:_DEPTH]
            ideal[row, : len(best)] = best
        return ideal


def read_dev(path: str | os.PathLike[str]) -> DevSet:
    """The dev set at a path or of that name: a collection to search in, or scored pairs.

    Raises:
        InputError: It is refused.
        MissingFile: It does not exist.
    """
    place = local_path(path_text(path))
    kind = RetrievalDevSet if is_collection(_root(place)) else DevSet
    return kind.read(path)


def _root(place: str) -> Path:
    """The folder that may be a collection: itself, or the one above a file of judgements."""
    path = Path(place)
    return path.parent.parent if path.is_file() and path.parent.name == "qrels" else path


def _folder_and_split(path: str | os.PathLike[str]) -> tuple[Path, str]:
    place = Path(local_path(path_text(path)))
    folder = _root(str(place))
    splits = find_splits_of(folder)
    if folder != place:
        names = [name for name, file in splits.items() if file.name == place.name]
        if not names:
            raise InputError(f"{place}: expected a .tsv or .jsonl file of judgements")
        return folder, names[0]
    if len(splits) == 1:
        return folder, next(iter(splits))
    if splits and _SPLIT not in splits:
        raise InputError(
            f"{path}: found the splits {', '.join(splits)} and no {_SPLIT}; pass the file of one "
            f"as dev (--dev), such as {folder / 'qrels' / next(iter(splits.values())).name}"
        )
    return folder, _SPLIT


def _texts(collection: Collection) -> dict[str, str]:
    """Texts by id, of the judged documents and of others up to `MAX_DOCUMENTS`."""
    judged = {document for grades in collection.qrels.values() for document in grades}
    random = np.random.default_rng(0)
    kept: dict[str, str] = {}
    drawn: list[tuple[str, str]] = []
    seen = 0
    for document, _ in read_corpus(collection.folder):
        if document.id in judged:
            kept[document.id] = document.text
            continue
        seen += 1
        room = max(0, MAX_DOCUMENTS - len(judged))
        place = len(drawn) if len(drawn) < room else int(random.integers(seen))
        if place < len(drawn):
            drawn[place] = (document.id, document.text)
        elif place < room:
            drawn.append((document.id, document.text))
    if len(drawn) < seen:
        logger.warning(
            "the dev set searches %s of %s documents: all that are judged, and others drawn at "
            "random",
            f"{len(kept) + len(drawn):,}",
            f"{len(kept) + seen:,}",
        )
    return kept | dict(drawn)
