"""Permutation language modeling: tokens are predicted in a random order, as XLNet does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import PretrainingTask, TaskLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.encoder.batching import BatchCollator
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Example, Pieces

HEAD = "permutation-lm"


@refuses_unknown
@dataclass(frozen=True, slots=True)
class PermutedTokens(PretrainingTask):
    """The last tokens of a random order are predicted, each from those that precede it there.

    The loss is ``mean over t > c of -log p(x[z_t]; x[z_<t], z_t)`` for a random order z of the
    tokens of a text, of whose n tokens the last n - c = n / K are predicted (rounded up or down
    with the probability that keeps the mean). Two streams of attention see to it: the content of a
    token is hidden from those before it in the order and from its own query, which knows its place.
    Special tokens, and those that are not predicted, are seen by all.

    Source: Yang et al. 2019, XLNet, section 2.3, equations 3 to 6; K = 6, section 3.1; what sees
        what: ``_local_perm`` of https://github.com/zihangdai/xlnet.
    """

    one_in: int = setting(6, "One of so many tokens is predicted.", maximum=100)

    name: ClassVar[str] = "plm"
    summary: ClassVar[str] = (
        "the last tokens of a random order were predicted, each from those that precede it there"
    )
    formula: ClassVar[str] = "mean over t > c of -log p(x[z_t]; x[z_<t], z_t)"
    source: ClassVar[str] = "Yang et al. 2019, XLNet, section 2.3, equation 5"

    @classmethod
    def unsuited(cls, model_type: str) -> str:
        """Why it does not suit a type of models: XLNet alone has two streams."""
        return "" if model_type == "xlnet" else "it needs attention of two streams, as XLNet has"

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if some text has two tokens."""
        pieces.check_two_tokens(self.name)

    def prepared(self, encoder: "Encoder", pieces: "Pieces") -> "PermutedTokens":
        """The same; what stands for a query, which no text vector needs, is trained, too."""
        encoder.torch.transformer.model.mask_emb.requires_grad_()
        return self

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The head that predicts tokens."""
        from torch import nn

        from sbertkit.training.pretraining.heads import tied_head

        return nn.ModuleDict({HEAD: tied_head(encoder)})

    def tensors_of(
        self, examples: "Sequence[Example]", padder: "BatchCollator", draws: "Draws"
    ) -> "dict[str, Tensor]":
        """Padded texts; what sees what, what is predicted where, and ``targets``.

        ``hidden`` (B, T, T) is 1 where the first token does not see the second; ``mapping``
        (B, N, T) has the place of each prediction; ``predictions`` (n,) are those of all B × N that
        an example has.
        """
        import numpy as np
        import torch

        from sbertkit.training.pretraining.pieces import padded

        batch = padded(examples, padder)
        rows, width = batch["input_ids"].shape
        chosen = []
        for one in examples:
            random = draws.random(one.ids)
            own = random.permutation(np.flatnonzero(one.words >= 0))
            chosen.append(own[: int(len(own) / self.one_in + random.random())])
        most = max(1, *(len(places) for places in chosen))
        hidden = np.zeros((rows, width, width), np.float32)
        mapping = np.zeros((rows, most, width), np.float32)
        for row, (one, places) in enumerate(zip(examples, chosen, strict=True)):
            at = places + (width - len(one.ids) if padder.side == "left" else 0)
            order = np.full(width, -1)
            order[at] = np.arange(len(at))
            hidden[row][:, at] = order[:, None] <= order[at]
            mapping[row, np.arange(len(at)), at] = 1
        predictions = np.concatenate(
            [row * most + np.arange(len(places)) for row, places in enumerate(chosen)]
        )
        targets = [one.ids[places] for one, places in zip(examples, chosen, strict=True)]
        arrays = {
            "hidden": hidden,
            "mapping": mapping,
            "predictions": predictions.astype(np.int64),
            "targets": np.concatenate(targets).astype(np.int64),
        }
        return batch | {name: torch.from_numpy(array) for name, array in arrays.items()}

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The mean cross-entropy of the predicted tokens."""
        from sbertkit.training.pretraining.heads import predicted

        transformer: Any = network.transformer
        states = transformer(
            input_ids=batch["input_ids"],
            attention_mask=batch["mask"],
            token_type_ids=batch.get("types"),
            perm_mask=batch["hidden"],
            target_mapping=batch["mapping"],
            use_mems=False,
        ).last_hidden_state  # (B, N, hidden)
        states = states.flatten(0, 1)[batch["predictions"]]
        return predicted(head.get_submodule(HEAD), states, network, batch["targets"])
