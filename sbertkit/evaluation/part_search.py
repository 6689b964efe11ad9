"""How well parts of texts find each other: what an encoder finds on texts without labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from sbertkit.arrays import Vectors
from sbertkit.data.pseudo_pairs import PseudoPair
from sbertkit.encoder import Encoder
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import EncodeReport
from sbertkit.evaluation.diagnosis.scoring import found_ranks
from sbertkit.metrics import mean_random_cosine

Scores = npt.NDArray[np.float64]

ACCURACY = "accuracy"
RECIPROCAL_RANK = "reciprocal rank"


@dataclass(frozen=True, slots=True)
class FoundParts:
    """What an encoder finds.

    Attributes:
        scores: Of each text by measure, (n,): ``accuracy``, the share of its two parts whose
            nearest other part is the other one, and ``reciprocal rank``, their mean; 0 to 1.
        random_cosine: Mean cosine of two parts drawn at random.
        reports: Of all that was encoded.
    """

    scores: dict[str, Scores]
    random_cosine: float | None
    reports: Sequence[EncodeReport]

    @property
    def seconds(self) -> float:
        """Time to encode all parts."""
        return sum(one.seconds for one in self.reports)


class _Vectors(NamedTuple):
    """Both parts as queries and as documents, (n, dim) each."""

    queries: Sequence[Vectors]
    documents: Sequence[Vectors]


def find_parts(
    encoder: Encoder, pairs: Sequence[PseudoPair], *, progress: bool = False
) -> FoundParts:
    """Searches with each part of each text, as a query, for the other among the parts of all.

    Args:
        encoder: What encodes them; queries have its query prompt.
        pairs: The parts of each text.
        progress: Show progress on standard error.

    Source: parts of a text as each other's queries: the Inverse Cloze Task, Lee, Chang & Toutanova
        2019, Latent Retrieval for Weakly Supervised Open Domain Question Answering, section 4.1.
    """
    texts = [pair.first for pair in pairs] + [pair.second for pair in pairs]
    encoder.encode(texts[:1])  # so that what is made on first use does not count
    kinds: list[Kind] = ["document"]
    if encoder.prompts.query != encoder.prompts.document:
        kinds.append("query")
    encoded = [encoder.encode_with_report(texts, kind=one, progress=progress) for one in kinds]
    parts = [np.split(one.vectors, 2) for one in encoded]
    # On several threads such small matrices are many times slower, since the threads wait.
    with threadpool_limits(1, user_api="blas"):
        scores = _scores(_Vectors(parts[-1], parts[0]))
    return FoundParts(
        scores, mean_random_cosine(encoded[0].vectors), [one.report for one in encoded]
    )


def _scores(vectors: _Vectors) -> dict[str, Scores]:
    """The scores of each text: the means of its two parts."""
    ranks = np.stack(
        [
            found_ranks(vectors.queries[0], vectors.documents[1]),
            found_ranks(vectors.queries[1], vectors.documents[0]),
        ]
    )
    return {
        ACCURACY: (ranks == 1).mean(axis=0),
        RECIPROCAL_RANK: (1.0 / ranks).mean(axis=0),
    }
