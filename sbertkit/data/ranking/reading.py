"""Files and BEIR folders of ranking data into one set."""

import logging
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from sbertkit.arguments import Paths, path_list, path_text
from sbertkit.data.bad_rows import BadRow, BadRows
from sbertkit.data.corpora import read_corpus
from sbertkit.data.lines import TextOptions
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.ranking.ranking_set import RankingPair, RankingSet, RankingSource
from sbertkit.data.retrieval import is_collection, read_collection
from sbertkit.data.sources import Source, find_sources
from sbertkit.data.streams import source_name
from sbertkit.data.tables import TABLES, Columns, Row
from sbertkit.data.text import has_surrogates, is_blank, printable, repair_surrogates
from sbertkit.errors import InputError
from sbertkit.progress import track

logger = logging.getLogger(__name__)


_TRAIN = "train"
_NUMBERED = 32
"""Columns ``negative_1``, ``negative_2`` and so on, as sentence-transformers mines them."""
_COLUMNS = Columns(
    {
        "query": ("query", "question", "anchor", "sentence1"),
        "document": ("document", "passage", "text", "answer", "sentence2"),
        "label": ("label", "score", "relevance"),
        "positive": ("positive", "positives", "pos"),
        "negative": ("negative", "negatives", "neg"),
        **{f"negative_{number}": (f"negative_{number}",) for number in range(1, _NUMBERED + 1)},
        "score": ("teacher_score",),
        "positive_score": ("positive_score", "positive_scores", "pos_score", "pos_scores"),
        "negative_score": ("negative_score", "negative_scores", "neg_score", "neg_scores"),
    },
    needed=("query",),
    either=("document", "positive"),
    expected="query, and document (and label) or positive (and negative) as column names",
)


def read_ranking(
    paths: Paths, *, split: str | None = None, distinct: bool = False, progress: bool = False
) -> RankingSet:
    """The labeled pairs of files and folders, in their order.

    A file is JSON Lines, TSV, CSV, Parquet or Arrow, gzip when its name ends in ``.gz``. A row has
    ``query``, ``document`` and ``label`` from 0 to 1; or ``query``, ``positive`` and, if there are
    any, ``negative``, each a text or a list of texts, or ``negative_1``, ``negative_2`` and so on;
    or ``query`` and ``document`` alone, which then is relevant. Usual other names are known, such
    as ``anchor``, ``pos``, ``neg``, ``sentence1`` and ``sentence2``.
    A teacher's scores are in ``teacher_score``, or in ``positive_score`` and ``negative_score``,
    with as many of them as texts. A folder in BEIR's layout gives the judged
    documents of a split: those with a grade above 0 are relevant, all alike. Texts must not be
    blank. Exact duplicates are left out.

    Args:
        paths: A file or folder, or several.
        split: The split of folders; by default ``train``.
        distinct: Refuse rows whose positive is their query, or one of their negatives.
        progress: Show how many pairs are read.

    Raises:
        InputError: Bad rows (one message for all of a file), no relevant document, or a source
            that cannot be understood.
        MissingFile: A source does not exist.
        StorageError: A source cannot be read.
    """
    given = path_list(paths)
    if not given:
        raise InputError("expected at least one file or folder to train on, found an empty list")
    pairs: dict[RankingPair, None] = {}
    read = []
    duplicates = 0
    with track("reading pairs", None, shown=progress) as advance:
        for one in given:
            source = _Beir(one, split) if is_collection(one) else _Tables(one, split, distinct)
            sha256, before = source.sha256(), len(pairs)
            for pair in source.pairs():
                duplicates += pair in pairs
                pairs.setdefault(pair)
                advance(1)
            read.append(RankingSource(source.path, sha256, len(pairs) - before, source.skipped))
    _check(pairs, read)
    if duplicates:
        logger.warning("%d duplicate pairs left out", duplicates)
    return RankingSet(tuple(pairs), tuple(read))


def _check(pairs: Collection[RankingPair], read: Sequence[RankingSource]) -> None:
    """Warns of pairs with several labels, and of those that were left out.

    Raises:
        InputError: No document is relevant.
    """
    if not any(pair.group == 0 for pair in pairs):
        names = printable(", ".join(source_name(one.source) for one in read), 500)
        raise InputError(
            f"{names}: expected at least one relevant document, found none among {len(pairs):,} "
            "pairs; a label is from 0 to 1, and relevant from 0.5 on"
        )
    several = len(pairs) - len({pair[:2] for pair in pairs})
    if several:
        logger.warning("%d pairs of query and document have more than one label", several)
    skipped = sum(one.skipped for one in read)
    if skipped:
        logger.warning("%d judged pairs without a text left out", skipped)


