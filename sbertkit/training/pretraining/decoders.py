"""Small decoders that rebuild a text from its vector, above any encoder."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from sbertkit.encoder import Encoder
from sbertkit.training.pretraining.heads import lm_head
from sbertkit.training.pretraining.vocabulary import embeddings

_HEAD = 64
"""Size of an attention head, as those of BERT."""
_INNER = 4
"""The feed-forward network is so many times as wide as a token vector."""
_DROPOUT = 0.1
_DEVIATION = 0.02
"""Of new weights, as those of BERT."""
_WAVELENGTH = 10_000


class _Attention(nn.Module):
    """Attention with several heads.

    Source: Vaswani et al. 2017, section 3.2.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.heads = math.gcd(hidden, max(1, hidden // _HEAD))
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, queries: Tensor, keys: Tensor, visible: Tensor | None) -> Tensor:
        """What each query finds, (B, L, hidden).

        Args:
            queries: (B, L, hidden).
            keys: (B, K, hidden), which are also the values.
            visible: Whether a query sees a key, (B, L, K); None where each sees itself and those
                before it.
        """
        query, key, value = (
            layer(states).unflatten(2, (self.heads, -1)).transpose(1, 2)  # (B, heads, L, size)
            for layer, states in ((self.query, queries), (self.key, keys), (self.value, keys))
        )
        found = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if visible is None else visible[:, None],
            is_causal=visible is None,
        )
        merged: Tensor = self.out(found.transpose(1, 2).flatten(2))
        return merged


class _Added(nn.Module):
    """Adds a change to states and normalizes the sum, as BERT's layers do."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, states: Tensor, change: Tensor) -> Tensor:
        added: Tensor = self.norm(states + self.dropout(change))
        return added


class _Inputs(nn.Module):
    """What a decoder takes: the encoder's input embeddings with positions, and the text's vector.

    All are normalized first, since the embeddings of some families are a hundred times as large as
    those of others. Positions are sinusoids, so that a text may have any length.

    Source: Vaswani et al. 2017, section 3.5.

    Args:
        dim: Size of a text's vector.
        size: Of an input embedding.
        hidden: Of the decoder's states.
    """

    def __init__(self, dim: int, size: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.vector = _projection(dim, hidden)
        self.token = _projection(size, hidden)
        self.dropout = nn.Dropout(_DROPOUT)

    def of_vectors(self, vectors: Tensor) -> Tensor:
        """The text's vectors, (B, 1, hidden), from (B, dim)."""
        found: Tensor = self.vector(vectors)
        return found[:, None]

    def of_tokens(self, ids: Tensor, embedding: Tensor, *, first: int) -> Tensor:
        """Tokens at their places, (B, L, hidden), from ids (B, L), where -1 is padding.

        Args:
            ids: The tokens.
            embedding: The encoder's input embeddings, (vocabulary, size).
            first: The place of the first one.
        """
        states = self.token(functional.embedding(ids.clamp(min=0), embedding))
        placed: Tensor = self.dropout(states + self.places(ids.shape[1], states, first=first))
        return placed

    def places(self, count: int, like: Tensor, *, first: int) -> Tensor:
        """The sinusoids of so many places, (count, hidden)."""
        place = torch.arange(first, first + count, device=like.device)
        pair = torch.arange(0, self.hidden, 2, device=like.device)
        angle = place[:, None] / _WAVELENGTH ** (pair / self.hidden)
        waves = torch.stack((angle.sin(), angle.cos()), dim=2).flatten(1)
        return waves[:, : self.hidden].to(like.dtype)


