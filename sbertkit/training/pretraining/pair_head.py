"""What classifies a pair of segments above an encoder."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from sbertkit.encoder import Encoder
from sbertkit.training.pretraining.base_weights import BaseWeights, take
from sbertkit.training.pretraining.heads import DEVIATION


class _Layout(NamedTuple):
    """Where a family of checkpoints has its classifier of pairs."""

    pooler: str
    classifier: str


_LAYOUTS = {
    "next-segment": (
        _Layout("pooler.dense", "cls.seq_relationship"),
        _Layout("pooler", "cls.seq_relationship"),
    ),
    "segment-order": (_Layout("pooler", "sop_classifier.classifier"),),
}
"""By the name of the head: BERT and ERNIE, BigBird; ALBERT."""


class PairHead(nn.Module):
    """From the vector of the first token to the scores of two classes.

    Source: Devlin et al. 2019, BERT, in https://github.com/google-research/bert, 2018: the pooler
        of ``modeling.py`` and ``get_next_sentence_output``.

    Args:
        hidden: Size of a token vector.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, 2)
        for layer in (self.dense, self.classifier):
            nn.init.normal_(layer.weight, std=DEVIATION)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Scores (n, 2) of token vectors (n, hidden)."""
        scores: Tensor = self.classifier(torch.tanh(self.dense(states)))
        return scores


def pair_head(encoder: Encoder, name: str) -> PairHead:
    """A head that classifies pairs, with the weights of the base's own one where it has one.

    Args:
        encoder: The base.
        name: Of the head, by which it is known what a checkpoint calls it.
    """
    head = PairHead(encoder.torch.transformer.hidden_size)
    weights = BaseWeights(encoder)
    for layout in _LAYOUTS[name]:
        wanted = {
            f"{own}.{kind}": (f"{other}.{kind}",)
            for own, other in (("dense", layout.pooler), ("classifier", layout.classifier))
            for kind in ("weight", "bias")
        }
        if take(head, weights.read(wanted)):
            break
    return head
