"""A hash of everything that decides a text's vector, and of nothing else."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_VERSION = "sbertkit-encoder-2"

_DECISIVE = (
    *("model_type", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    *("hidden_act", "layer_norm_eps"),
)
"""What a config says of the computation that the shapes of the weights do not show."""


def computation(config: Any) -> dict[str, Any]:
    """What a network does with its weights, by the names of transformers' config.

    Layers that share their weights, as ALBERT's, may be run any number of times.
    """
    return {name: getattr(config, name, None) for name in _DECISIVE}


def fingerprint(tensors: Mapping[str, Tensor], tokenizer_json: str, settings: Any) -> str:
    """The SHA-256 in hexadecimal of an encoder's weights, tokenizer and settings.

    Args:
        tensors: The tensors that reach the vector, by name; hashed as float32 whatever their type.
        tokenizer_json: The tokenizer's canonical JSON.
        settings: Pooling, post-processing, prompts and token limit, as JSON can hold them.
    """
    digest = hashlib.sha256(_VERSION.encode())
    for part in (tokenizer_json, json.dumps(settings, sort_keys=True)):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    for name in sorted(tensors):
        tensor = tensors[name].detach().to("cpu", torch.float32).contiguous()
        digest.update(json.dumps([name, list(tensor.shape)]).encode())
        digest.update(tensor.numpy().data)
    return digest.hexdigest()
