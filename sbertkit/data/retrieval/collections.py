"""A retrieval collection in BEIR's layout: a corpus, queries and judgements in one folder."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import did_you_mean, path_text
from sbertkit.data.retrieval.judgements import read_qrels
from sbertkit.data.retrieval.queries import read_queries
from sbertkit.data.text import printable
from sbertkit.errors import InputError, MissingFile

logger = logging.getLogger(__name__)
_SUFFIXES = ("", ".gz")
_FORMS = (".tsv", ".jsonl")


@dataclass(frozen=True, slots=True)
class Collection:
    """What a system is measured on.

    Attributes:
        folder: Where it is; `read_corpus` reads its documents.
        split: Of the judgements.
        queries: Texts of the judged queries by id.
        qrels: Grades by query id and document id.
        without_text: Judged queries that have no text.
        unjudged: Queries that no split judges.
    """

    folder: Path
    split: str
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    without_text: tuple[str, ...]
    unjudged: tuple[str, ...]


def read_collection(folder: str | os.PathLike[str], split: str = "test") -> Collection:
    """The queries and judgements of a folder with ``corpus.jsonl``, ``queries.jsonl``, ``qrels/``.

    Args:
        folder: In BEIR's layout; each file may be gzipped.
        split: Which file below ``qrels``, tab-separated or ``.jsonl``.

    Raises:
        InputError: No such split, bad lines, or no judged query has a text.
        MissingFile: No such folder, or a file is missing in it.
    """
    root = Path(path_text(folder))
    if not root.is_dir():
        raise MissingFile(f"{root}: expected a folder in BEIR's layout, found none")
    _file(root, "corpus.jsonl")
    qrels = read_qrels(_split_file(root, split))
    queries = read_queries(_file(root, "queries.jsonl"))
    judged = {query: queries[query] for query in qrels if query in queries}
    if not judged:
        raise InputError(
            f"{root}: none of the {len(qrels):,} judged queries is among the {len(queries):,} "
            f"queries, such as {printable(next(iter(qrels)), 40)!r} and "
            f"{printable(next(iter(queries)), 40)!r}; ids must be equal as text"
        )
    missing = tuple(query for query in qrels if query not in queries)
    anywhere = _judged_elsewhere(root, split) | qrels.keys()
    unjudged = tuple(query for query in queries if query not in anywhere)
    return Collection(root, split, judged, qrels, missing, unjudged)


def is_collection(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a folder in BEIR's layout."""
    folder = Path(path_text(path))
    return folder.is_dir() and any(
        (folder / f"corpus.jsonl{suffix}").is_file() for suffix in _SUFFIXES
    )


def find_splits_of(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """The files of judgements of a folder in BEIR's layout, by the names of their splits."""
    return _split_files(Path(path_text(folder)))


def _judged_elsewhere(root: Path, split: str) -> set[str]:
    """The queries of the other splits, which only say that somebody judged them."""
    found: set[str] = set()
    for name, path in _split_files(root).items():
        if name == split:
            continue
        try:
            found |= read_qrels(path).keys()
        except InputError as error:
            logger.warning("%s; ignored, since the split %s is read", error, printable(split, 40))
    return found


def _file(root: Path, name: str) -> Path:
    for suffix in _SUFFIXES:
        path = root / f"{name}{suffix}"
        if path.is_file():
            return path
    raise MissingFile(f"{root}: no {name} in this folder, which BEIR's layout has")


def _split_files(root: Path) -> dict[str, Path]:
    """The files of judgements by the names of their splits; hidden ones are none."""
    found: dict[str, Path] = {}
    for form in _FORMS:
        for suffix in _SUFFIXES:
            for path in sorted((root / "qrels").glob(f"[!.]*{form}{suffix}")):
                found.setdefault(path.name.removesuffix(f"{form}{suffix}"), path)
    return found


def _split_file(root: Path, split: str) -> Path:
    names = _split_files(root)
    if not names:
        raise MissingFile(f"{root}: no qrels/*.tsv in this folder, which BEIR's layout has")
    if split not in names:
        known = printable(", ".join(names), 200)
        raise InputError(f"{root}: no split {split!r}{did_you_mean(split, names)}; found {known}")
    return names[split]
