"""Training steps on a CPU: what torch computes slowly there, in another way.

- Dropout: torch draws a mask number by number, which takes longer than the matrix products around
  it. Here four numbers are made of each 64 random bits.
- Attention with dropout, which has no fused kernel there, uses the same masks.
- The gradient of token embeddings: autograd makes one as large as the vocabulary in each forward
  pass, of which nearly all is zero. Here the rows of the tokens are added to one that stays, and
  clipping reads these rows alone.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grads_with_norm_, get_total_norm
from torch.overrides import TorchFunctionMode

_BITS = 16
_VALUES = 2**_BITS
_PER_WORD = 64 // _BITS
_LOWEST = -(2**63)
"""Of 64 random bits as a number."""
_CLIP_EPSILON = 1e-6
"""That of `torch.nn.utils.clip_grads_with_norm_`."""


def training_functions(device: torch.device, *, embeddings: bool) -> AbstractContextManager[Any]:
    """What each forward pass of a training step is in: `CpuFunctions`, or nothing elsewhere."""
    return CpuFunctions(embeddings=embeddings) if device.type == "cpu" else nullcontext()


class CpuFunctions(TorchFunctionMode):
    """Replaces dropout, attention with dropout, and embeddings in a block.

    Random numbers are those of torch's generator, so that its state decides them.

    Args:
        embeddings: Whether to keep the gradients of embeddings. Nothing but lookups may then give
            these weights a gradient, and whoever resets it sets it to None.
    """

    def __init__(self, *, embeddings: bool) -> None:
        super().__init__()
        self._replaced: dict[Callable[..., Any], Callable[..., Any]] = {
            functional.dropout: _dropout,
            functional.scaled_dot_product_attention: _attention,
        }
        if embeddings:
            self._replaced[functional.embedding] = self._embedding
        self._gradients: dict[Tensor, _RowGradient] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Calls a function of torch, or what replaces it."""
        return self._replaced.get(func, func)(*args, **(kwargs or {}))

    def clip(self, parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
        """Scales gradients to a norm of at most `max_norm`, and gives the norm they had.

        As `torch.nn.utils.clip_grad_norm_` does, but for the time that zeros take.
        """
        dense = [one for one in parameters if one.grad is not None]
        rows = [self._gradients[one] for one in dense if one in self._gradients]
        dense = [one for one in dense if one not in self._gradients]
        gradients = [one.grad for one in dense if one.grad is not None]
        norm = get_total_norm([*gradients, *(one.nonzero() for one in rows)])
        if norm > max_norm:
            clip_grads_with_norm_(dense, max_norm, norm)
            for one in rows:
                one.scale(max_norm / (norm + _CLIP_EPSILON))
        return norm

    def _embedding(
        self,
        input: Tensor,  # noqa: A002  # as torch calls it
        weight: Tensor,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Tensor:
        """See `torch.nn.functional.embedding`."""
        plain = max_norm is None and not scale_grad_by_freq and not sparse
        if not plain or not _is_trained(weight):
            return functional.embedding(
                input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
            )
        gradient = self._gradients.setdefault(weight, _RowGradient(weight, padding_idx))
        found: Tensor = _Lookup.apply(weight, input, gradient)  # type: ignore[no-untyped-call]
        return found


def _is_trained(weight: Tensor) -> bool:
    """Whether the gradient of a weight is collected."""
    return isinstance(weight, nn.Parameter) and weight.requires_grad and torch.is_grad_enabled()


class _RowGradient:
    """The gradient of an embedding, in memory from the first step on.

    Args:
        weight: Its weight, (vocabulary, dim).
        padding: The token whose row gets no gradient.
    """

    def __init__(self, weight: Tensor, padding: int | None) -> None:
        self._weight = weight
        self._padding = padding
        self._buffer: Tensor | None = None
        self._rows: list[Tensor] = []

    def add(self, tokens: Tensor, gradient: Tensor) -> None:
        """Adds the gradient (..., dim) of the vectors of tokens (...)."""
        whole = self._grad
        rows, places = torch.unique(tokens, return_inverse=True)
        added = torch.ops.aten.embedding_dense_backward(gradient, places, len(rows), -1, False)
        if self._padding is not None:
            added[rows == self._padding] = 0
        whole.index_add_(0, rows, added)
        self._rows.append(rows)

    def nonzero(self) -> Tensor:
        """A copy of its rows that have a gradient."""
        return self._grad[self._distinct()]

    def scale(self, factor: Tensor) -> None:
        """Multiplies it."""
        rows = self._distinct()
        self._grad.index_copy_(0, rows, self._grad[rows] * factor)

    @property
    def _grad(self) -> Tensor:
        if self._weight.grad is None:
            self._weight.grad = self._cleared()
        return self._weight.grad

    def _distinct(self) -> Tensor:
        """The numbers of the rows that have a gradient."""
        rows: Tensor = torch.unique(torch.cat(self._rows))
        return rows

    def _cleared(self) -> Tensor:
        """Zeros for a new step."""
        if self._buffer is None:
            self._buffer = torch.zeros_like(self._weight)
        for rows in self._rows:
            self._buffer[rows] = 0
        self._rows.clear()
        return self._buffer


class _Lookup(torch.autograd.Function):
    """The vectors of tokens; their gradient goes to a `_RowGradient`."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, tokens: Tensor, gradient: _RowGradient) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.gradient = gradient
        return functional.embedding(tokens, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:
        ctx.gradient.add(*ctx.saved_tensors, gradients[0].contiguous())
        return None, None, None


def _dropout(
    input: Tensor,  # noqa: A002  # as torch calls it
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Tensor:
    """See `torch.nn.functional.dropout`; the probability is rounded to 16 bits."""
    dropped = round(p * _VALUES)
    if not training or inplace or not 0 < dropped < _VALUES or not input.is_floating_point():
        return functional.dropout(input, p, training, inplace)
    return input * _mask(input, dropped)


def _mask(like: Tensor, dropped: int) -> Tensor:
    """Zeros with a probability of `dropped` in 65,536; what else makes the mean 1."""
    count = like.numel()
    words = torch.empty(-(-count // _PER_WORD), dtype=torch.int64).random_(_LOWEST, None)
    drawn = words.view(torch.int16)[:count].view(like.shape)
    kept: Tensor = drawn >= dropped - _VALUES // 2
    return kept.to(like.dtype).mul_(_VALUES / (_VALUES - dropped))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    **more: Any,
) -> Tensor:
    """See `torch.nn.functional.scaled_dot_product_attention`."""
    if dropout_p == 0 or is_causal or any(more.values()):
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more
        )
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query * scale) @ key.transpose(-1, -2)  # (B, heads, T, T)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return _dropout(torch.softmax(scores, dim=-1), dropout_p) @ value
