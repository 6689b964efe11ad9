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
from sbertkit.training.mining_scores import Scorer, scorer_of

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder
    from sbertkit.training.config import TrainConfig

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
        "that likely positives are left out; by default no matter how high, or 0 with a "
        "cross-encoder, whose scores count then.",
        minimum=0,
    )
    mine_reranker: str | None = setting(
        None,
        "A cross-encoder that scores the hits and the positives in place of the cosine, for the "
        "margin.",
        metavar="MODEL",
    )

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def margin(self) -> float | None:
        """The margin between the scores of positives and negatives, if there is one."""
        if self.mine_margin is None and self.mine_reranker is not None:
            return 0.0
        return self.mine_margin


def mine_negatives(
    pairs: Sequence[RankingPair], index: SearchLike, mining: Mining, config: "TrainConfig"
) -> list[RankingPair]:
    """The pairs, and negatives of each query, drawn from what an index finds for it by vectors.

    A hit counts by the passage that was found. Those whose document or passage is one of the
    query's own, relevant or not, are left out, whatever its case and blanks; others may be
    relevant, though nobody has said so. With a margin those are left out whose score is above that
    of the query's best positive, less the margin.

    Source of the margin: Moreira et al. 2024, NV-Retriever, section 3.2 (positive-aware mining).

    Args:
        pairs: What is known.
        index: Where to search.
        mining: How many, how deep, and how much less similar.
        config: The seed of the draw, and the device of a cross-encoder.

    Raises:
        InputError: The index gives no negative at all, or the cross-encoder is none.
        InputTypeError: It is no index.
    """
    import numpy as np  # not above, as the command line reads the settings from here

    if not hasattr(index, "search_batch"):
        raise InputTypeError(f"mine must be a SearchIndex, found {type(index).__name__}")
    random = np.random.default_rng(config.seed)
    scorer = scorer_of(mining.mine_reranker, index.encoder, config)
    known: dict[str, list[RankingPair]] = {}
    for pair in pairs:
        known.setdefault(pair.query, []).append(pair)
    queries = list(known)
    mined: list[RankingPair] = []
    short = 0
    for start in range(0, len(queries), _QUERIES_PER_CHUNK):
        chunk = [known[query] for query in queries[start : start + _QUERIES_PER_CHUNK]]
        found = _candidates(chunk, index, mining.mine_depth)
        if mining.margin is not None:
            found = _below(found, chunk, mining.margin, scorer)
        for own, candidates in zip(chunk, found, strict=True):
            texts = list(candidates)[: mining.mine_depth]
            drawn = random.permutation(len(texts))[: mining.negatives]
            short += len(drawn) < mining.negatives
            mined += [RankingPair.of(own[0].query, texts[place], 0.0) for place in sorted(drawn)]
    if not mined:
        raise InputError(
            "no negatives can be mined: the index has no document beside those of the queries, or "
            "none below the margin (--mine-margin); take an index of the corpus that the queries "
            "are for"
        )
    if short:
        logger.warning("%d of %d queries have fewer negatives than wanted", short, len(queries))
    return [*pairs, *mined]


def _candidates(
    chunk: Sequence[Sequence[RankingPair]], index: SearchLike, depth: int
) -> list[dict[str, float]]:
    """What an index finds for each query beside what is known of it, with the cosines."""
    deep = depth + max(map(len, chunk))
    found = index.search_batch([known[0].query for known in chunk], deep, mode="dense")
    candidates = []
    for known, hits in zip(chunk, found, strict=True):
        own = {folded(text) for pair in known for text in pair[:2]}
        scores: dict[str, float] = {}
        for hit in hits:
            if folded(hit.text) not in own and folded(hit.passage.text) not in own:
                scores.setdefault(hit.passage.text, hit.score)
        candidates.append(scores)
    return candidates


def _below(
    found: Sequence[dict[str, float]],
    chunk: Sequence[Sequence[RankingPair]],
    margin: float,
    scorer: Scorer,
) -> list[dict[str, float]]:
    """The candidates whose score is low enough; all of a query without a positive."""
    positives = [pair for known in chunk for pair in known if pair.group == 0]
    best: dict[str, float] = {}
    for pair, score in zip(positives, scorer.positives(positives), strict=True):
        best[pair.query] = max(score, best.get(pair.query, -math.inf))
    queries = [known[0].query for known in chunk]
    kept = []
    for query, scores in zip(queries, scorer.candidates(queries, found), strict=True):
        bound = best.get(query, math.inf) - margin
        kept.append({text: score for text, score in scores.items() if score <= bound})
    return kept
