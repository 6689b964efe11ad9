"""Hard negatives: documents that a search finds for a query and that are not known as relevant."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sbertkit.data.ranking import RankingPair
from sbertkit.errors import InputError, InputTypeError
from sbertkit.settings import check_settings, setting

logger = logging.getLogger(__name__)

_QUERIES_PER_CHUNK = 64


class SearchLike(Protocol):
    """A `SearchIndex`, or what searches like one."""

    def search_batch(self, queries: Sequence[str], k: int = 10) -> Sequence[Sequence[Any]]:
        """The hits of each query, with `text` and `passage`."""
        ...


@dataclass(frozen=True, slots=True)
class Mining:
    """How negatives are mined; the help text of each field says what it means."""

    negatives: int = setting(4, "Mined negatives per query.")
    mine_depth: int = setting(50, "Hits of a query that they are drawn from.")

    def __post_init__(self) -> None:
        check_settings(self)


def mine_negatives(
    pairs: Sequence[RankingPair], index: SearchLike, mining: Mining, seed: int
) -> list[RankingPair]:
    """The pairs, and negatives of each query, drawn from what an index finds for it.

    A hit counts by the passage that was found. Those whose document or passage is one of the
    query's own, relevant or not, are left out; others may be relevant, though nobody has said so.

    Args:
        pairs: What is known.
        index: Where to search.
        mining: How many, and how deep.
        seed: Of the draw.

    Raises:
        InputError: The index gives no negative at all.
        InputTypeError: It is no index.
    """
    import numpy as np  # not above, as the command line reads the settings from here

    if not hasattr(index, "search_batch"):
        raise InputTypeError(f"mine must be a SearchIndex, found {type(index).__name__}")
    random = np.random.default_rng(seed)
    known: dict[str, set[str]] = {}
    for pair in pairs:
        known.setdefault(pair.query, set()).add(pair.document)
    queries = list(known)
    mined: list[RankingPair] = []
    short = 0
    for start in range(0, len(queries), _QUERIES_PER_CHUNK):
        chunk = queries[start : start + _QUERIES_PER_CHUNK]
        most = max(len(known[query]) for query in chunk)
        for query, hits in zip(
            chunk, index.search_batch(chunk, mining.mine_depth + most), strict=True
        ):
            own = known[query]
            texts = dict.fromkeys(
                hit.passage.text
                for hit in hits
                if hit.text not in own and hit.passage.text not in own
            )
            candidates = list(texts)[: mining.mine_depth]
            drawn = random.permutation(len(candidates))[: mining.negatives]
            short += len(drawn) < mining.negatives
            mined += [RankingPair.of(query, candidates[place], 0.0) for place in sorted(drawn)]
    if not mined:
        raise InputError(
            "the index has no document beside those of the queries, so that no negatives can be "
            "mined; take an index of the corpus that the queries are for"
        )
    if short:
        logger.warning("%d of %d queries have fewer negatives than wanted", short, len(queries))
    return [*pairs, *mined]
