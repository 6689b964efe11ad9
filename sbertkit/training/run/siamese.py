"""The network in training: an encoder's own network and an objective, as one torch module."""

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from sbertkit.encoder import Encoder
from sbertkit.training.objectives import Objective


class Siamese(nn.Module):
    """Gives the loss of a batch; all trained weights are in it, those of the objective too.

    Distributed training then averages every gradient, and clipping covers all of them.

    Args:
        network: The encoder's network, trained in place.
        objective: Turns vectors into a loss.
    """

    def __init__(self, network: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.network = network
        self.objective = objective

    def forward(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """``loss`` and ``sentence_embedding`` (N, dim) of a batch (see `Collator`)."""
        parts = [
            self.network(group["input_ids"], group["mask"], group.get("types"))
            for group in batch["groups"]
        ]
        vectors = torch.cat(parts)
        # A head and a softmax over cosines lose too much in half precision.
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = vectors.float()
            loss = self.objective.loss(vectors, batch)
        return {"loss": loss, "sentence_embedding": vectors}


def siamese_model(encoder: Encoder, objective: Objective) -> SentenceTransformer:
    """The model as sentence-transformers' Trainer takes it; it shares the encoder's weights."""
    encoder.torch.make_trainable()
    siamese = Siamese(encoder.torch.network, objective)
    device = str(next(encoder.torch.network.parameters()).device)
    return SentenceTransformer(modules=[siamese], device=device)
