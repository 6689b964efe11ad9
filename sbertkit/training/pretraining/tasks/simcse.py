"""Unsupervised SimCSE: two vectors of a text, which differ in dropout alone, are a pair."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import PretrainingTask, TaskLoss

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Examples, Int64
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Pieces


@refuses_unknown
@dataclass(frozen=True, slots=True)
class DropoutPairs(PretrainingTask):
    """Each text goes through the encoder twice, with other dropout; both vectors are a pair.

    The loss of a text is ``-log(exp(cos(h_i, h'_i) / t) / sum over j of exp(cos(h_i, h'_j) / t))``
    over the texts j of the batch. The same text elsewhere in the batch is no negative.

    Source: Gao et al. 2021, SimCSE, section 3 and equation 4; t = 0.05, section 6.1; the learning
        rate 3e-5 of its appendix A.
    """

    temperature: float = setting(0.05, "By which cosines are divided.", above=0)

    name: ClassVar[str] = "simcse"
    shapes_vectors: ClassVar[bool] = True
    uses_dropout: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 3e-5
    summary: ClassVar[str] = (
        "each text went through the encoder twice with other dropout, and the encoder learned to "
        "give both vectors a higher cosine than those of different texts"
    )
    formula: ClassVar[str] = "-log(exp(cos(h_i, h'_i) / t) / sum over j of exp(cos(h_i, h'_j) / t))"
    source: ClassVar[str] = "Gao et al. 2021, SimCSE, equation 4"

    def check_base(self, encoder: "Encoder") -> None:
        """Nothing, if the encoder has dropout."""
        from torch import nn

        model = encoder.torch.transformer.model
        rates = [one.p for one in model.modules() if isinstance(one, nn.Dropout)]
        rates.append(getattr(model.config, "attention_probs_dropout_prob", 0.0) or 0.0)
        if not max(rates):
            raise InputError(
                f"{encoder.options.model} has no dropout, so that both vectors of a text would be "
                f"the same for the task {self.name}; choose another task (--task) or base (--base)"
            )

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """None."""
        from torch import nn

        return nn.ModuleDict()

    def check_batches(self, examples: "Examples", batches: "Iterable[Sequence[int]]") -> None:
        """Nothing, if some batch has two texts.

        Raises:
            InputError: None has, so that the loss is 0 whatever the vectors are.
        """
        if all(len(set(examples.texts[list(rows), 0].tolist())) < 2 for rows in batches):
            raise InputError(
                f"the task {self.name} tells each text of a batch from the others, but no batch "
                "has two; raise batch_size (--batch-size) or batch_tokens (--batch-tokens)"
            )

    def batch(self, pieces: "Pieces", numbers: "Int64", draws: "Draws") -> "dict[str, Tensor]":
        """Padded texts, and ``keys`` that are equal for the same text, (B,)."""
        import zlib

        import numpy as np
        import torch

        padded = pieces.padder.collate(pieces.tokens, numbers)
        keys = [zlib.crc32(pieces.tokens[number].ids.tobytes()) for number in numbers]
        arrays = {
            "input_ids": padded.input_ids,
            "mask": padded.attention_mask,
            "keys": np.array(keys, np.int64),
        }
        if padded.token_type_ids is not None:
            arrays["types"] = padded.token_type_ids
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The mean loss of the texts, and how many are nearest to themselves."""
        import torch
        from torch.nn import functional

        inputs = batch["input_ids"], batch["mask"], batch.get("types")
        one, two = (functional.normalize(network(*inputs).float(), dim=1) for _ in range(2))
        keys = batch["keys"]
        with torch.autocast(one.device.type, enabled=False):
            scores = one @ two.T / self.temperature  # (B, B)
        targets = torch.arange(len(keys), device=keys.device)
        same = (keys[:, None] == keys) & (targets[:, None] != targets)
        scores = scores.masked_fill(same, -torch.inf)
        loss = functional.cross_entropy(scores, targets)
        return TaskLoss(loss, (scores.argmax(dim=1) == targets).sum(), len(keys))
