"""From token vectors to one vector a text: the seven poolings, safe for padding on either side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sbertkit.errors import InputError

Reduce = Callable[[Tensor, Tensor], Tensor]
"""Takes token vectors (B, T, dim) and a 0/1 mask (B, T); gives (B, dim)."""


def _first_token(tokens: Tensor, mask: Tensor) -> Tensor:
    first = mask.to(torch.int32).argmax(dim=1)  # (B,), argmax gives the first of equal values
    return tokens[torch.arange(len(tokens), device=tokens.device), first]


def _last_token(tokens: Tensor, mask: Tensor) -> Tensor:
    last = mask.shape[1] - 1 - mask.flip(1).to(torch.int32).argmax(dim=1)  # (B,)
    return tokens[torch.arange(len(tokens), device=tokens.device), last]


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(tokens.dtype)  # (B, T, 1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1)


def _mean_sqrt_len(tokens: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(tokens.dtype)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).sqrt()


def _weighted_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    # The n-th real token has weight n, wherever the padding is.
    position = mask.to(torch.int64).cumsum(dim=1) * mask  # (B, T)
    weights = position.unsqueeze(-1).to(tokens.dtype)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1)


def _max(tokens: Tensor, mask: Tensor) -> Tensor:
    return tokens.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).max(dim=1).values


@dataclass(frozen=True, slots=True)
class PoolingKind:
    """A pooling by its name here, its name in sentence-transformers and its function."""

    name: str
    published_name: str
    reduce: Reduce
    first_and_last: bool = False


KINDS: dict[str, PoolingKind] = {
    kind.name: kind
    for kind in (
        PoolingKind("cls", "cls", _first_token),
        PoolingKind("mean", "mean", _mean),
        PoolingKind("max", "max", _max),
        PoolingKind("eos", "lasttoken", _last_token),
        PoolingKind("mean_sqrt_len", "mean_sqrt_len_tokens", _mean_sqrt_len),
        PoolingKind("weighted_mean", "weightedmean", _weighted_mean),
        PoolingKind("first_last", "mean", _mean, first_and_last=True),
    )
}


@dataclass(frozen=True, slots=True)
class Pooling:
    """How token vectors become a text's vector.

    ``cls`` takes the first real token, ``eos`` the last; ``mean``, ``max``, ``mean_sqrt_len`` (sum
    over the square root of the token count) and ``weighted_mean`` (weight n for the n-th token,
    Muennighoff 2022, SGPT, section 4.1) go over the real tokens, special tokens included;
    ``first_last`` is the mean over the average of the first and the last layer.

    Source: Reimers & Gurevych 2019, section 3 (cls, mean, max); Su et al. 2021, section 4
    (first_last); Radford et al. 2021, section 2.4 (eos).

    Attributes:
        name: One of the names above.
        layers: Hidden states whose average is pooled, from 1 for the first layer; empty for the
            model's output alone.
    """

    name: str
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise InputError(
                f"unknown pooling {self.name!r}; expected one of {', '.join(sorted(KINDS))}"
            )

    @classmethod
    def named(cls, name: str, layer_count: int) -> "Pooling":
        """The pooling of that name for a model with `layer_count` layers."""
        pooling = cls(name)
        if KINDS[name].first_and_last:
            return cls(name, tuple(sorted({1, layer_count})))
        return pooling

    def __call__(
        self, output: Tensor, hidden_states: Sequence[Tensor] | None, mask: Tensor
    ) -> Tensor:
        """Text vectors (B, dim) float32 from the model's output (B, T, dim) and its mask (B, T)."""
        # Some models give half precision under autocast, which has no room for sums and weights.
        if self.layers and hidden_states is not None:
            layers = [hidden_states[layer].float() for layer in self.layers]
            output = torch.stack(layers).mean(dim=0)
        return KINDS[self.name].reduce(output.float(), mask)


def pooling_of_published(mode: str, layers: tuple[int, ...], layer_count: int) -> Pooling:
    """The pooling of a sentence-transformers mode name over the average of `layers`.

    Raises:
        InputError: There is no such mode.
    """
    if mode == "mean" and layers and layers == Pooling.named("first_last", layer_count).layers:
        return Pooling("first_last", layers)
    for kind in KINDS.values():
        if kind.published_name == mode:
            return Pooling(kind.name, layers)
    known = ", ".join(sorted({kind.published_name for kind in KINDS.values()}))
    raise InputError(f"unknown pooling mode {mode!r} in the model folder; expected one of {known}")
