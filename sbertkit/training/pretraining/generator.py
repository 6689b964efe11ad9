"""The generator of replaced-token detection, and what detects its tokens."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import ElectraConfig, ElectraModel
from transformers.activations import ACT2FN

from sbertkit.encoder import Encoder
from sbertkit.training.pretraining.base_weights import BaseWeights, take
from sbertkit.training.pretraining.heads import DEVIATION, LmHead, activation_of
from sbertkit.training.pretraining.pieces import ROOM
from sbertkit.training.pretraining.vocabulary import embeddings

_EPS = 1e-12


class Generator(nn.Module):
    """A small masked language model above the input embeddings of an encoder, which it shares.

    It has as many layers as the encoder, and its head size. Position embeddings are its own, for
    not every encoder has such.

    Source: Clark et al. 2020, ELECTRA, sections 2 and 3.2.

    Args:
        encoder: Whose tokens it predicts.
        divisor: The encoder's hidden size is so many times its own, about.
    """

    def __init__(self, encoder: Encoder, divisor: int) -> None:
        super().__init__()
        transformer = encoder.torch.transformer
        vocabulary, size = embeddings(encoder).shape
        heads = int(transformer.model.config.num_attention_heads)
        fewer = max(1, heads // divisor)
        hidden = fewer * (transformer.hidden_size // heads)
        config = ElectraConfig(
            vocab_size=1,
            embedding_size=size,
            hidden_size=hidden,
            num_hidden_layers=transformer.layer_count,
            num_attention_heads=fewer,
            intermediate_size=4 * hidden,
            max_position_embeddings=encoder.max_tokens or ROOM,
            layer_norm_eps=_EPS,
        )
        self.transformer = ElectraModel(config)
        self.transformer.set_input_embeddings(nn.Identity())
        self.head = LmHead(hidden, size, vocabulary, activation="gelu", eps=_EPS)

    def forward(self, input_ids: Tensor, mask: Tensor, places: Tensor, embedding: Tensor) -> Tensor:
        """Scores of all tokens at some places, (n, vocabulary).

        Args:
            input_ids: Token ids, (B, T).
            mask: 1 for real tokens, 0 for padding, (B, T).
            places: Among all B × T tokens, (n,).
            embedding: The encoder's input embeddings, (vocabulary, size).
        """
        inputs = functional.embedding(input_ids, embedding)
        states = self.transformer(inputs_embeds=inputs, attention_mask=mask).last_hidden_state
        scores: Tensor = self.head(states.flatten(0, 1)[places], embedding)
        return scores


class Detector(nn.Module):
    """From token vectors to scores of having been replaced.

    Source: Clark et al. 2020, ELECTRA, in https://github.com/google-research/electra,
        ``_get_discriminator_output``.

    Args:
        hidden: Size of a token vector.
        activation: As config.json names it.
    """

    def __init__(self, hidden: int, *, activation: str) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, 1)
        self.activation = ACT2FN[activation]
        for layer in (self.dense, self.classifier):
            nn.init.normal_(layer.weight, std=DEVIATION)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Scores (n,) of token vectors (n, hidden): positive for replaced ones."""
        scores: Tensor = self.classifier(self.activation(self.dense(states))).squeeze(-1)
        return scores


def detector(encoder: Encoder) -> Detector:
    """A detector, with the weights of the base's own one where it is an ELECTRA that has one."""
    transformer = encoder.torch.transformer
    made = Detector(transformer.hidden_size, activation=activation_of(transformer.model.config))
    names = (("dense", "dense"), ("classifier", "dense_prediction"))
    wanted = {
        f"{own}.{kind}": (f"discriminator_predictions.{other}.{kind}",)
        for own, other in names
        for kind in ("weight", "bias")
    }
    take(made, BaseWeights(encoder).read(wanted))
    return made


def sampled(scores: Tensor) -> Tensor:
    """A token by the distribution of each row of scores (n, vocabulary), (n,).

    Source: the Gumbel-max trick; Maddison et al. 2014, A* Sampling, section 2.
    """
    with torch.no_grad():
        noise = torch.empty_like(scores).exponential_().log()
        return (scores - noise).argmax(dim=1)
