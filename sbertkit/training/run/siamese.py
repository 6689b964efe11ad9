"""The network in training: an encoder's own network, an objective and its head."""

from typing import Any

import torch
from torch import Tensor, nn

from sbertkit.training.objectives import Objective


class Siamese(nn.Module):
    """Gives the loss of a batch; all trained weights are in it, those of the head too.

    Distributed training then averages every gradient, and clipping covers all of them.

    Args:
        network: The encoder's network, trained in place.
        objective: Turns vectors into a loss.
        head: The objective's own layer.
    """

    def __init__(self, network: nn.Module, objective: Objective, head: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.head = head

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """The loss of a batch (see `Collator`)."""
        parts = [
            self.network(group["input_ids"], group["mask"], group.get("types"))
            for group in batch["groups"]
        ]
        vectors = torch.cat(parts)
        # A head and a softmax over cosines lose too much in half precision.
        with torch.autocast(vectors.device.type, enabled=False):
            return self.objective.loss(vectors.float(), batch, self.head)
