"""From token vectors to one vector per text: seven poolings, safe for padding on either side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sbertkit.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from sbertkit.encoder.transformer import Transformer

Reduce = Callable[["Tensor", "Tensor"], "Tensor"]
"""Takes token vectors (B, T, dim) and a 0/1 attention mask (B, T); gives (B, dim).

Exports trace it: it must not depend on the number of texts or tokens that it is traced with.
"""


def _first_token(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    return _tokens_at(tokens, mask.argmax(dim=1))  # argmax gives the first of equal values


def _last_token(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    return _tokens_at(tokens, mask.shape[1] - 1 - mask.flip(1).argmax(dim=1))


def _tokens_at(tokens: "Tensor", places: "Tensor") -> "Tensor":
    """The vector (B, dim) at one place (B,) of each text."""
    chosen = places[:, None, None].expand(-1, 1, tokens.shape[2])  # (B, 1, dim)
    return tokens.gather(1, chosen).squeeze(1)


def _mean(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    weights = mask.unsqueeze(-1).to(tokens.dtype)  # (B, T, 1)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1)


def _mean_sqrt_len(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    weights = mask.unsqueeze(-1).to(tokens.dtype)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1).sqrt()


def _weighted_mean(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    # The n-th real token has weight n, wherever the padding is.
    position = mask.long().cumsum(dim=1) * mask  # (B, T)
    weights = position.unsqueeze(-1).to(tokens.dtype)
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1)


def _max(tokens: "Tensor", mask: "Tensor") -> "Tensor":
    return tokens.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).max(dim=1).values


class PoolingKind(NamedTuple):
    """A pooling.

    Attributes:
        name: Its name here.
        st_name: Its name in sentence-transformers, which runs saved models and so must have it.
        st_flag: The setting that chooses it in folders of older versions of it.
        reduce: What it computes.
        first_and_last: Whether it takes the average of the first and the last layer.
        needs_end_token: Whether it is for texts that end with an end token, which is appended where
            the tokenizer adds none.
    """

    name: str
    st_name: str
    st_flag: str
    reduce: Reduce
    first_and_last: bool = False
    needs_end_token: bool = False


POOLINGS: dict[str, PoolingKind] = {
    kind.name: kind
    for kind in (
        PoolingKind("mean", "mean", "pooling_mode_mean_tokens", _mean),
        PoolingKind("cls", "cls", "pooling_mode_cls_token", _first_token),
        PoolingKind("max", "max", "pooling_mode_max_tokens", _max),
        PoolingKind(
            "eos", "lasttoken", "pooling_mode_lasttoken", _last_token, needs_end_token=True
        ),
        PoolingKind(
            "mean_sqrt_len",
            "mean_sqrt_len_tokens",
            "pooling_mode_mean_sqrt_len_tokens",
            _mean_sqrt_len,
        ),
        PoolingKind(
            "weighted_mean", "weightedmean", "pooling_mode_weightedmean_tokens", _weighted_mean
        ),
        PoolingKind("first_last", "mean", "pooling_mode_mean_tokens", _mean, first_and_last=True),
    )
}


def check_pooling(name: str) -> None:
    """Refuses an unknown name.

    Raises:
        InputError: There is no such pooling.
    """
    if name not in POOLINGS:
        raise InputError(f"unknown pooling {name!r}; expected one of {', '.join(sorted(POOLINGS))}")


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
        check_pooling(self.name)

    @classmethod
    def named(cls, name: str, layer_count: int) -> "Pooling":
        """The pooling of that name for a model with `layer_count` layers."""
        pooling = cls(name)
        if POOLINGS[name].first_and_last:
            return cls(name, tuple(sorted({1, layer_count})))
        return pooling

    @property
    def needs_end_token(self) -> bool:
        """See `PoolingKind`."""
        return POOLINGS[self.name].needs_end_token

    def dim_of(self, transformer: "Transformer") -> int:
        """The size of what it gives."""
        return transformer.hidden_size

    def of_output(self, output: Any, mask: "Tensor") -> "Tensor":
        """Text vectors (B, dim) from all that a transformers model gives, and its mask (B, T)."""
        return self(output.last_hidden_state, output.hidden_states if self.layers else None, mask)

    def __call__(
        self, output: "Tensor", hidden_states: "Sequence[Tensor] | None", mask: "Tensor"
    ) -> "Tensor":
        """Text vectors (B, dim) float32 from the model's output (B, T, dim) and its mask (B, T)."""
        import torch  # not above, so that the names can be listed without it

        # Some models give half precision under autocast, which has no room for sums and weights.
        if self.layers and hidden_states is not None:
            layers = [hidden_states[layer].float() for layer in self.layers]
            output = torch.stack(layers).mean(dim=0)
        return POOLINGS[self.name].reduce(output.float(), mask)


def pooling_of_st(mode: str, layers: tuple[int, ...], layer_count: int) -> Pooling:
    """The pooling of a sentence-transformers mode name over the average of `layers`.

    Raises:
        InputError: There is no such mode.
    """
    if mode == "mean" and layers and layers == Pooling.named("first_last", layer_count).layers:
        return Pooling("first_last", layers)
    for kind in POOLINGS.values():
        if kind.st_name == mode:
            return Pooling(kind.name, layers)
    known = ", ".join(sorted({kind.st_name for kind in POOLINGS.values()}))
    raise InputError(f"unknown pooling mode {mode!r} in the model folder; expected one of {known}")
