"""An encoder's own weights as a torch network: loading them, and what only torch can do."""

import logging
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sbertkit.encoder.backends.torch import TorchBackend, batch_tensors
from sbertkit.encoder.batching import BatchCollator
from sbertkit.encoder.cross_encoder import (
    check_scores,
    check_task,
    declared_activation,
    declared_prompts,
    head_of,
    not_a_cross_encoder,
    takes_head,
    with_new_head,
)
from sbertkit.encoder.fingerprint import computation, fingerprint
from sbertkit.encoder.layout import ModelFolder, read_model_folder
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.network import Network, without_hooks
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.prompts import Prompts, Warn, prompts_of_model
from sbertkit.encoder.resolve import resolve_options
from sbertkit.encoder.settings import (
    check_limit,
    check_similarity,
    choose_limit,
    choose_pooling,
    choose_postprocessors,
    lower_casing,
)
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.encoder.transformer import Transformer, load_transformer
from sbertkit.errors import InputError

logger = logging.getLogger(__name__)


class TorchModel:
    """A network with what has to be known to feed it.

    Attributes:
        spec: Tokenizer, prompts and limits.
        transformer: The pretrained encoder below the pooling.
        network: From token ids to vectors, in float32.
        device: Where the network is.
        settings: What the model's config_sentence_transformers.json has, also what is not used.
        used_parameters: The parameters that reach the vector, by name.
        warnings: What was logged of the model as it was loaded, without its name.
        version: How often the weights were changed in place.

    Raises:
        InputError: The parts do not suit each other, or the files lack a parameter that is used.
    """

    def __init__(
        self,
        transformer: Transformer,
        network: Network,
        spec: EncoderSpec,
        *,
        device: torch.device,
        settings: Mapping[str, Any],
    ) -> None:
        self.transformer = transformer
        self.network = network
        self.spec = spec
        self.device = device
        self.settings = settings
        self.warnings: tuple[str, ...] = ()
        self.version = 0
        self.used_parameters = self._find_used_parameters()
        network.to(device)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: the same tensors."""
        transformer, network = without_hooks(self.transformer, self.network)
        return {**self.__dict__, "transformer": transformer, "network": network}

    @property
    def postprocessors(self) -> list[nn.Module]:
        """The post-processing, in order."""
        return list(self.network.postprocessors)

    @property
    def postprocessors_before_normalization(self) -> list[nn.Module]:
        """The post-processing without a normalization at its end."""
        return self.postprocessors[:-1] if self.spec.normalizes else self.postprocessors

    @cached_property
    def fingerprint(self) -> str:
        """See `Encoder.fingerprint`."""
        return self.compute_fingerprint()

    def compute_fingerprint(self) -> str:
        """The fingerprint of the weights as they are, be it that they were changed in silence."""
        spec = self.spec
        # These keys are hashed as well: another name would be another fingerprint.
        settings: dict[str, Any] = {
            "network": computation(self.transformer.model.config),
            "pooling": spec.pooling,
            "layers": list(self.network.pooling.layers),
            "steps": [
                [module.st_name, module.config()]  # type: ignore[operator]  # a PostProcessor
                for module in self.network.postprocessors
            ],
            "prompts": spec.prompts._asdict(),
            "max_tokens": spec.max_tokens,
            "cut_left": spec.tokenizer.truncation_side == "left",
        }
        if spec.scores_pairs:
            settings |= {"task": spec.options.task, "activation": spec.activation}
        return fingerprint(self.used_parameters, spec.tokenizer.canonical_json(), settings)

    def set_max_tokens(self, limit: int) -> None:
        """Sets the token limit.

        Raises:
            InputError: One that the model cannot have.
        """
        check_limit(limit, self.spec.options.model, self.transformer, self.spec.tokenizer)
        self.spec = self.spec.with_limit(limit)
        self.__dict__.pop("fingerprint", None)

    def backend(self, precision: str = "fp32") -> TorchBackend:
        """The network, run by torch."""
        return TorchBackend(self.network, self.device, precision)

    def make_trainable(self) -> None:
        """Lets gradients reach the parameters that decide a vector, and no others.

        An unused pooler would only drift by weight decay, and stall distributed training.
        """
        for tensor in self.used_parameters.values():
            tensor.requires_grad_()

    def weights_changed(self) -> None:
        """Forgets what was known about the weights, after training has changed them in place."""
        self.version += 1
        self.__dict__.pop("fingerprint", None)

    def variant(
        self,
        pooling: Pooling,
        postprocessors: Sequence[nn.Module],
        transformer: Transformer | None = None,
    ) -> "TorchModel":
        """See `Encoder.variant`; also with another transformer of the same tokenizer."""
        transformer = transformer or self.transformer
        if pooling.needs_end_token:  # which its tokenizer may be given, and this one's not
            transformer = replace(transformer, tokenizer=deepcopy(transformer.tokenizer))
        network = Network(transformer, pooling, postprocessors)
        spec = _spec_of(transformer, network, self.spec.options, self.spec.prompts)
        spec = replace(spec, max_tokens=self.spec.max_tokens)
        return TorchModel(transformer, network, spec, device=self.device, settings=self.settings)

    def _find_used_parameters(self) -> dict[str, torch.Tensor]:
        # Long enough for what only longer texts use, such as the global bias of LongT5.
        tokens = self.spec.tokenize(self.spec.rows_of(["a " * 64]))
        batch = self.spec.collator.collate(tokens, np.array([0]))
        device = next(self.network.parameters()).device
        parameters = self.network.used_parameters(*batch_tensors(batch, device))
        missing = {f"transformer.{name}" for name in self.transformer.missing} & parameters.keys()
        if missing and self.spec.scores_pairs:
            raise not_a_cross_encoder(self.spec.options.model, f"no weights for {min(missing)}")
        if missing:
            raise InputError(
                f"the weights in {self.spec.options.model} lack {len(missing)} tensors that the "
                f"encoder needs, or have them in another size (such as {min(missing)}); they would "
                "be random: get the whole checkpoint with its own config.json"
            )
        return parameters


def load_torch_model(
    options: LoadOptions,
    device: torch.device,
    folder: Path | None = None,
    *,
    new_head: bool = False,
    trust_remote_code: bool = False,
) -> TorchModel:
    """The network of a model folder or hub name; see `Encoder.load`.

    Args:
        options: What is asked for.
        device: Where to.
        folder: That of the model where it is known; else its name is resolved.
        new_head: Make a cross-encoder of it, with a random head where it has none for one score.
        trust_remote_code: Run Python code that comes with the model.
    """
    if folder is None:
        folder = resolve_options(options)
    with library_errors(f"the model in {folder} cannot be loaded"):
        return _read_model(
            options, folder, device, new_head=new_head, trust_remote_code=trust_remote_code
        )


def _read_model(
    options: LoadOptions,
    folder: Path,
    device: torch.device,
    *,
    new_head: bool,
    trust_remote_code: bool,
) -> TorchModel:
    warnings: list[str] = []

    def warn(message: str) -> None:
        warnings.append(message)
        logger.warning("%s %s", options.model, message)

    declared = read_model_folder(folder)
    check_task(options, declared, new_head=new_head)
    with_head = takes_head(options, declared, new_head=new_head)
    transformer = load_transformer(
        declared.transformer,
        warn,
        with_head=with_head,
        labels=1 if new_head else None,
        global_attention=declared.global_attention and not with_head,
        trust_remote_code=trust_remote_code,
    )
    if new_head:
        transformer = with_new_head(transformer)
    if declared.lower_case:
        lower_casing(transformer.tokenizer)
    if with_head:
        network = Network(transformer, head_of(options, transformer), ())
    else:
        network = _network_of(options, declared, transformer, warn)
    prompts = options.prompts
    if options.task == "rerank":
        prompts = declared_prompts(options.model, declared.declared)
    elif prompts is None:
        prompts = prompts_of_model(options.model, declared.declared, warn)
    spec = _spec_of(transformer, network, options, prompts)
    limit = choose_limit(options, declared, transformer, spec.tokenizer, warn)
    spec = replace(spec, max_tokens=limit)
    if options.task == "rerank":
        activation = declared_activation(declared.declared, transformer.model.config, warn)
        spec = replace(spec, activation=activation)
    model = TorchModel(transformer, network, spec, device=device, settings=declared.settings)
    if options.task == "embed":
        check_similarity(options, declared.declared, warn, normalizes=spec.normalizes)
    model.warnings = tuple(warnings)
    return model


def _network_of(
    options: LoadOptions, declared: ModelFolder, transformer: Transformer, warn: Warn
) -> Network:
    """The network that is asked for, of a model's parts."""
    pooling = choose_pooling(options, declared, transformer, warn)
    postprocessors = choose_postprocessors(options, declared, transformer.hidden_size)
    network = Network(transformer, pooling, postprocessors)
    if options.task == "rerank":
        check_scores(options, network)
    return network


def _spec_of(
    transformer: Transformer, network: Network, options: LoadOptions, prompts: Prompts
) -> EncoderSpec:
    """The spec of a network, still without a token limit."""
    pooling = network.pooling
    pairs = options.task == "rerank"
    tokenizer = Tokenizer(
        transformer.tokenizer, append_end=pooling.needs_end_token and not pairs, pairs=pairs
    )
    return EncoderSpec(
        options=options,
        name=options.model,
        tokenizer=tokenizer,
        collator=BatchCollator(
            tokenizer.pad_id,
            "left" if transformer.pads_left else "right",
            tokenizer.special,
            tokenizer.uses_token_types and transformer.takes_token_types,
            transformer.padded_to,
        ),
        prompts=prompts,
        max_tokens=None,
        pooling=pooling.name,
        normalizes=network.normalizes,
        dim=network.dim,
    )
