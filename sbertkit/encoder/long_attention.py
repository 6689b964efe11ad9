"""Attention made for long texts: what the library leaves to its user, or decides by the batch."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from sbertkit.encoder.prompts import Warn

GLOBAL_MODELS = ("longformer",)
"""Model types with attention in windows, whose user says which tokens have it to all."""

DECLARED_GLOBAL: Mapping[str, Any] = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": ["hidden_states", -1]}},
    "module_output_name": "token_embeddings",
}
"""How a folder of sentence-transformers says that the first token has global attention.

Of Longformer's classes that for classification gives it; the token vectors are its last hidden
states, and its head is not used (see `unused_head`).
"""


def attend_globally(model: nn.Module) -> None:
    """Lets the first token of every text attend to all others, and these to it.

    Source: Beltagy, Peters & Cohan 2020, section 3.1 ("for classification, global attention is
    used for the [CLS] token").
    """
    model.register_forward_pre_hook(_with_global_mask, with_kwargs=True)


def _with_global_mask(
    model: nn.Module,  # noqa: ARG001  # a hook gets it
    inputs: tuple[Any, ...],
    named: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    mask = torch.zeros_like(named["attention_mask"])
    mask[:, 0] = 1  # such models pad on the right
    return inputs, {**named, "global_attention_mask": mask}


def unused_head(size: int) -> dict[str, torch.Tensor]:
    """The head that `DECLARED_GLOBAL` makes sentence-transformers look for: zeros.

    Without these it would make one of random weights and warn of them.
    """
    shapes = {"dense.weight": (size, size), "dense.bias": (size,)}
    shapes |= {"out_proj.weight": (1, size), "out_proj.bias": (1,)}
    return {f"classifier.{name}": torch.zeros(shape) for name, shape in shapes.items()}


def full_attention(config: Any, warn: Warn) -> dict[str, str]:
    """The setting for full attention where the config asks for random blocks.

    A vector would depend on the texts beside and before it: the library gives up the blocks for
    good at the first short batch, lays them out by the padded length and, in training, draws them
    from numpy's global state, which it reseeds.
    """
    if getattr(config, "attention_type", None) != "block_sparse":
        return {}
    longest = (5 + 2 * config.num_random_blocks) * config.block_size
    warn(
        f"attends in blocks above {longest} tokens, with which a vector depends on its batch: "
        "using full attention, whose memory grows with the square of max_tokens (--max-tokens)"
    )
    return {"attention_type": "original_full"}


def window_of(config: Any) -> int:
    """Tokens to a multiple of which a model pads its batches; 1 for one that does not."""
    if config.model_type not in GLOBAL_MODELS:
        return 1
    windows = config.attention_window
    return int(windows if isinstance(windows, int) else max(windows))
