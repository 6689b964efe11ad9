"""The whole computation from token ids to a text's vector, as one torch module."""

import copy
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.postprocessors import Normalize
from sbertkit.encoder.transformer import Transformer, parameters_behind, quiet_transformers
from sbertkit.errors import InputError

_RUNNING_ERRORS = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError)
"""What models raise that do not suit a pooling, or need more than token ids and a mask."""

HOOKS_INSTALLED = "_output_capturing_hooks_installed"
HOOKS_MODULE = "transformers.utils.output_capturing"
"""Private names of transformers: the mark of a model with hooks, and where the hooks come from."""


class Network(nn.Module):
    """Encoder, pooling and post-processing.

    Args:
        transformer: The encoder.
        pooling: From token vectors to a text's vector, or the head that gives a pair's score.
        postprocessors: What follows, in order (see `sbertkit.encoder.postprocessors`).
    """

    def __init__(
        self, transformer: Transformer, pooling: Pooling, postprocessors: Sequence[nn.Module]
    ) -> None:
        super().__init__()
        self.transformer = transformer.model
        self.pooling = pooling
        self.postprocessors = nn.ModuleList(postprocessors)
        self.dim = pooling.dim_of(transformer)
        for module in postprocessors:
            self.dim = module.out_dim(self.dim)  # type: ignore[operator]  # a PostProcessor

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        modules = self.postprocessors
        return len(modules) > 0 and isinstance(modules[-1], Normalize)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Text vectors (B, dim) from token ids (B, T), a 0/1 mask (B, T) and token types."""
        return self.vectors(self.states(input_ids, attention_mask, token_type_ids), attention_mask)

    def states(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Any:
        """What the transformer gives, with all layers where the pooling takes several."""
        inputs = input_ids, attention_mask, token_type_ids
        return token_states(self.transformer, inputs, all_layers=bool(self.pooling.layers))

    def vectors(self, output: Any, attention_mask: Tensor) -> Tensor:
        """Text vectors (B, dim) from what `states` gave."""
        vectors = self.pooling.of_output(output, attention_mask)
        for module in self.postprocessors:
            vectors = module(vectors)  # (B, dim)
        return vectors

    def used_parameters(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None
    ) -> dict[str, Tensor]:
        """The parameters that reach the vector, by name; a pooler or an unused layer does not.

        Args:
            input_ids: Token ids of any text, (1, T).
            attention_mask: Its mask, (1, T).
            token_type_ids: Its token types, for models that take them.

        Raises:
            InputError: The model gives no text vector, as where its layers differ in length.
        """
        self.requires_grad_(requires_grad=True)
        try:
            # What a model reports once, such as that it pads to its window, is not shown.
            with quiet_transformers(), torch.inference_mode(mode=False), torch.enable_grad():
                vectors = self(input_ids, attention_mask, token_type_ids)
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


def token_states(
    model: nn.Module, inputs: tuple[Tensor, Tensor, Tensor | None], *, all_layers: bool = False
) -> Any:
    """What a transformers model gives for token ids, attention mask and token types, each (B, T).

    Args:
        model: The model.
        inputs: As `batch_tensors` gives them.
        all_layers: Whether the output has `hidden_states` beside `last_hidden_state`.
    """
    input_ids, attention_mask, token_type_ids = inputs
    given: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask}
    if token_type_ids is not None:
        given["token_type_ids"] = token_type_ids
    if all_layers:
        given["output_hidden_states"] = True
    return model(**given)


def without_hooks(transformer: Transformer, network: Network) -> tuple[Transformer, Network]:
    """Copies over the same tensors that can be pickled.

    Once a model has given its hidden states, transformers leaves functions in its modules that no
    pickle takes; the copies install their own when they are asked for them.
    """
    shared = [*network.parameters(), *network.buffers(), transformer.tokenizer]
    copies = copy.deepcopy((transformer, network), {id(one): one for one in shared})
    for module in chain(copies[0].model.modules(), copies[1].modules()):
        module.__dict__.pop(HOOKS_INSTALLED, None)
        for key, hook in list(module._forward_hooks.items()):
            if getattr(hook, "__module__", None) == HOOKS_MODULE:
                del module._forward_hooks[key]
    return copies
