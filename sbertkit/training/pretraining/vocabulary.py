"""What tokens may be put in the place of others."""

import re
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.training.examples import Int64
from sbertkit.training.pretraining.words import BEGINS

_UNUSED = re.compile(r"\[unused\d+\]|<extra_id_\d+>|<unused\d+>|madeupword\d+")
_INSIDE = "##"
NEAREST = 5
"""A token is replaced by one of so many that are most similar to it."""
MIN_COSINE = 0.4
"""Tokens with a lower cosine are not similar."""
_ROWS = 1_024
"""Tokens that are compared with all others at once."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of an encoder.

    Attributes:
        mask: The mask token.
        ordinary: All tokens that a text may have, (n,): no special and no unused ones.
    """

    mask: int
    ordinary: Int64

    @classmethod
    def of(cls, encoder: Encoder) -> "Vocabulary":
        """That of an encoder.

        Raises:
            InputError: It has no mask token.
        """
        tokenizer = encoder.spec.tokenizer.hf
        check_mask(encoder)
        rows = len(embeddings(encoder))
        special = set(tokenizer.all_special_ids)
        ordinary = [
            number
            for token, number in tokenizer.get_vocab().items()
            if number < rows and number not in special and not _UNUSED.fullmatch(token)
        ]
        return cls(int(tokenizer.mask_token_id), np.sort(np.array(ordinary, np.int64)))


def embeddings(encoder: Encoder) -> torch.Tensor:
    """The encoder's input embeddings, (vocabulary, size)."""
    weight: torch.Tensor = encoder.torch.transformer.model.get_input_embeddings().weight
    return weight


def check_mask(encoder: Encoder) -> None:
    """Nothing, if the encoder's vocabulary has a mask token.

    Raises:
        InputError: It has none.
    """
    mask = encoder.spec.tokenizer.hf.mask_token_id
    if mask is None or mask >= len(embeddings(encoder)):
        raise InputError(
            f"{encoder.options.model} has no mask token, so that nothing can be masked; choose a "
            "base that was trained as a masked language model, such as bert-base-uncased"
        )


def similar_tokens(encoder: Encoder, vocabulary: Vocabulary, used: Int64) -> dict[int, Int64]:
    """The most similar words of those tokens that are words, by the cosine of input embeddings.

    Tokens without a similar one are left out.

    Args:
        encoder: As it is before training.
        vocabulary: Its own.
        used: Distinct token ids.
    """
    tokenizer = encoder.spec.tokenizer.hf
    names = tokenizer.convert_ids_to_tokens(vocabulary.ordinary.tolist())
    after_blank = np.array([name.startswith(BEGINS) for name in names])
    inside = np.array([name.startswith(_INSIDE) for name in names])
    if after_blank.sum() > inside.sum():  # each mark is a character of the other kind, too
        begins = after_blank
    else:
        begins = np.array([name.isalpha() for name in names])
    words = vocabulary.ordinary[begins]
    with torch.no_grad():
        weight = functional.normalize(embeddings(encoder).float(), dim=1)
        known = weight[torch.from_numpy(words).to(weight.device)]
        found: dict[int, Int64] = {}
        for rows in np.array_split(wanted := np.intersect1d(used, words), len(wanted) // _ROWS + 1):
            cosines = weight[torch.from_numpy(rows).to(weight.device)] @ known.T
            best = cosines.topk(min(NEAREST + 1, len(words)), dim=1)
            for row, values, places in zip(
                rows, best.values.cpu().numpy(), best.indices.cpu().numpy(), strict=True
            ):
                near = words[places[values >= MIN_COSINE]]
                near = near[near != row][:NEAREST]
                if len(near):
                    found[int(row)] = near
    return found
