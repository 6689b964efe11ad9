"""The network in training: an encoder's own network, an objective and its head."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sbertkit.training.objectives import Objective
from sbertkit.training.run.collective import gathered
from sbertkit.training.run.gradient_cache import cached_vectors


class Siamese(nn.Module):
    """Gives the loss of a batch; all trained weights are in it, those of the head too.

    Several processes compute the vectors of a share of the texts each, and the loss of all.

    Args:
        network: The encoder's network, trained in place.
        objective: Turns vectors into a loss.
        head: The objective's own layer.
        sizes: The loss is the sum of those of vectors truncated to each of these sizes.
        caches: Whether gradients are cached, so that one group of a batch is in memory at a time.
        functions: What each forward pass is in.
    """

    def __init__(
        self,
        network: nn.Module,
        objective: Objective,
        head: nn.Module,
        *,
        sizes: Sequence[int] | None = None,
        caches: bool = False,
        functions: AbstractContextManager[Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.head = head
        self.sizes = sizes
        self.caches = caches
        self._functions = functions or nullcontext()

    def forward(self, batch: dict[str, Any]) -> Tensor:
        """The loss of a batch (see `Collator`)."""
        groups = batch["groups"]
        if self.caches:
            vectors = cached_vectors(self._vectors, groups)
        else:
            vectors = torch.cat([self._vectors(group) for group in groups])
        vectors = gathered(vectors.float(), batch["sizes"])
        # A head and a softmax over cosines lose too much in half precision.
        with torch.autocast(vectors.device.type, enabled=False):
            return self._loss(vectors, batch)

    def named_losses(self, loss: Tensor, batch: Mapping[str, Any]) -> dict[str, float]:
        """The loss of a batch under the name of its set, where there are several."""
        name = self.objective.set_of(batch)
        return {name: loss.item()} if name else {}

    def _vectors(self, group: Mapping[str, Tensor]) -> Tensor:
        """The vectors of a group of texts."""
        with self._functions:
            vectors: Tensor = self.network(group["input_ids"], group["mask"], group.get("types"))
        return vectors

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
