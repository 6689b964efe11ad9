"""Masked auto-encoding: masked tokens, and the whole text from the vector and a sampled context."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import TaskLoss
from sbertkit.training.pretraining.tasks.masking import LM_HEAD, MaskingTask, Unit, whole_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Int64
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Pieces

DECODER = "enhanced-decoder"


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MaskedAutoencoder(MaskingTask):
    """Masked words are predicted, and each token from the text's vector and a context of its own.

    The loss is ``mean over i in M of -log p(x_i; x~) + mean over i of -log p(x_i; h, s_i)``: that
    of masked words M in x~, and that of a decoder of one layer for all tokens, where h is the
    vector of x~, and s_i tokens that are sampled for x_i alone, itself never among them. Whole
    words are masked in both, and both predict by the same head.

    Source: Xiao et al. 2022, RetroMAE, section 3 and equations 1 to 7; shares 0.3 and 0.5, section
        4.1; whole words as in https://github.com/staoxiao/RetroMAE, 2022.
    """

    mask: float = setting(0.3, "Share of tokens that is predicted.", above=0, maximum=0.9)
    decoder_mask: float = setting(
        0.5, "Share of tokens that is not in the context of the decoder.", above=0, maximum=0.95
    )

    name: ClassVar[str] = "retromae"
    with_segments: ClassVar[bool] = False
    shapes_vectors: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "words were masked, and the encoder learned to predict them, and to give the text a vector "
        "from which a decoder of one layer rebuilds it with few of its tokens"
    )
    formula: ClassVar[str] = (
        "mean over i in M of -log p(x_i; x~) + mean over i of -log p(x_i; h, s_i)"
    )
    source: ClassVar[str] = "Xiao et al. 2022, RetroMAE, equations 1 to 7"

    def units(self, words: "Int64", random: "np.random.Generator") -> list[Unit]:
        """Each chosen word is a unit."""
        return whole_words(words, self.budget(words, random), random)

    def context(self, words: "Int64", random: "np.random.Generator") -> "npt.NDArray[np.bool_]":
        """Whether each token is in the context of each, (T, T), the latter by row.

        Args:
            words: The number of each token's word; -1 for special tokens, (T,).
            random: Where random numbers come from.
        """
        import numpy as np

        begins = np.r_[True, (words[1:] != words[:-1]) | (words[1:] < 0)]
        unit = np.cumsum(begins) - 1
        sampled = random.random((len(words), unit[-1] + 1), np.float32) >= self.decoder_mask
        found = sampled[:, unit]
        np.fill_diagonal(found, val=False)
        return found

    def batch(self, pieces: "Pieces", numbers: "Int64", draws: "Draws") -> "dict[str, Tensor]":
        """As of `MaskingTask`; all ``tokens`` (B, L), and what is ``visible`` to them."""
        import numpy as np
        import torch

        masked = MaskingTask.batch(self, pieces, numbers, draws)
        draws = draws if self.static is None else draws.among(self.static)
        tokens = pieces.bare(numbers)
        count, width = tokens.shape
        visible = np.zeros((count, width, 1 + width), np.bool_)
        visible[:, :, 0] = True  # the vector
        around = len(pieces.special.before), len(pieces.special.after)
        for row, number in enumerate(numbers):
            ids, words = pieces.tokens[number].ids, pieces.words[number]
            inner = words[around[0] : len(words) - around[1]]
            (random,) = draws.random(ids).spawn(1)  # others than those that mask
            visible[row, : len(inner), 1 : 1 + len(inner)] = self.context(inner, random)
        return {
            **masked,
            "tokens": torch.from_numpy(tokens),
            "visible": torch.from_numpy(visible),
        }

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The head that predicts tokens, and the decoder."""
        from sbertkit.training.pretraining.decoders import enhanced_decoder

        head = MaskingTask.task_head(self, encoder)
        head[DECODER] = enhanced_decoder(encoder)
        return head

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The sum of both losses; the predictions that count as right are the decoder's."""
        from sbertkit.training.pretraining.heads import (
            input_embeddings,
            predicted,
            states_and_vectors,
        )

        scores, decoder = head.get_submodule(LM_HEAD), head.get_submodule(DECODER)
        states, vectors = states_and_vectors(network, batch)
        masked = predicted(scores, states[batch["places"]], network, batch["targets"])
        tokens = batch["tokens"]
        rebuilt = decoder(vectors, tokens, batch["visible"], input_embeddings(network))
        found = predicted(scores, rebuilt[tokens >= 0], network, tokens[tokens >= 0])
        return found._replace(loss=found.loss + masked.loss)
