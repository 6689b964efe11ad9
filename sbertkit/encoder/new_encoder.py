"""A new encoder from a transformers config file: random weights, written as a model folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

from sbertkit.encoder.layout import read_object
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.transformer import Transformer, check_config, quiet_transformers
from sbertkit.errors import InputError

_MAX_PARAMETERS = 2**30
_TOKENS = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")
"""Special tokens whose ids a config may name."""
_DROPPED = ("auto_map", "architectures", "_name_or_path", "dtype", "torch_dtype", "model_type")
"""What says nothing about a new model."""


def read_new_config(path: Path, families: Mapping[str, Any]) -> Any:
    """The library's config from a file.

    Args:
        path: A config.json with ``model_type`` and sizes; what it does not name has the library's
            default.
        families: The model types to choose from.

    Raises:
        InputError: It is no JSON object, names no known model type, or sizes that no model has.
    """
    content = read_object(path)
    check_config(content, path)
    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in families:
        found = "none" if kind is None else repr(kind)
        raise InputError(
            f"{path}: expected a model_type of {', '.join(sorted(families))}, found {found}"
        )
    sizes = {name: value for name, value in content.items() if name not in _DROPPED}
    with library_errors(f"{path} is no config of a {kind}"), quiet_transformers():
        return transformers.AutoConfig.for_model(kind, **sizes)


def write_new_encoder(config: Any, tokenizer: Any, folder: Path, *, seed: int, path: Path) -> None:
    """Writes an encoder with random weights and a tokenizer into a new folder.

    Args:
        config: What `read_new_config` gave.
        tokenizer: The transformers tokenizer, whose size and special tokens the config gets.
        folder: The new folder.
        seed: Decides the weights.
        path: The config file, for messages.

    Raises:
        InputError: The library builds no such model, or it is too large.
    """
    config.vocab_size = len(tokenizer)
    for name in _TOKENS:
        number = getattr(tokenizer, f"{name}_token_id")
        if number is not None and (name == "pad" or hasattr(config, f"{name}_token_id")):
            setattr(config, f"{name}_token_id", number)
    with library_errors(f"{path}: no model can be built with these sizes"), quiet_transformers():
        with torch.device("meta"):  # no memory is taken before the size is known
            count = _count(_built(config))
        if count > _MAX_PARAMETERS:
            raise InputError(
                f"{path}: a model of {count:,} parameters; expected at most {_MAX_PARAMETERS:,}"
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = _built(config)
        tokenizer.model_max_length = Transformer(model, tokenizer, frozenset()).position_limit or (
            tokenizer.model_max_length
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _built(config: Any) -> Any:
    return transformers.AutoModel.from_config(config, dtype=torch.float32)


def _count(model: Any) -> int:
    return sum(int(tensor.numel()) for tensor in model.parameters())
