"""An encoder behind which stands a torch network: its fingerprint, and which backend runs it."""

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sbertkit.encoder.backends import Backend
from sbertkit.encoder.backends.torch import TorchBackend, choose_device
from sbertkit.encoder.batching import Padder
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.fingerprint import fingerprint
from sbertkit.encoder.layout import read_model_folder
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.network import Network, without_hooks
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.postprocessors import Normalize
from sbertkit.encoder.prompts import Prompts, prompts_of_model
from sbertkit.encoder.resolve import resolve_model
from sbertkit.encoder.settings import (
    check_limit,
    check_similarity,
    choose_limit,
    choose_pooling,
    choose_steps,
    lower_casing,
)
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.encoder.transformer import Transformer, load_transformer
from sbertkit.errors import InputError, MissingDependency, StorageError

logger = logging.getLogger(__name__)

GRAPH_FROM = 10_000
"""Texts from which making a graph first is faster than torch; it takes some seconds."""
CACHED_FROM = 1_000
"""Texts from which a graph that was made before is faster; to read it takes part of a second."""


class TorchSource:
    """Runs and describes a network.

    Attributes:
        transformer: The encoder below it.
        network: From token ids to vectors, in float32.
        dim: Size of a vector.
        settings: What config_sentence_transformers.json of the model's folder has.
    """

    def __init__(
        self,
        transformer: Transformer,
        network: Network,
        options: LoadOptions,
        settings: Mapping[str, Any],
    ) -> None:
        self.transformer = transformer
        self.settings = settings
        self.network = network
        self.dim = network.dim
        self._options = options
        self._device = choose_device(options.device)
        self._precision = options.precision
        self._contributing: dict[str, torch.Tensor] = {}
        self._torch: Backend | None = None
        self._graph: Backend | None = None
        self._graph_allowed = options.backend != "torch"
        self._choosing = threading.RLock()
        self._check_choice()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: the same tensors; it makes its own backends."""
        transformer, network = without_hooks(self.transformer, self.network)
        return {
            **self.__dict__,
            "transformer": transformer,
            "network": network,
            "_choosing": None,
            "_torch": None,
            "_graph": None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_choosing": threading.RLock()})

    @property
    def pooling(self) -> str:
        """Name of the pooling."""
        return self.network.pooling.name

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        steps = self.network.steps
        return len(steps) > 0 and isinstance(steps[-1], Normalize)

    @property
    def device(self) -> str:
        """The kind of device that it runs on."""
        return self._device.type

    @property
    def contributing(self) -> dict[str, torch.Tensor]:
        """The tensors that reach the vector, by name."""
        return self._contributing

    def check_weights(self, encoder: Encoder) -> None:
        """Finds the tensors that reach the vector; those that the files lack are a refusal.

        Raises:
            InputError: One of them is lacking.
        """
        # Long enough for what only longer texts use, such as the global bias of LongT5.
        tokens = encoder.tokenizer.tokenize(["a " * 64], encoder.max_tokens)
        batch = encoder.padder.pad(tokens, np.array([0]))
        device = next(self.network.parameters()).device
        tensors = self.network.contributing_tensors(
            torch.from_numpy(batch.input_ids).to(device),
            torch.from_numpy(batch.mask).to(device),
            None if batch.types is None else torch.from_numpy(batch.types).to(device),
        )
        lost = {f"transformer.{name}" for name in self.transformer.missing} & tensors.keys()
        if lost:
            raise InputError(
                f"the weights in {self._options.model} lack {len(lost)} tensors that the encoder "
                f"needs, or have them in another size (such as {min(lost)}); they would be random: "
                "get the whole checkpoint with its own config.json"
            )
        self._contributing = tensors
        self.network.to(self._device)

    def fingerprint(self, encoder: Encoder) -> str:
        """See `Encoder.fingerprint`."""
        steps = [
            [step.published_name, step.config()]  # type: ignore[operator]  # a Step
            for step in self.network.steps
        ]
        settings: dict[str, Any] = {
            "pooling": self.pooling,
            "layers": list(self.network.pooling.layers),
            "steps": steps,
            "prompts": encoder.prompts._asdict(),
            "max_tokens": encoder.max_tokens,
            "cut_left": encoder.tokenizer.cuts_left,
        }
        return fingerprint(self._contributing, encoder.tokenizer.canonical_json(), settings)

    def precision(self, encoder: Encoder) -> str:
        """What it computes in; ``auto`` is decided at the first call, once a machine and model."""
        with self._choosing:
            if self._precision == "auto":
                from sbertkit.encoder.exports.auto_precision import choose_precision

                self._precision = choose_precision(encoder, self.device)
            return self._precision

    def backend(self, encoder: Encoder, texts: int) -> Backend:
        """The backend for a job.

        ``auto`` takes a graph on the CPU once a job is long enough to make one first.

        Args:
            encoder: The encoder that this is the source of.
            texts: How many texts there are at least.
        """
        with self._choosing:
            if self._graph is None and self._graph_serves(encoder, texts):
                self._graph = self._open_graph(encoder)
            if self._graph is not None:
                return self._graph
            if self._torch is None:
                self._torch = TorchBackend(self.network, self._device, self.precision(encoder))
            return self._torch

    def check_limit(self, encoder: Encoder, limit: int) -> None:
        """Refuses a token limit that the model cannot have.

        Raises:
            InputError: Such a limit.
        """
        check_limit(limit, self._options.model, self.transformer, encoder.tokenizer)

    def graph_folder(self, encoder: Encoder) -> Path:
        """See `Encoder.graph_folder`."""
        from sbertkit.encoder.exports.cache import cached_folder

        with self._choosing:
            return cached_folder(encoder, "fp32")

    def weights_changed(self) -> None:
        """Forgets graphs and half-precision copies of weights that training has changed."""
        self._graph = None
        self._torch = None
        if self._options.backend == "auto":
            self._graph_allowed = False  # a graph of weights that change would serve only once

    def _needs_graph(self, encoder: Encoder) -> bool:
        """Whether nothing else than a graph will do."""
        return self.precision(encoder) == "int8" or self._options.backend in ("onnx", "openvino")

    def _graph_serves(self, encoder: Encoder, texts: int) -> bool:
        if self._needs_graph(encoder):
            return True
        if not self._graph_allowed or self.device != "cpu" or texts < min(CACHED_FROM, GRAPH_FROM):
            return False
        from sbertkit.encoder.exports.cache import is_cached
        from sbertkit.encoder.exports.runtimes import engines_for

        if not engines_for(self.precision(encoder), "auto"):
            return False
        return texts >= GRAPH_FROM or is_cached(encoder, "fp32")

    def _open_graph(self, encoder: Encoder) -> Backend | None:
        """The graph in the fastest library that runs it; ``None`` if torch has to do.

        Raises:
            InputError: Nothing runs it, and nothing else will do.
            MissingDependency: So is it, since a library is missing.
            StorageError: So is it, since the graph cannot be kept.
        """
        from sbertkit.encoder.exports.runtimes import engines_for

        precision = self.precision(encoder)
        engines = engines_for(precision, self._options.backend) or ("onnx",)
        for engine in engines:
            try:
                return self._open_engine(encoder, engine, precision)
            except (InputError, MissingDependency, StorageError) as error:
                if self._needs_graph(encoder) and engine == engines[-1]:
                    raise
                logger.info("no graph with %s: %s", engine, error)
        self._graph_allowed = False
        return None

    def _open_engine(self, encoder: Encoder, engine: str, precision: str) -> Backend:
        from sbertkit.encoder.exports.cache import cached_backend
        from sbertkit.encoder.exports.probes import FEW_PROBES, probe_vectors
        from sbertkit.encoder.exports.runtimes import check_equal

        backend = cached_backend(encoder, precision, engine)
        if engine != "onnx":  # with which every graph is compared when it is made or found
            network = TorchBackend(self.network, self._device)
            expected = probe_vectors(encoder, network, FEW_PROBES)
            found = probe_vectors(encoder, backend, FEW_PROBES)
            check_equal(expected, found, precision, self._options.model)
        return backend

    def _check_choice(self) -> None:
        """Refuses what cannot be together.

        Raises:
            InputError: Such options.
        """
        options = self._options
        graph = options.backend in ("onnx", "openvino") or options.precision == "int8"
        if options.precision == "int8" and options.backend == "torch":
            raise InputError("precision int8 needs backend onnx, openvino or auto, not torch")
        if graph and self.device != "cpu":
            raise InputError(
                f"backends onnx and openvino and precision int8 run on the CPU, not on "
                f"{self.device}; choose device cpu (--device cpu)"
            )
        if options.backend == "onnx" and options.precision in ("bf16", "fp16"):
            raise InputError(
                f"backend onnx computes in fp32 or int8, not in {options.precision}; choose another"
            )
        if options.backend == "openvino" and options.precision == "fp16":
            raise InputError("backend openvino computes in fp32, bf16 or int8, not in fp16")
        if options.precision == "fp16" and self.device == "cpu":
            raise InputError("precision fp16 needs a GPU; on the CPU choose bf16, int8 or auto")


def load_torch_encoder(options: LoadOptions, *, trust_remote_code: bool = False) -> Encoder:
    """The encoder of a model's own weights; see `Encoder.load`."""
    folder = resolve_model(options.model, options.revision)
    with library_errors(f"the model in {folder} cannot be loaded"):
        return _read_encoder(options, folder, trust_remote_code=trust_remote_code)


