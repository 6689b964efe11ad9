"""The whole computation from token ids to a text's vector, as one torch module."""

import copy
from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn

from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.transformer import Transformer, parameters_behind, quiet_transformers
from sbertkit.errors import InputError

_RUNNING_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What models raise that do not suit a pooling, or need more than token ids and a mask."""


class Network(nn.Module):
    """Encoder, pooling and post-processing.

    Args:
        transformer: The encoder.
        pooling: From token vectors to a text's vector.
        steps: What follows, in order (see `sbertkit.encoder.postprocessors`).
    """

    def __init__(
        self, transformer: Transformer, pooling: Pooling, steps: Sequence[nn.Module]
    ) -> None:
        super().__init__()
        self.transformer = transformer.model
        self.pooling = pooling
        self.steps = nn.ModuleList(steps)
        self.dim = transformer.hidden_size
        for step in steps:
            self.dim = step.out_dim(self.dim)  # type: ignore[operator]  # a Step

    def forward(self, input_ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Text vectors (B, dim) from token ids (B, T), a 0/1 mask (B, T) and token types."""
        extra = {} if types is None else {"token_type_ids": types}
        if self.pooling.layers:
            extra["output_hidden_states"] = True  # type: ignore[assignment]  # a flag among tensors
        output = self.transformer(input_ids=input_ids, attention_mask=mask, **extra)
        hidden = output.hidden_states if self.pooling.layers else None
        vectors = self.pooling(output.last_hidden_state, hidden, mask)  # (B, dim)
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    def contributing_tensors(
        self, input_ids: Tensor, mask: Tensor, types: Tensor | None
    ) -> dict[str, Tensor]:
        """The parameters that reach the vector, by name; a pooler or an unused layer does not.

        Args:
            input_ids: Token ids of any text, (1, T).
            mask: Its mask, (1, T).
            types: Its token types, for models that take them.

        Raises:
            InputError: The model gives no text vector, as where its layers differ in length.
        """
        self.requires_grad_(requires_grad=True)
        try:
            # What a model says once, such as that it pads to its window, is said here unheard.
            with quiet_transformers(), torch.inference_mode(mode=False), torch.enable_grad():
                vectors = self(input_ids, mask, types)
                if vectors.shape[1] != self.dim:
                    raise ValueError(f"its token vectors have another size: {vectors.shape[1]}")
                reached = parameters_behind(vectors)
        except _RUNNING_ERRORS as error:
            model = self.transformer
            reason = " ".join(str(error).split())[:300]
            raise InputError(
                f"the {type(model).__name__} of {model.name_or_path} gives no vector of size "
                f"{self.dim} with pooling {self.pooling.name!r} ({reason}); choose another pooling "
                "or model"
            ) from error
        finally:
            self.requires_grad_(requires_grad=False)
        return {
            name: parameter
            for name, parameter in self.named_parameters()
            if id(parameter) in reached
        }


def without_hooks(transformer: Transformer, network: Network) -> tuple[Transformer, Network]:
    """Copies over the same tensors that can be pickled.

    Once a model has given its hidden states, transformers leaves functions in its modules that no
    pickle takes; the copies install their own when they are asked for them.
    """
    shared = [*network.parameters(), *network.buffers(), transformer.tokenizer]
    copies = copy.deepcopy((transformer, network), {id(one): one for one in shared})
    for module in chain(copies[0].model.modules(), copies[1].modules()):
        module.__dict__.pop("_output_capturing_hooks_installed", None)
        for key, hook in list(module._forward_hooks.items()):
            if getattr(hook, "__module__", None) == "transformers.utils.output_capturing":
                del module._forward_hooks[key]
    return copies
