"""The layers of an encoder: where they are, and an encoder of some of them."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from sbertkit.arguments import whole_number
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.long_attention import attend_globally
from sbertkit.encoder.pooling import POOLINGS, Pooling
from sbertkit.encoder.torch_runtime import TorchRuntime
from sbertkit.encoder.transformer import Transformer, quiet_transformers
from sbertkit.errors import InputError, InputTypeError

Layers = int | Sequence[int]
"""How many layers, evenly spaced; or their numbers, from 0 for the lowest."""

_PER_LAYER = ("layer_types", "mlp_layer_types", "attention_window")
"""Settings of a config that may be lists with an item for each layer."""
_NUMBERED = ("layer_idx", "layer_id", "layer_index")
"""Where a layer keeps its own number, which says nothing about what it computes."""


def with_layers(encoder: Encoder, layers: Layers) -> Encoder:
    """An encoder of some layers of another one, with its embeddings, pooling and tokenizer.

    Layers are found by structure. Weights that all layers share, as in ALBERT, are kept whole:
    they are run fewer times.

    Args:
        encoder: It stays as it is.
        layers: How many, from the lowest to the highest and evenly spaced, as DistilBERT takes
            them; or their numbers, ascending, from 0.

    Raises:
        InputError: There are fewer layers, or those do not form an encoder of this architecture.
        InputTypeError: No whole numbers.

    Source: Sanh et al. 2019, DistilBERT, section 3 (initialization from the teacher's layers).
    """
    model = encoder.torch
    name, count = encoder.options.model, model.transformer.layer_count
    chosen = choose_layers(layers, count, name)
    transformer = _shrunk(model.transformer, chosen, name)
    pooling = model.network.pooling
    if pooling.layers:
        if not POOLINGS[pooling.name].first_and_last:
            numbers = ", ".join(map(str, pooling.layers))
            raise InputError(
                f"{name} pools its layers {numbers}, which a student of other layers has not; "
                "choose another pooling (--pooling)"
            )
        pooling = Pooling.named(pooling.name, len(chosen))
    after = copy.deepcopy(model.postprocessors)
    return Encoder(TorchRuntime(model.variant(pooling, after, transformer)))


def choose_layers(layers: Layers, count: int, name: str) -> tuple[int, ...]:
    """The numbers of the chosen layers, ascending, from 0.

    Args:
        layers: See `with_layers`.
        count: How many there are.
        name: What messages call the encoder.

    Raises:
        InputError: There are fewer, or numbers do not exist, are repeated or fall.
        InputTypeError: No whole numbers.
    """
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        wanted = whole_number("layers", layers)
        if wanted > count:
            raise InputError(
                f"layers (--layers) asks for {wanted} layers, but {name} has {count}; ask for "
                "fewer, or choose another student (--student)"
            )
        return tuple(round(n * (count - 1) / max(1, wanted - 1)) for n in range(wanted))
    numbers = tuple(whole_number("a layer", number, least=0) for number in layers)
    shown = ",".join(map(str, numbers))
    if not numbers:
        raise InputTypeError("layers must be a number of layers or their numbers, found none")
    if max(numbers) >= count:
        raise InputError(
            f"layers (--layers) names layer {max(numbers)}, but {name} has {count}, numbered from "
            f"0 to {count - 1}; found {shown}"
        )
    if list(numbers) != sorted(set(numbers)):
        raise InputError(f"layers (--layers) must be distinct and ascending numbers, found {shown}")
    return numbers


def layer_lists(transformer: nn.Module) -> dict[str, nn.ModuleList]:
    """The lists of modules that are in no other list, by their names in the model."""
    return dict(_outermost(transformer, ""))


def _outermost(module: nn.Module, prefix: str) -> Iterator[tuple[str, nn.ModuleList]]:
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            yield prefix + name, child
        else:
            yield from _outermost(child, f"{prefix}{name}.")


def _shrunk(transformer: Transformer, chosen: Sequence[int], name: str) -> Transformer:
    """The transformer with those layers alone, as its own class builds and loads it."""
    before = transformer.model
    count = transformer.layer_count
    lists = {path: one for path, one in layer_lists(before).items() if len(one) == count}
    shared = not lists and any(len(one) == 1 for one in layer_lists(before).values())
    if not lists and not shared:
        raise InputError(
            f"{name}: a {type(before).__name__} has no list of its {count} layers, from which some "
            "could be taken; choose a student (--student) of its own"
        )
    config = _config_of(before.config, chosen, count)
    with quiet_transformers():
        after = type(before)(config)
    rename = {
        f"{path}.{number}.": f"{path}.{place}." if place is not None else None
        for path in lists
        for number, place in ((n, _place(n, chosen)) for n in range(count))
    }
    try:
        after.load_state_dict(_renamed(before.state_dict(), rename))
        _check_same(lists, layer_lists(after), chosen)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"{name}: layers {','.join(map(str, chosen))} do not form a {type(before).__name__}, "
            f"where some layers differ from others ({reason}); take others, with layer 0 first"
        ) from error
    after.to(next(before.parameters()).device).eval().requires_grad_(requires_grad=False)
    if transformer.global_attention:
        attend_globally(after)
    missing = _renamed(dict.fromkeys(transformer.missing), rename)
    return replace(transformer, model=after, missing=frozenset(missing))


def _config_of(config: Any, chosen: Sequence[int], count: int) -> Any:
    """The config of a model with those layers alone."""
    changed = copy.deepcopy(config)
    for key in _PER_LAYER:
        value = getattr(config, key, None)
        if isinstance(value, list) and len(value) == count:
            setattr(changed, key, [value[number] for number in chosen])
    key = "num_hidden_layers" if hasattr(config, "num_hidden_layers") else "num_layers"
    setattr(changed, key, len(chosen))
    return changed


def _place(number: int, chosen: Sequence[int]) -> int | None:
    return chosen.index(number) if number in chosen else None


def _renamed(weights: Mapping[str, Any], rename: Mapping[str, str | None]) -> dict[str, Tensor]:
    """Weights by their names in the smaller model; those of other layers are left out."""
    found = {}
    for name, tensor in weights.items():
        old = next((one for one in rename if name.startswith(one)), None)
        if old is None:
            found[name] = tensor
        elif (new := rename[old]) is not None:
            found[new + name.removeprefix(old)] = tensor
    return found


def _check_same(
    before: Mapping[str, nn.ModuleList], after: Mapping[str, nn.ModuleList], chosen: Sequence[int]
) -> None:
    """Nothing, if each layer computes what it did, which its number may decide, too.

    Raises:
        ValueError: One does not.
    """
    for path, layers in before.items():
        for place, number in enumerate(chosen):
            old, new = (list(one.modules()) for one in (layers[number], after[path][place]))
            for one, two in zip(old, new, strict=True):
                facts, now = _facts(one), _facts(two)
                for key in facts:
                    if facts[key] != now.get(key):
                        raise ValueError(
                            f"{key} of layer {number} is {facts[key]!r}, as layer {place} it would "
                            f"be {now.get(key)!r}"
                        )


def _facts(module: nn.Module) -> dict[str, Any]:
    """The plain settings of a module."""
    kinds = (bool, int, float, str, tuple)
    return {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, kinds)
        and not key.startswith("_")
        and key not in (*_NUMBERED, "training")
    }
