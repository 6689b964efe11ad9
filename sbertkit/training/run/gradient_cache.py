"""Gradient caching: batches whose activations would not fit into memory at once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


def cached_vectors(
    forward: Callable[[Mapping[str, Tensor]], Tensor], groups: Sequence[Mapping[str, Tensor]]
) -> Tensor:
    """The vectors of groups of texts, (N, dim), whose gradient is computed group by group.

    They are first computed without a graph. When the gradient of a loss reaches them, each group is
    computed again, with the same dropout, and its part of the gradient is propagated: only the
    activations of one group are in memory at a time, and the gradients are those of the whole
    batch.

    Source: Gao et al. 2021, Scaling Deep Contrastive Learning Batch Size under Memory Limited
        Setup, section 3.2.

    Args:
        forward: The vectors of a group.
        groups: Token ids and so on of each group, see `Collator`.
    """
    device = groups[0]["input_ids"].device
    kind = device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    states, parts = [], []
    with torch.no_grad():
        for group in groups:
            states.append(_random_states(device))
            parts.append(forward(group))
    sizes = [len(part) for part in parts]
    vectors = torch.cat(parts)

    def replay(gradient: Tensor) -> None:
        for group, state, part in zip(groups, states, torch.split(gradient, sizes), strict=True):
            with (
                torch.enable_grad(),
                _same_randomness(device, state),
                torch.autocast(kind, dtype, enabled),
            ):
                again = forward(group)
            if again.requires_grad:  # not while all of the encoder is frozen
                torch.autograd.backward(again, part)

    if torch.is_grad_enabled():
        vectors.requires_grad_()
        vectors.register_hook(replay)  # type: ignore[no-untyped-call]
    return vectors


def _random_states(device: torch.device) -> list[Tensor]:
    """The states of the generators that dropout draws from."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(*_place(device)))
    return states


@contextmanager
def _same_randomness(device: torch.device, states: Sequence[Tensor]) -> Iterator[None]:
    """The generators in those states for the block, and then as they were."""
    before = _random_states(device)
    _set_states(device, states)
    try:
        yield
    finally:
        _set_states(device, before)


def _set_states(device: torch.device, states: Sequence[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], *_place(device))


def _place(device: torch.device) -> tuple[torch.device, ...]:
    """The device, where there may be several of its kind."""
    return (device,) if device.type == "cuda" else ()
