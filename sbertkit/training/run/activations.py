"""Gradient checkpointing: activations inside a layer are computed again for its gradient."""

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch.utils.checkpoint import checkpoint

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError


def checkpoint_activations(
    encoder: Encoder, functions: AbstractContextManager[Any] | None = None
) -> None:
    """Lets each layer keep no more than its input for the gradient, while it is trained.

    A layer is computed again with the same dropout when the gradient reaches it, so that gradients
    are the same. Vectors that are encoded meanwhile are not touched.

    Source: Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost, section 4.

    Args:
        encoder: Whose layers are those of the transformers library.
        functions: What each forward pass is in.

    Raises:
        InputError: Its family has no gradient checkpointing there.
    """
    model = encoder.torch.transformer.model
    around = nullcontext(), functions or nullcontext()  # of the first pass, and of the second
    again = partial(checkpoint, use_reentrant=False, context_fn=lambda: around)
    try:
        if not model.supports_gradient_checkpointing:
            raise ValueError
        # The public method would also let gradients into embeddings that do not move.
        model._set_gradient_checkpointing(enable=True, gradient_checkpointing_func=again)
    except (TypeError, ValueError) as error:  # as code of a model's own may raise
        raise InputError(
            f"gradient_checkpointing (--gradient-checkpointing) is not there for "
            f"{type(model).__name__}, the family of {encoder.options.model}; leave it out, or save "
            "memory with mini_batch (--mini-batch)"
        ) from error
