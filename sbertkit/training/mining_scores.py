"""The scores by which a mined document is no likely positive: cosines, or a cross-encoder's."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sbertkit.data.ranking import RankingPair

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder
    from sbertkit.reranking import Reranker
    from sbertkit.training.config import TrainConfig


class Scorer(Protocol):
    """Gives scores of positives and of candidates that can be compared."""

    def positives(self, pairs: Sequence[RankingPair]) -> list[float]:
        """The score of each pair."""
        ...

    def candidates(
        self, queries: Sequence[str], found: Sequence[Mapping[str, float]]
    ) -> list[dict[str, float]]:
        """The score of each document that was found for each query.

        Args:
            queries: The queries.
            found: The cosine of each document, by its text.
        """
        ...


def scorer_of(reranker: str | None, encoder: "Encoder", config: "TrainConfig") -> Scorer:
    """The scores of a cross-encoder, or the cosines of an index's encoder.

    Raises:
        InputError: The cross-encoder is none.
    """
    if reranker is None:
        return Cosines(encoder)
    from sbertkit.reranking import Reranker

    return RerankScores(
        Reranker.load(reranker, device=config.device, trust_remote_code=config.trust_remote_code)
    )


class Cosines:
    """Cosines of vectors.

    Args:
        encoder: That of the index.
    """

    def __init__(self, encoder: "Encoder") -> None:
        self._encoder = encoder

    def positives(self, pairs: Sequence[RankingPair]) -> list[float]:
        """The cosine of each query and document."""
        import numpy as np

        from sbertkit.metrics import row_cosines

        queries = self._encoder.encode([pair.query for pair in pairs], kind="query")
        documents = self._encoder.encode([pair.document for pair in pairs])
        rows = np.arange(len(pairs))
        cosines: list[float] = row_cosines(
            np.concatenate([queries, documents]), rows, rows + len(rows)
        ).tolist()
        return cosines

    def candidates(
        self, queries: Sequence[str], found: Sequence[Mapping[str, float]]
    ) -> list[dict[str, float]]:
        """The cosines that were found."""
        del queries
        return [dict(one) for one in found]


class RerankScores:
    """Scores of a cross-encoder, before what maps them to probabilities, where all differ.

    Args:
        reranker: The cross-encoder.
    """

    def __init__(self, reranker: "Reranker") -> None:
        self._reranker = reranker

    def positives(self, pairs: Sequence[RankingPair]) -> list[float]:
        """The score of each pair."""
        return self._scores([(pair.query, pair.document) for pair in pairs])

    def candidates(
        self, queries: Sequence[str], found: Sequence[Mapping[str, float]]
    ) -> list[dict[str, float]]:
        """The scores of all documents."""
        rows = [(query, text) for query, one in zip(queries, found, strict=True) for text in one]
        scores = iter(self._scores(rows))
        return [{text: next(scores) for text in one} for one in found]

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        scores: list[float] = self._reranker.score(pairs, activated=False).tolist()
        return scores
