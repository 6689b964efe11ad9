"""Hard negatives: documents that a search finds for a query and that are not known as relevant."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sbertkit.data.ranking import RankingPair
from sbertkit.data.text import folded
from sbertkit.errors import InputError, InputTypeError
from sbertkit.settings import check_settings, setting

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

logger = logging.getLogger(__name__)

_QUERIES_PER_CHUNK = 64


class SearchLike(Protocol):
    """A `SearchIndex`, or what searches like one."""

    @property
    def encoder(self) -> "Encoder":
        """What encodes its queries and documents."""
        ...

    def search_batch(
        self, queries: Sequence[str], k: int = 10, *, mode: str | None = None
    ) -> Sequence[Sequence[Any]]:
        """The hits of each query, with `text` and `passage`."""
        ...


@dataclass(frozen=True, slots=True)
class Mining:
    """How negatives are mined; the help text of each field says what it means."""

    negatives: int = setting(4, "Mined negatives per query.")
    mine_depth: int = setting(50, "Hits of a query that they are drawn from.")
    mine_margin: float | None = setting(
        None,
        "How much lower a negative's cosine must be than that of the query's best positive, so "
        "that likely positives are left out; by default no matter how high.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        check_settings(self)


def mine_negatives(
    pairs: Sequence[RankingPair], index: SearchLike, mining: Mining, seed: int
) -> list[RankingPair]:
    """The pairs, and negatives of each query, drawn from what an index finds for it by vectors.

    A hit counts by the passage that was found. Those whose document or passage is one of the
    query's own, relevant or not, are left out, whatever its case and blanks; others may be
    relevant, though nobody has said so.

    Args:
        pairs: What is known.
        index: Where to search.
        mining: How many, how deep, and how much less similar.
        seed: Of the draw.

    Raises:
        InputError: The index gives no negative at all.
        InputTypeError: It is no index.
    """
    import numpy as np  # not above, as the command line reads the settings from here

    if not hasattr(index, "search_batch"):
        raise InputTypeError(f"mine must be a SearchIndex, found {type(index).__name__}")
    random = np.random.default_rng(seed)
    known: dict[str, list[RankingPair]] = {}
    for pair in pairs:
        known.setdefault(pair.query, []).append(pair)
    queries = list(known)
    mined: list[RankingPair] = []
    short = 0
    for start in range(0, len(queries), _QUERIES_PER_CHUNK):
        chunk = queries[start : start + _QUERIES_PER_CHUNK]
        depth = mining.mine_depth + max(len(known[query]) for query in chunk)
        bounds = _bounds([known[query] for query in chunk], index, mining)
        found = index.search_batch(chunk, depth, mode="dense")
        for query, hits, bound in zip(chunk, found, bounds, strict=True):
            own = {folded(text) for pair in known[query] for text in pair[:2]}
            texts = dict.fromkeys(
                hit.passage.text
                for hit in hits
                if folded(hit.text) not in own and folded(hit.passage.text) not in own
                if hit.score <= bound
            )
            candidates = list(texts)[: mining.mine_depth]
            drawn = random.permutation(len(candidates))[: mining.negatives]
            short += len(drawn) < mining.negatives
            mined += [RankingPair.of(query, candidates[place], 0.0) for place in sorted(drawn)]
    if not mined:
        raise InputError(
            "no negatives can be mined: the index has no document beside those of the queries, or "
            "none below the margin (--mine-margin); take an index of the corpus that the queries "
            "are for"
        )
    if short:
        logger.warning("%d of %d queries have fewer negatives than wanted", short, len(queries))
    return [*pairs, *mined]


def _bounds(known: Sequence[list[RankingPair]], index: SearchLike, mining: Mining) -> list[float]:
    """The highest cosine that a negative of each query may have."""
    import numpy as np

    from sbertkit.metrics import row_cosines

    if mining.mine_margin is None:
        return [math.inf] * len(known)
    positives = [pair for pairs in known for pair in pairs if pair.group == 0]
    queries = index.encoder.encode([pair.query for pair in positives], kind="query")
    documents = index.encoder.encode([pair.document for pair in positives])
    rows = np.arange(len(positives))
    cosines = row_cosines(np.concatenate([queries, documents]), rows, rows + len(rows))
    best: dict[str, float] = {}
    for pair, cosine in zip(positives, cosines.tolist(), strict=True):
        best[pair.query] = max(cosine, best.get(pair.query, -1.0))
    return [best.get(pairs[0].query, math.inf) - mining.mine_margin for pairs in known]
