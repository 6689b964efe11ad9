"""Denoising: a text is rebuilt from the vector of what is left of it after words were deleted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import PretrainingTask, TaskLoss

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Int64
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Pieces

DECODER = "denoising-decoder"


@refuses_unknown
@dataclass(frozen=True, slots=True)
class DeletedWords(PretrainingTask):
    """Words are deleted, and a decoder rebuilds the text from the vector of the rest alone.

    The loss is ``mean over t of -log p(x_t; x_1 ... x_(t-1), c)`` over the tokens of the text and
    the token that ends it, where c is the vector of what is left. Each word is deleted with the
    same probability, and one word at least stays. The decoder is small and new, and scores tokens
    by the encoder's own input embeddings; that of the paper begins as a copy of the encoder.

    Source: Wang et al. 2021, TSDAE, section 3 and equation 1; deletion with ratio 0.6, section 6.
    """

    deletion: float = setting(0.6, "Share of words that is deleted.", above=0, maximum=0.95)
    decoder_layers: int = setting(1, "Layers of the decoder.", maximum=24)

    name: ClassVar[str] = "tsdae"
    shapes_vectors: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "words were deleted, and the encoder learned to give what was left a vector from which a "
        "small decoder rebuilds the text"
    )
    formula: ClassVar[str] = "mean over t of -log p(x_t; x_1 ... x_(t-1), c)"
    source: ClassVar[str] = "Wang et al. 2021, TSDAE, equation 1"

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if some text has two words."""
        if all(self._is_single(words) for words in pieces.words):
            raise InputError(
                f"the task {self.name} deletes words and keeps one, but no text has two; take "
                "longer texts"
            )

    @staticmethod
    def _is_single(words: "Int64") -> bool:
        own = words[words >= 0]
        return not (own[1:] != own[:-1]).any()

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The decoder."""
        from torch import nn

        from sbertkit.training.pretraining.decoders import causal_decoder

        return nn.ModuleDict({DECODER: causal_decoder(encoder, self.decoder_layers)})

    def kept(self, words: "Int64", random: "np.random.Generator") -> "npt.NDArray[np.bool_]":
        """Which tokens of an example stay, (T,).

        Args:
            words: The number of each token's word; -1 for special tokens, which stay, (T,).
            random: Where random numbers come from.
        """
        import numpy as np

        stays = words < 0
        own, places = np.unique(words[~stays], return_inverse=True)
        of_words = random.random(len(own)) >= self.deletion
        if len(own) and not of_words.any():
            of_words[random.integers(len(own))] = True
        stays[~stays] = of_words[places]
        return stays

    def batch(self, pieces: "Pieces", numbers: "Int64", draws: "Draws") -> "dict[str, Tensor]":
        """What is left of the texts, padded, and all ``tokens`` (B, L) of them and their end."""
        import numpy as np
        import torch

        from sbertkit.encoder.tokenization import Tokens

        left = []
        for number in numbers:
            ids = pieces.tokens[number].ids
            left.append(Tokens(ids[self.kept(pieces.words[number], draws.random(ids))], 0))
        padded = pieces.padder.collate(left, np.arange(len(left)))
        arrays = {
            "input_ids": padded.input_ids,
            "mask": padded.attention_mask,
            "tokens": pieces.bare(numbers, end=True),
        }
        if padded.token_type_ids is not None:
            arrays["types"] = padded.token_type_ids
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def token_loss(
        self, network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The mean cross-entropy of all tokens."""
        from sbertkit.training.pretraining.heads import input_embeddings, predicted

        decoder: Any = head.get_submodule(DECODER)
        vectors = network(batch["input_ids"], batch["mask"], batch.get("types"))
        states = decoder(vectors, batch["tokens"], input_embeddings(network))  # (B, L, hidden)
        real = batch["tokens"] >= 0
        return predicted(decoder.scores, states[real], network, batch["tokens"][real])
