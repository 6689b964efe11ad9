"""Replaced-token detection: a small generator replaces tokens, and the encoder finds them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import LossPart, TaskLoss
from sbertkit.training.pretraining.tasks.mlm import MaskedTokens

if TYPE_CHECKING:
    from torch import nn

    from sbertkit.encoder import Encoder

GENERATOR, DETECTOR = "generator", "detector"
_WEIGHT = 50.0


@refuses_unknown
@dataclass(frozen=True, slots=True)
class ReplacedTokens(MaskedTokens):
    """A generator predicts masked tokens, samples are put there, and the encoder detects them.

    The loss is ``L_G + 50 mean over t of -y_t log D(x', t) - (1 - y_t) log(1 - D(x', t))``, where
    L_G is the loss of the generator G as `MaskedTokens` has it, x' the text with a sample of its
    distribution at every chosen place, and y_t whether the token t differs from that of the text;
    the mean is over all tokens. Of the chosen tokens the generator reads 85 % as the mask token,
    the others as they are. No gradient goes through the sample.

    Generator and encoder share input embeddings; the encoder is the result, and the generator is
    saved with its heads.

    Source: Clark et al. 2020, ELECTRA, section 2 (losses, weight 50: appendix A) and section 3.2
        (sizes); the 85 %: https://github.com/google-research/electra, ``pretrain_helpers.mask``.
    """

    generator: int = setting(
        4,
        "The encoder's hidden size is so many times that of the generator: 3 or 4 in the paper.",
        maximum=16,
    )

    name: ClassVar[str] = "rtd"
    masked_share: ClassVar[float] = 0.85
    random_share: ClassVar[float] = 0.0
    with_segments: ClassVar[bool] = False
    summary: ClassVar[str] = (
        "a small generator replaced a share of the tokens by its own predictions, and the encoder "
        "learned which ones were replaced"
    )
    formula: ClassVar[str] = (
        "L_G + 50 mean over t of -y_t log D(x', t) - (1 - y_t) log(1 - D(x', t))"
    )
    source: ClassVar[str] = "Clark et al. 2020, ELECTRA, section 2"

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The generator, and what detects replaced tokens."""
        from torch import nn

        from sbertkit.training.pretraining.generator import Generator, detector

        made = Generator(encoder, self.generator)
        return nn.ModuleDict({DETECTOR: detector(encoder), GENERATOR: made})

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The sum of both losses; the predictions that count as right are the encoder's."""
        from torch.nn import functional

        from sbertkit.training.pretraining.generator import sampled
        from sbertkit.training.pretraining.heads import flat_states, input_embeddings

        ids, mask, places = batch["input_ids"], batch["mask"], batch["places"]
        embedding, targets = input_embeddings(network), batch["targets"]
        generator = head.get_submodule(GENERATOR)
        scores = generator(ids, mask, places, embedding).float()  # (n, vocabulary)
        generated = functional.cross_entropy(scores, targets, reduction="sum")
        tokens = sampled(scores)
        corrupted = ids.flatten().index_put((places,), tokens)
        replaced = mask.new_zeros(mask.numel()).index_put(
            (places,), (tokens != targets).to(mask.dtype)
        )
        real = mask.flatten().bool()
        states = flat_states(network, {**batch, "input_ids": corrupted.view_as(ids)})
        found = head.get_submodule(DETECTOR)(states[real]).float()  # (tokens,)
        labels = replaced[real]
        loss = functional.binary_cross_entropy_with_logits(found, labels.float())
        right = ((found > 0) == labels.bool()).sum()
        return TaskLoss.summed(
            LossPart(DETECTOR, loss, right, len(labels), _WEIGHT),
            LossPart(
                GENERATOR,
                generated / max(1, len(targets)),
                (scores.argmax(dim=1) == targets).sum(),
                len(targets),
            ),
        )
