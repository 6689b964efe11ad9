"""What of an encoder moves in training: which parts, at which rate, from which epoch on."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.training.config import ALL, HEAD, TrainConfig
from sbertkit.training.run.depths import Depths
from sbertkit.training.run.lora import LowRank


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters that move alike.

    Attributes:
        name: Embeddings, a layer or the head.
        parameters: How many numbers they are.
        learning_rate: Peak rate.
        epoch: The epoch from which on they move, from 0; None for never.
    """

    name: str
    parameters: int
    learning_rate: float
    epoch: int | None

    def __str__(self) -> str:
        moves = f"rate {self.learning_rate:.3g}" if self.epoch is not None else "frozen"
        later = f" from epoch {self.epoch}" if self.epoch else ""
        return f"{self.name} {moves}{later}"


class Moving:
    """The parts of an encoder and its head, and how each moves.

    Source: Howard & Ruder 2018, ULMFiT, section 3.2 (rates by depth) and 3.3 (gradual unfreezing).

    Args:
        encoder: In training.
        head: The objective's own layer.
        config: Which parts are frozen or move later, and at which rates.
        steps_per_epoch: Optimizer steps of an epoch.
        epochs: How many epochs the run begins.
        low_rank: The matrices that move in place of the encoder's own weights.

    Attributes:
        parts: By depth, from the head down; only with settings that treat them differently.

    Raises:
        InputError: The settings name layers or epochs that do not exist, or freeze everything.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        config: TrainConfig,
        *,
        steps_per_epoch: int,
        epochs: int,
        low_rank: LowRank | None = None,
    ) -> None:
        self.steps_per_epoch = steps_per_epoch
        self._by_depth: dict[int, list[nn.Parameter]] = defaultdict(list)
        self._rates: dict[int, float] = {}
        self._epochs: dict[int, int | None] = {}
        self.parts: tuple[Part, ...] = ()
        self.is_progressive = config.unfreeze is not None
        self.has_rates = config.layer_decay is not None
        differ = config.freeze_layers is not None or self.is_progressive or self.has_rates
        if low_rank is None and not differ:
            return
        network = encoder.torch.network
        depths = low_rank or Depths(network.transformer, encoder.options.model)
        used = {id(tensor) for tensor in encoder.torch.used_parameters.values()}
        for tensor in (*network.parameters(), *head.parameters()):
            if id(tensor) in used or tensor.requires_grad:
                self._by_depth[depths.of(tensor)].append(tensor)
        self._epochs = _epochs_of(self._by_depth, depths, config, epochs)
        rate, decay = config.learning_rate or 0.0, config.layer_decay or 1.0
        highest = max(self._by_depth)
        self._rates = {depth: rate * decay ** (highest - depth) for depth in self._by_depth}
        self.parts = tuple(
            Part(
                depths.name(depth),
                sum(tensor.numel() for tensor in self._by_depth[depth]),
                self._rates[depth],
                self._epochs[depth],
            )
            for depth in sorted(self._by_depth, reverse=True)
        )

    def __str__(self) -> str:
        return "; ".join(map(str, self.parts))

    def start(self) -> None:
        """Freezes what never moves."""
        for depth, tensors in self._by_depth.items():
            for tensor in tensors:
                tensor.requires_grad_(self._epochs[depth] is not None)

    def at_step(self, step: int) -> None:
        """Lets those parts move that do so in the epoch of an optimizer step."""
        if not self.is_progressive:
            return
        epoch = step // self.steps_per_epoch
        for depth, tensors in self._by_depth.items():
            first = self._epochs[depth]
            for tensor in tensors:
                tensor.requires_grad_(first is not None and first <= epoch)

    def groups(self, decayed: Collection[int], weight_decay: float) -> list[dict[str, Any]]:
        """Groups of an optimizer, each with its rate and decay, from the head down.

        Args:
            decayed: Identities of the parameters that decay.
            weight_decay: How much.
        """
        made = []
        for depth in sorted(self._by_depth, reverse=True):
            if self._epochs[depth] is None:
                continue
            for decays, amount in ((True, weight_decay), (False, 0.0)):
                tensors = [one for one in self._by_depth[depth] if (id(one) in decayed) == decays]
                if tensors:
                    rate = self._rates[depth]
                    made.append({"params": tensors, "lr": rate, "weight_decay": amount})
        return made

    def record(self) -> list[dict[str, Any]]:
        """The parts as JSON can hold them."""
        return [asdict(part) for part in self.parts]


def _epochs_of(
    by_depth: Mapping[int, list[nn.Parameter]],
    depths: Depths | LowRank,
    config: TrainConfig,
    epochs: int,
) -> dict[int, int | None]:
    """The epoch from which on each depth moves.

    Raises:
        InputError: See `Moving`.
    """
    if isinstance(depths, LowRank):
        return {n: 0 if n else None for n in by_depth}
    if config.freeze_layers is not None:
        frozen = _checked(config.freeze_layers, depths, "freeze_layers (--freeze-layers)")
        found: dict[int, int | None] = {n: None if n <= frozen else 0 for n in by_depth}
        if not any(epoch == 0 for epoch in found.values()):
            raise InputError(
                f"freeze_layers (--freeze-layers) {frozen} freezes everything: the encoder has "
                f"{depths.layers} layers and nothing above them; freeze fewer"
            )
        return found
    found = dict.fromkeys(by_depth, None if config.unfreeze else 0)
    for epoch, what in config.unfreezing:
        if epoch >= epochs:
            raise InputError(
                f"unfreeze (--unfreeze) names epoch {epoch}, but the run has {epochs}, counted "
                "from 0; train longer, or leave it out"
            )
        lowest = 0 if what == ALL else depths.top
        if what not in (ALL, HEAD):
            lowest = depths.top - _checked(int(what), depths, "unfreeze (--unfreeze)")
        for depth in by_depth:
            if depth >= lowest and found[depth] is None:
                found[depth] = epoch
        if not any(one is not None for one in found.values()):
            raise InputError(
                f"unfreeze (--unfreeze) trains nothing in epoch {epoch}: there is nothing above "
                f"the {depths.layers} layers; begin with layers, such as 0:1"
            )
    return found


def _checked(layers: int, depths: Depths, name: str) -> int:
    """Nothing, if there are so many layers.

    Raises:
        InputError: There are not.
    """
    if layers > depths.layers:
        shared = ", which all steps of the encoder share" if depths.layers == 1 else ""
        raise InputError(f"{name} names {layers} layers, but there are {depths.layers}{shared}")
    return layers