class _Beir:
    """A folder in BEIR's layout."""

    def __init__(self, path: str | os.PathLike[str], split: str | None) -> None:
        self.path = path_text(path)
        self.skipped = 0
        self._collection = read_collection(self.path, split or _TRAIN)

    def sha256(self) -> str:
        """The hash of its files."""
        files = sorted(
            str(file)
            for pattern in ("corpus.jsonl*", "queries.jsonl*", f"qrels/{self._collection.split}.*")
            for file in Path(self.path).glob(pattern)
        )
        return Source(self.path, True, tuple(files), TABLES["jsonl"]).sha256()

    def pairs(self) -> Iterator[RankingPair]:
        """Each judged document with its query, in the order of the judgements."""
        qrels, queries = self._collection.qrels, self._collection.queries
        judged = {document for grades in qrels.values() for document in grades}
        texts = {
            document.id: document.text
            for document, _ in read_corpus(self.path)
            if document.id in judged
        }
        for query, grades in qrels.items():
            for document, grade in grades.items():
                if query in queries and document in texts:
                    yield RankingPair.of(queries[query], texts[document], float(grade > 0))
                else:
                    self.skipped += 1


class _Tables:
    """A file with a row for each query or pair, or a data set folder of such."""

    skipped = 0

    def __init__(self, path: str | os.PathLike[str], split: str | None, distinct: bool) -> None:
        (self._source,) = find_sources(path, split)
        self._distinct = distinct
        self.path = self._source.path

    def sha256(self) -> str:
        """The hash of its files."""
        return self._source.sha256()

    def pairs(self) -> Iterator[RankingPair]:
        """The pairs of all rows.

        Raises:
            InputError: Bad rows.
        """
        table = self._source.table
        for file in self._source.files:
            bad = BadRows(source_name(file), table.unit)
            labeled: bool | None = None  # as the first row is
            for row in bad.removed_from(table.read(file, _COLUMNS, TextOptions())):
                try:
                    if labeled is None:
                        labeled = "label" in row.values
                    found = _pairs_of(row, labeled=labeled)
                    if self._distinct:
                        _check_distinct(found)
                    yield from found
                except BadRecordError as error:
                    bad.add(BadRow(row.number, error.reason))
            bad.refuse()


def _pairs_of(row: Row, *, labeled: bool) -> list[RankingPair]:
    """The pairs of a row; a document without labels in its file is relevant.

    Raises:
        BadRecordError: Something is missing or of another kind.
    """
    values = row.values
    query = _text(values["query"], "query")
    if values.get("positive") is not None:
        positives = _scored(values, "positive", _texts(values["positive"], "positive"))
        negatives = _scored(values, "negative", _negatives(values))
        return [
            RankingPair.of(query, text, label, score)
            for label, side in ((1.0, positives), (0.0, negatives))
            for text, score in side
        ]
    if "document" not in values:
        raise BadRecordError("neither document and label nor positive")
    ((document, score),) = _scored(values, "", [_text(values["document"], "document")])
    label = _label(values.get("label")) if labeled or "label" in values else 1.0
    return [RankingPair.of(query, document, label, score)]


def _negatives(values: Mapping[str, object]) -> list[str]:
    """The texts in the column of negatives, and in the numbered ones."""
    numbered = (values.get(f"negative_{number}") for number in range(1, _NUMBERED + 1))
    texts = _texts(values.get("negative"), "negative")
    return texts + [_text(one, "negative") for one in numbered if one is not None and one != ""]


def _scored(
    values: Mapping[str, object], role: str, texts: list[str]
) -> list[tuple[str, float | None]]:
    """Texts with a teacher's scores, which are as many, or none."""
    given = values.get(f"{role}_score" if role else "score")
    if given is None or given == "":
        return [(text, None) for text in texts]
    scores = list(given) if isinstance(given, list | tuple) else [given]
    if len(scores) != len(texts):
        raise BadRecordError(f"{len(scores)} scores for {len(texts)} {role} texts")
    return list(zip(texts, map(_score, scores), strict=True))


def _score(value: object) -> float:
    score = _number(value)
    if not math.isfinite(score):
        raise BadRecordError(f"a score must be a finite number, found {_shown(value)}")
    return score


def _check_distinct(pairs: Sequence[RankingPair]) -> None:
    """Nothing, if no positive of a row is its query or one of its negatives.

    Raises:
        BadRecordError: One is.
    """
    negatives = {pair.document for pair in pairs if pair.group}
    for pair in pairs:
        if pair.group == 0 and pair.document == pair.query:
            raise BadRecordError("a positive is the anchor itself")
        if pair.group == 0 and pair.document in negatives:
            raise BadRecordError("a positive is a negative, too")


def _texts(value: object, role: str) -> list[str]:
    """A text, or a list of texts; none for nothing."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [_text(one, role) for one in value]
    return [_text(value, role)]


def _text(value: object, role: str) -> str:
    if not isinstance(value, str):
        found = "nothing" if value is None else type(value).__name__
        raise BadRecordError(f"the {role} must be text, found {found}")
    if is_blank(value):
        raise BadRecordError(f"the {role} is blank")
    return repair_surrogates(value) if has_surrogates(value) else value


def _label(value: object) -> float:
    label = _number(value)
    if not 0 <= label <= 1:
        raise BadRecordError(f"the label must be a number from 0 to 1, found {_shown(value)}")
    return label


def _number(value: object) -> float:
    """A number; NaN for what is none."""
    try:
        return float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _shown(value: object) -> str:
    return "nothing" if value is None else printable(str(value), 40)
