"""Vectors of tokens: their rows of the embedding table, and their means in the last layer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.torch import batch_tensors
from sbertkit.encoder.batching import Batch
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.network import token_states

_BATCH_TOKENS = 1_024


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The distinct tokens of some texts, special tokens left out.

    Attributes:
        counts: How often each is in the texts, (t,).
        inputs: Their rows of the model's embedding table, (t, size).
        outputs: The means of their vectors in the last layer, (t, dim).
        text_frequency: For each text the mean of the logarithms of its tokens' counts, (n,); NaN
            for a text without tokens.
    """

    counts: npt.NDArray[np.int64]
    inputs: Vectors
    outputs: Vectors
    text_frequency: npt.NDArray[np.float64]


def token_vectors(encoder: Encoder, texts: Sequence[str]) -> TokenVectors:
    """The tokens of texts, each with its count and vectors.

    Args:
        encoder: Whose tokens they are.
        texts: At most some thousands.
    """
    tokens = encoder.spec.tokenize(texts)
    special = encoder.tokenizer.special
    before, after = len(special.before), len(special.after)
    inner = [token.ids[before : len(token.ids) - after] for token in tokens]
    everything = np.concatenate([np.empty(0, np.int32), *inner])
    ids, counts = np.unique(everything, return_counts=True)
    model = encoder.torch.network.transformer
    device = next(model.parameters()).device
    sums = np.zeros((len(ids), encoder.torch.transformer.hidden_size))
    collator = encoder.spec.collator
    for rows in collator.plan([len(token.ids) for token in tokens], _BATCH_TOKENS):
        batch = collator.collate(tokens, rows)
        with torch.inference_mode():
            output = token_states(model, batch_tensors(batch, device))
        _add(sums, ids, batch, output.last_hidden_state.float().cpu().numpy())
    table = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    logarithms = np.log(counts)
    frequencies = [
        logarithms[np.searchsorted(ids, part)].mean() if len(part) else np.nan for part in inner
    ]
    return TokenVectors(
        counts.astype(np.int64),
        table[ids],
        (sums / counts[:, None]).astype(np.float32),
        np.array(frequencies, dtype=np.float64),
    )


def _add(
    sums: npt.NDArray[np.float64], ids: npt.NDArray[np.int32], batch: Batch, states: Vectors
) -> None:
    """Adds the vectors of a batch to those of their tokens; special tokens are none of `ids`."""
    real = batch.attention_mask.astype(bool)
    found, vectors = batch.input_ids[real], states[real]
    places = np.searchsorted(ids, found)
    known = (places < len(ids)) & (ids[np.minimum(places, len(ids) - 1)] == found)
    np.add.at(sums, places[known], vectors[known])
