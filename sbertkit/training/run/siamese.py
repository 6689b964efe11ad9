"""The network in training: an encoder's own network, an objective and its head."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sbertkit.training.objectives import Objective


class Siamese(nn.Module):
    """Gives the loss of a batch; all trained weights are in it, those of the head too.

    Distributed training then averages every gradient, and clipping covers all of them.

    Args:
        network: The encoder's network, trained in place.
        objective: Turns vectors into a loss.
        head: The objective's own layer.
        sizes: The loss is the sum of those of vectors truncated to each of these sizes.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        head: nn.Module,
        *,
        sizes: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.head = head
        self.sizes = sizes

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """The loss of a batch (see `Collator`)."""
        parts = [
            self.network(group["input_ids"], group["mask"], group.get("types"))
            for group in batch["groups"]
        ]
        vectors = torch.cat(parts)
        # A head and a softmax over cosines lose too much in half precision.
        with torch.autocast(vectors.device.type, enabled=False):
            return self._loss(vectors.float(), batch)

    def _loss(self, vectors: Tensor, batch: dict[str, Any]) -> Tensor:
        """The loss of vectors in float32, over all sizes.

        Source: Kusupati et al. 2022, Matryoshka Representation Learning, equation 1; weights are 1.
        """
        if self.sizes is None:
            return self.objective.loss(vectors, batch, self.head)
        truncated = [vectors[:, :size] for size in self.sizes]
        if self.network.normalizes:
            truncated = [functional.normalize(part, dim=1) for part in truncated]
        losses = [self.objective.loss(part, batch, self.head) for part in truncated]
        return torch.stack(losses).sum()