class _CausalLayer(nn.Module):
    """Attention to the tokens before, to the text's vector, and a feed-forward network."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.attention = _Attention(hidden)
        # Attention to a single key gives its value, whatever the query is.
        self.cross_attention = nn.Linear(hidden, hidden)
        self.feed_forward = _feed_forward(hidden)
        self.added = nn.ModuleList(_Added(hidden) for _ in range(3))

    def forward(self, states: Tensor, vectors: Tensor) -> Tensor:
        after_tokens, after_vector, after_all = self.added
        states = after_tokens(states, self.attention(states, states, None))
        states = after_vector(states, self.cross_attention(vectors))
        found: Tensor = after_all(states, self.feed_forward(states))
        return found


class CausalDecoder(nn.Module):
    """Predicts a text token by token from its vector and the tokens before.

    Of the encoder it sees nothing but the vector.

    Source: Wang et al. 2021, TSDAE, section 3; Vaswani et al. 2017, section 3.1.

    Args:
        dim: Size of a text's vector.
        size: Of an input embedding.
        hidden: Of the decoder's states.
        layers: How many it has.
        scores: From states to scores of all tokens.
    """

    def __init__(self, dim: int, size: int, hidden: int, *, layers: int, scores: nn.Module) -> None:
        super().__init__()
        self.inputs = _Inputs(dim, size, hidden)
        self.start = nn.Parameter(torch.zeros(hidden))
        self.layers = nn.ModuleList(_CausalLayer(hidden) for _ in range(layers))
        for module in (self.inputs, self.layers):
            _initialize(module)
        self.scores = scores

    def forward(self, vectors: Tensor, ids: Tensor, embedding: Tensor) -> Tensor:
        """States from which the tokens are predicted, (B, L, hidden).

        Args:
            vectors: Of the texts, (B, dim).
            ids: All their tokens, (B, L), -1 for padding at the end.
            embedding: The encoder's input embeddings, (vocabulary, size).
        """
        given = self.inputs.of_vectors(vectors)
        start = self.start.to(given.dtype).expand_as(given)
        before = self.inputs.of_tokens(ids[:, :-1], embedding, first=1)
        states = torch.cat((start, before), dim=1)
        for layer in self.layers:
            states = layer(states, given)
        return states


class EnhancedDecoder(nn.Module):
    """Predicts each token from the text's vector and a context that is sampled for it.

    One layer, whose queries are the vector at each place and whose keys are the vector and the
    tokens: ``H1 = [h + p_1, ..., h + p_N]``, ``H2 = [h, e_1 + p_1, ..., e_N + p_N]``,
    ``A = softmax(Q K^T / sqrt(d) + M) V`` with ``Q = H1 W_Q, K = H2 W_K, V = H2 W_V``, where M
    leaves to each token its own context. A and, by the residual connection, H1 give the states.

    Source: Xiao et al. 2022, RetroMAE, section 3.3, equations 4 to 7.

    Args:
        dim: Size of a text's vector.
        size: Of an input embedding.
        hidden: Of the decoder's states.
    """

    def __init__(self, dim: int, size: int, hidden: int) -> None:
        super().__init__()
        self.inputs = _Inputs(dim, size, hidden)
        self.attention = _Attention(hidden)
        self.feed_forward = _feed_forward(hidden)
        self.added = nn.ModuleList(_Added(hidden) for _ in range(2))
        _initialize(self)

    def forward(self, vectors: Tensor, ids: Tensor, visible: Tensor, embedding: Tensor) -> Tensor:
        """States from which the tokens are predicted, (B, L, hidden).

        Args:
            vectors: Of the texts, (B, dim).
            ids: All their tokens, (B, L), -1 for padding.
            visible: Whether the vector and each token are in the context of a token, (B, L, 1 + L).
            embedding: The encoder's input embeddings, (vocabulary, size).
        """
        given = self.inputs.of_vectors(vectors)
        queries = given + self.inputs.places(ids.shape[1], given, first=1)
        keys = torch.cat((given, self.inputs.of_tokens(ids, embedding, first=1)), dim=1)
        after_context, after_all = self.added
        states = after_context(queries, self.attention(queries, keys, visible))
        found: Tensor = after_all(states, self.feed_forward(states))
        return found


def causal_decoder(encoder: Encoder, layers: int) -> CausalDecoder:
    """A new decoder above an encoder, with the head of its base where it has one."""
    return CausalDecoder(*_sizes(encoder), layers=layers, scores=lm_head(encoder))


def enhanced_decoder(encoder: Encoder) -> EnhancedDecoder:
    """A new decoder above an encoder."""
    return EnhancedDecoder(*_sizes(encoder))


def _sizes(encoder: Encoder) -> tuple[int, int, int]:
    """Those of text vectors, input embeddings and token vectors."""
    model = encoder.torch
    return model.network.dim, embeddings(encoder).shape[1], model.transformer.hidden_size


def _projection(size: int, hidden: int) -> nn.Module:
    """From vectors of one size to normalized ones of another."""
    norm = nn.LayerNorm(hidden)
    return norm if size == hidden else nn.Sequential(nn.Linear(size, hidden), norm)


def _feed_forward(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(hidden, _INNER * hidden), nn.GELU(), nn.Linear(_INNER * hidden, hidden)
    )


def _initialize(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=_DEVIATION)
            nn.init.zeros_(layer.bias)