def _read_encoder(options: LoadOptions, folder: Path, *, trust_remote_code: bool) -> Encoder:
    declared = read_model_folder(folder)
    transformer = load_transformer(declared.transformer, trust_remote_code=trust_remote_code)
    if declared.lower_case:
        lower_casing(transformer.tokenizer)
    pooling = choose_pooling(options, declared, transformer)
    tokenizer = Tokenizer(transformer.tokenizer, append_end=pooling.name == "eos")
    prompts = options.prompts
    if prompts is None:
        prompts = prompts_of_model(options.model, declared.declared)
    encoder = _assemble(
        transformer,
        Network(transformer, pooling, choose_steps(options, declared)),
        tokenizer,
        options,
        prompts,
        choose_limit(options, declared, transformer, tokenizer),
        declared.settings,
    )
    check_similarity(options, declared.declared, normalizes=encoder.normalizes)
    return encoder


def variant_of(encoder: Encoder, pooling: Pooling, steps: Sequence[nn.Module]) -> Encoder:
    """See `Encoder.variant`."""
    transformer = encoder.transformer
    return _assemble(
        transformer,
        Network(transformer, pooling, steps),
        Tokenizer(transformer.tokenizer, append_end=pooling.name == "eos"),
        encoder.options,
        encoder.prompts,
        encoder.max_tokens,
        encoder.settings,
    )


def _assemble(
    transformer: Transformer,
    network: Network,
    tokenizer: Tokenizer,
    options: LoadOptions,
    prompts: Prompts,
    max_tokens: int | None,
    settings: Mapping[str, Any],
) -> Encoder:
    source = TorchSource(transformer, network, options, settings)
    padder = Padder(
        tokenizer.pad_id,
        "left" if transformer.pads_left else "right",
        tokenizer.special,
        tokenizer.gives_types and transformer.takes_types,
    )
    encoder = Encoder(
        source, tokenizer, padder, options=options, prompts=prompts, max_tokens=max_tokens
    )
    source.check_weights(encoder)
    return encoder
