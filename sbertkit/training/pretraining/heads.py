"""What predicts tokens above an encoder: its weights in checkpoints and in our folders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers.activations import ACT2FN

from sbertkit.encoder import Encoder
from sbertkit.encoder.network import token_states
from sbertkit.errors import InputError
from sbertkit.training.pretraining.base_weights import SUFFIX, BaseWeights, shapes, take
from sbertkit.training.pretraining.tasks.base import TaskLoss
from sbertkit.training.pretraining.vocabulary import embeddings

FOLDER = "pretraining"
"""Has a file of weights for each head, beside the model."""
DEVIATION = 0.02
"""Of new weights, as those of BERT."""
_POSITIONS_PER_WORD = 4
_SCORED = 4_096
"""Tokens whose scores, a number for each token of the vocabulary, are in memory at once."""


class _Layout(NamedTuple):
    """Where a family of checkpoints has its masked language model's head."""

    dense: str
    norm: str
    bias: tuple[str, ...]


_LAYOUTS = (
    _Layout(
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    ),
    _Layout("lm_head.dense", "lm_head.layer_norm", ("lm_head.bias", "lm_head.decoder.bias")),
    _Layout("vocab_transform", "vocab_layer_norm", ("vocab_projector.bias",)),
    _Layout(
        "predictions.dense",
        "predictions.LayerNorm",
        ("predictions.bias", "predictions.decoder.bias"),
    ),
    _Layout(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        ("generator_lm_head.bias",),
    ),
    _Layout(
        "lm_predictions.lm_head.dense",
        "lm_predictions.lm_head.LayerNorm",
        ("lm_predictions.lm_head.bias",),
    ),
    _Layout("head.dense", "head.norm", ("decoder.bias",)),
)
"""BERT and DeBERTa; RoBERTa, MPNet and Longformer; DistilBERT; ALBERT; ELECTRA's generator;
DeBERTa-v3; ModernBERT."""


class LmHead(nn.Module):
    """From token vectors to scores of all tokens, by the encoder's input embeddings.

    Source: Devlin et al. 2019, BERT, in https://github.com/google-research/bert, 2018,
        ``get_masked_lm_output``; tied embeddings: Press & Wolf 2017.

    Args:
        hidden: Size of a token vector.
        size: Of an input embedding.
        vocabulary: How many embeddings there are.
        activation: As config.json names it.
        eps: Of the normalization.
    """

    def __init__(
        self, hidden: int, size: int, vocabulary: int, *, activation: str, eps: float
    ) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, size)
        self.norm = nn.LayerNorm(size, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.activation = ACT2FN[activation]
        nn.init.normal_(self.dense.weight, std=DEVIATION)
        nn.init.zeros_(self.dense.bias)

    def forward(self, states: Tensor, embedding: Tensor) -> Tensor:
        """Scores (n, vocabulary) of token vectors (n, hidden)."""
        found = self.norm(self.activation(self.dense(states)))
        return functional.linear(found, embedding, self.bias)


class TiedHead(nn.Module):
    """From token vectors to scores of all tokens, by the input embeddings alone, and a bias.

    Source: Yang et al. 2019, XLNet, in https://github.com/zihangdai/xlnet, ``lm_loss``.

    Args:
        vocabulary: How many embeddings there are.
    """

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor, embedding: Tensor) -> Tensor:
        """Scores (n, vocabulary) of token vectors (n, hidden)."""
        return functional.linear(states, embedding, self.bias)


class SpanHead(nn.Module):
    """From the token vectors beside a span, and a place in it, to scores of all tokens.

    Source: Joshi et al. 2020, SpanBERT, section 3.2: two layers with GELU and layer normalization.

    Args:
        hidden: Size of a token vector.
        size: Of an input embedding.
        vocabulary: How many embeddings there are.
        positions: Number of distinct positions; later ones count as the last.
        eps: Of the normalization.
    """

    def __init__(
        self, hidden: int, size: int, vocabulary: int, *, positions: int, eps: float
    ) -> None:
        super().__init__()
        self.position = nn.Embedding(positions, hidden)
        self.first = nn.Linear(3 * hidden, hidden)
        self.first_norm = nn.LayerNorm(hidden, eps=eps)
        self.second = nn.Linear(hidden, size)
        self.second_norm = nn.LayerNorm(size, eps=eps)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        for layer in (self.first, self.second):
            nn.init.normal_(layer.weight, std=DEVIATION)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.position.weight, std=DEVIATION)

    def joined(self, before: Tensor, after: Tensor, position: Tensor) -> Tensor:
        """What goes in, (n, 3 hidden): both token vectors (n, hidden), and places (n,)."""
        last = self.position.num_embeddings - 1
        return torch.cat((before, after, self.position(position.clamp(max=last))), dim=1)

    def forward(self, joined: Tensor, embedding: Tensor) -> Tensor:
        """Scores, (n, vocabulary)."""
        found = self.first_norm(functional.gelu(self.first(joined)))
        found = self.second_norm(functional.gelu(self.second(found)))
        return functional.linear(found, embedding, self.bias)


