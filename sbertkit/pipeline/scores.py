"""The scores of the encoder after each step: on one's own texts, and on labeled data if any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sbertkit.data.pseudo_pairs import PseudoPair

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder
    from sbertkit.training.dev_set import DevSet

MEASURE = "nDCG@10"


@dataclass(frozen=True, slots=True)
class Trial:
    """What encoders are scored on.

    Attributes:
        pairs: Two parts of each text of a sample of the corpus.
        dev: The dev set, if any.
        collections: For `evaluate_retrieval`, by name.
        identity: Hashes of all of it, as JSON can hold them.
    """

    pairs: Sequence[PseudoPair]
    dev: "DevSet | None"
    collections: Mapping[str, str]
    identity: Mapping[str, Any]

    def score(self, encoder: "Encoder", *, progress: bool) -> dict[str, Any]:
        """The scores of an encoder, as JSON can hold them; see `ScoredEncoder`.

        Raises:
            InputError: A collection is refused.
        """
        from sbertkit.evaluation import evaluate_retrieval
        from sbertkit.evaluation.part_search import ACCURACY, find_parts

        parts = find_parts(encoder, self.pairs, progress=progress)
        return {
            "found": parts.scores[ACCURACY].tolist(),
            "random_cosine": parts.random_cosine,
            "dev": None if self.dev is None else self.dev.score(encoder).value,
            "ndcg": {
                name: evaluate_retrieval(
                    encoder, path, measures=[MEASURE], progress=progress
                ).measures[MEASURE]
                for name, path in self.collections.items()
            },
        }