def lm_head(encoder: Encoder) -> LmHead:
    """A head that predicts tokens, with the weights of the base's own one where it has one."""
    config = encoder.torch.transformer.model.config
    vocabulary, size = embeddings(encoder).shape
    head = LmHead(
        encoder.torch.transformer.hidden_size,
        size,
        vocabulary,
        activation=activation_of(config),
        eps=_eps(config),
    )
    weights = BaseWeights(encoder)
    for layout in _LAYOUTS:
        found = weights.read(
            {
                "dense.weight": (f"{layout.dense}.weight",),
                "dense.bias": (f"{layout.dense}.bias",),
                "norm.weight": (f"{layout.norm}.weight", f"{layout.norm}.gamma"),
                "norm.bias": (f"{layout.norm}.bias", f"{layout.norm}.beta"),
                "bias": layout.bias,
            }
        )
        if take(head, found):
            break
    return head


def span_head(encoder: Encoder, max_span: int) -> SpanHead:
    """A new head of the span boundary objective."""
    vocabulary, size = embeddings(encoder).shape
    return SpanHead(
        encoder.torch.transformer.hidden_size,
        size,
        vocabulary,
        positions=_POSITIONS_PER_WORD * max_span,
        eps=_eps(encoder.torch.transformer.model.config),
    )


def tied_head(encoder: Encoder) -> TiedHead:
    """A head of XLNet, with the bias of the base's own one where it has one."""
    vocabulary, size = embeddings(encoder).shape
    hidden = encoder.torch.transformer.hidden_size
    if size != hidden:
        raise InputError(
            f"expected input embeddings of the hidden size {hidden} in {encoder.options.model}, "
            f"found {size}"
        )
    head = TiedHead(vocabulary)
    take(head, BaseWeights(encoder).read({"bias": ("lm_loss.bias",)}))
    return head


def activation_of(config: Any) -> str:
    """The name of a model's activation."""
    found = getattr(config, "hidden_act", None) or getattr(config, "activation", None)
    return found if isinstance(found, str) else "gelu"


def _eps(config: Any) -> float:
    names = ("layer_norm_eps", "norm_eps")
    return next((float(getattr(config, name)) for name in names if hasattr(config, name)), 1e-12)


def flat_states(network: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The token vectors of a batch one after another, (B × T, hidden)."""
    inputs = batch["input_ids"], batch["mask"], batch.get("types")
    states: Tensor = token_states(network.transformer, inputs).last_hidden_state  # type: ignore[arg-type]
    return states.flatten(0, 1)


def states_and_vectors(network: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """As `flat_states`, and the text vectors (B, dim) of the same pass."""
    inputs = batch["input_ids"], batch["mask"], batch.get("types")
    output = network.states(*inputs)
    return output.last_hidden_state.flatten(0, 1), network.vectors(output, batch["mask"])


def input_embeddings(network: Any) -> Tensor:
    """The input embeddings of an encoder's network, (vocabulary, size)."""
    weight: Tensor = network.transformer.get_input_embeddings().weight
    return weight


def predicted(head: nn.Module, states: Tensor, network: nn.Module, targets: Tensor) -> TaskLoss:
    """The mean cross-entropy of tokens, and how many are predicted right.

    Scores are computed for those tokens alone; of many, some at a time, and again for the gradient.

    Args:
        head: A `LmHead`, `SpanHead` or `TiedHead`.
        states: What it takes of each token, (n, size).
        network: Whose input embeddings decode.
        targets: The tokens, (n,).
    """
    embedding = input_embeddings(network)
    parts = [
        (states[start : start + _SCORED], targets[start : start + _SCORED])
        for start in range(0, max(1, len(targets)), _SCORED)
    ]
    if len(parts) == 1:
        found = [_scored(head, *parts[0], embedding)]
    else:
        found = [checkpoint(_scored, head, *part, embedding, use_reentrant=False) for part in parts]
    loss, correct = (torch.stack(column).sum() for column in zip(*found, strict=True))
    return TaskLoss(loss / max(1, len(targets)), correct, len(targets))


def _scored(
    head: nn.Module, states: Tensor, targets: Tensor, embedding: Tensor
) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy, and how many are right."""
    scores = head(states, embedding).float()  # (n, vocabulary)
    loss = functional.cross_entropy(scores, targets, reduction="sum")
    return loss, (scores.argmax(dim=1) == targets).sum()


def write_task_heads(head: nn.Module, folder: Path) -> None:
    """Writes each head into a model folder."""
    if not head.state_dict():
        return
    (folder / FOLDER).mkdir()
    for name, module in head.named_children():
        weights = {
            key: value.detach().cpu().contiguous() for key, value in module.state_dict().items()
        }
        save_file(weights, folder / FOLDER / f"{name}{SUFFIX}")


def load_task_heads(head: nn.Module, folder: Path) -> list[str]:
    """Takes the weights of a model folder for those heads that it has; their names.

    Raises:
        InputError: A file is damaged, or of another size than the encoder.
    """
    found = []
    for name, module in head.named_children():
        path = folder / FOLDER / f"{name}{SUFFIX}"
        if not path.is_file():
            continue
        try:
            weights = load_file(path)
        except (OSError, ValueError, SafetensorError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{path}: the head cannot be read: {reason}") from error
        expected, given = shapes(module.state_dict()), shapes(weights)
        if given != expected:
            one = min(key for key in {*expected, *given} if expected.get(key) != given.get(key))
            raise InputError(
                f"{path}: {one}: expected {expected.get(one, 'no such weights')}, found "
                f"{given.get(one, 'no such weights')}; give the options that it was trained with, "
                "or remove the file to begin with a new head"
            )
        if not all(tensor.isfinite().all() for tensor in weights.values()):
            raise InputError(f"{path}: weights that are not finite; remove the file")
        module.load_state_dict(weights)
        found.append(name)
    return found
