"""The encoder: texts in, vectors out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sbertkit.arguments import output_folder, whole_number
from sbertkit.encoder.backends import Backend
from sbertkit.encoder.backends.torch import TorchBackend, choose_device
from sbertkit.encoder.batching import Padder
from sbertkit.encoder.encoding import EncodingRun, RunSettings, length_of
from sbertkit.encoder.fingerprint import fingerprint
from sbertkit.encoder.layout import ModelFolder, read_model_folder
from sbertkit.encoder.loading import (
    LoadOptions,
    choose_limit,
    choose_pooling,
    choose_steps,
    lower_casing,
)
from sbertkit.encoder.network import Network
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.postprocess import Normalize
from sbertkit.encoder.prompts import Prompts, prompts_from, prompts_of_model
from sbertkit.encoder.report import Encoded
from sbertkit.encoder.resolve import resolve_model
from sbertkit.encoder.saving import save_encoder
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.encoder.transformer import Transformer, load_transformer
from sbertkit.errors import InputError, InputTypeError
from sbertkit.metrics.cosine import checked_vectors, unit_rows

Kind = Literal["document", "query"]
Vectors = npt.NDArray[np.float32]


class Encoder:
    """A sentence encoder; made by `Encoder.load`.

    Attributes:
        options: What it was loaded with, enough to load it again.
        network: The torch module behind it.
        tokenizer: Its tokenizer.
        prompts: What is put before queries and documents.
        max_tokens: Tokens a text may have, special tokens and prompt counted; ``None``: no limit.
        dim: Size of a vector.
        padder: Builds its padded batches.
    """

    def __init__(
        self,
        transformer: Transformer,
        network: Network,
        tokenizer: Tokenizer,
        *,
        options: LoadOptions,
        prompts: Prompts,
        max_tokens: int | None,
    ) -> None:
        self.options = options
        self.network = network
        self.tokenizer = tokenizer
        self.prompts = prompts
        self.max_tokens = max_tokens
        self.dim = network.dim
        self.transformer = transformer
        self.padder = Padder(
            tokenizer.pad_id,
            "left" if transformer.pads_left else "right",
            tokenizer.special,
            tokenizer.gives_types and transformer.takes_types,
        )
        self._contributing = self._find_contributing()
        self._backend: Backend = TorchBackend(network, choose_device(options.device))

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str],
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_tokens: int | None = None,
        prompts: Mapping[str, str] | None = None,
        backend: str = "auto",
        precision: str = "fp32",
        device: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> "Encoder":
        """An encoder from a folder or a hub name; ``None`` means: as the model declares.

        Args:
            model: A sentence-transformers or Hugging Face folder, a hub name, or
                ``all-MiniLM-L6-v2``, which is taken from the bundled package when installed.
            pooling: ``cls``, ``mean``, ``max``, ``eos``, ``mean_sqrt_len``, ``weighted_mean`` or
                ``first_last``. A model that declares none gets ``mean`` and a warning.
            normalize: Whether vectors get unit length. A plain Hugging Face encoder: yes.
            max_tokens: Tokens a text may have, special tokens and prompt counted.
            prompts: Texts put before, under the keys ``query`` and ``document``.
            backend: ``auto`` or ``torch``.
            precision: ``fp32``.
            device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
            revision: Branch, tag or commit on the hub.
            trust_remote_code: Run Python code that comes with the model.

        Raises:
            InputError: The model is not found or not supported, or an argument does not suit it.
        """
        options = LoadOptions(
            model=_name_of(model),
            pooling=pooling,
            normalize=normalize,
            max_tokens=None if max_tokens is None else whole_number("max_tokens", max_tokens),
            prompts=None if prompts is None else prompts_from(prompts),
            backend=backend,
            precision=precision,
            device=device,
            revision=revision,
        )
        folder = resolve_model(options.model, revision)
        declared = read_model_folder(folder)
        transformer = load_transformer(declared.transformer, trust_remote_code=trust_remote_code)
        return cls._assemble(options, declared, transformer)

    @classmethod
    def _assemble(
        cls, options: LoadOptions, declared: ModelFolder, transformer: Transformer
    ) -> "Encoder":
        if declared.lower_case:
            lower_casing(transformer.tokenizer)
        chosen = choose_pooling(options, declared, transformer)
        tokenizer = Tokenizer(transformer.tokenizer, append_end=chosen.name == "eos")
        return cls(
            transformer,
            Network(transformer, chosen, choose_steps(options, declared)),
            tokenizer,
            options=options,
            prompts=(
                prompts_of_model(options.model, declared.settings)
                if options.prompts is None
                else options.prompts
            ),
            max_tokens=choose_limit(options, declared, transformer, tokenizer),
        )

    def __repr__(self) -> str:
        limit = self.max_tokens
        return (
            f"Encoder({self.options.model!r}, {self.pooling}, dim={self.dim}, max_tokens={limit})"
        )

    @property
    def pooling(self) -> str:
        """Name of the pooling."""
        return self.network.pooling.name

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        return bool(self.steps) and isinstance(self.steps[-1], Normalize)

    @property
    def steps(self) -> list[nn.Module]:
        """The post-processing, in order."""
        return list(self.network.steps)

    @property
    def steps_before_normalization(self) -> list[nn.Module]:
        """The post-processing without a normalization at its end."""
        return self.steps[:-1] if self.normalizes else self.steps

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a text's vector: weights, tokenizer and settings.

        Loading, saving and copying keep it; device, backend and precision are not part of it.
        """
        settings: dict[str, Any] = {
            "pooling": self.pooling,
            "layers": list(self.network.pooling.layers),
            "steps": [[step.published_name, step.config()] for step in self.steps],  # type: ignore[operator]
            "prompts": self.prompts._asdict(),
            "max_tokens": self.max_tokens,
            "cut_left": self.tokenizer.cuts_left,
        }
        return fingerprint(self._contributing, self.tokenizer.canonical_json(), settings)

    def encode(
        self,
        texts: Iterable[str] | str,
        *,
        kind: Kind = "document",
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Vectors:
        """Vectors ``(n, dim)`` float32 in the order of the texts; ``(dim,)`` for a bare string.

        Cut texts are said once through `logging`; `encode_with_report` tells which.

        Args:
            texts: Any iterable of strings: a list, a generator, a column of a table.
            kind: ``query`` puts the model's query prompt first, ``document`` its document prompt.
            batch_tokens: Tokens a batch, padding included; ``None`` for what suits the device.
            progress: Show progress on standard error.

        Raises:
            InputError: A blank query, or vectors that are not finite.
            InputTypeError: A row is not a string; the message names the row and the type.
        """
        encoded = self.encode_with_report(
            texts, kind=kind, batch_tokens=batch_tokens, progress=progress
        )
        return encoded.vectors

    def encode_with_report(
        self,
        texts: Iterable[str] | str,
        *,
        kind: Kind = "document",
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Encoded:
        """As `encode`, with a report on truncated, blank, repaired and duplicate texts."""
        run = self.start_run(kind=kind, batch_tokens=batch_tokens)
        if isinstance(texts, str):
            (vectors,) = run.vectors([texts])
            return Encoded(vectors[0], run.report())
        result = np.empty((length_of(texts) or 0, self.dim), np.float32)
        rows = 0
        for vectors in run.vectors(texts, progress=progress):
            end = rows + len(vectors)
            if end > len(result):
                # Growing in place spares a second copy of the whole result.
                result.resize((max(end, 2 * len(result)), self.dim), refcheck=False)
            result[rows:end] = vectors
            rows = end
        if rows < len(result):
            result.resize((rows, self.dim), refcheck=False)
        return Encoded(result, run.report())

    def start_run(self, *, kind: Kind = "document", batch_tokens: int | None = None) -> EncodingRun:
        """A run whose `vectors(texts)` come one pool at a time, for more texts than memory holds.

        Raises:
            InputError: An unknown kind or a batch without room.
            InputTypeError: `batch_tokens` is no whole number.
        """
        if kind not in ("document", "query"):
            raise InputError(f"kind must be 'document' or 'query', not {kind!r}")
        if batch_tokens is None:
            batch_tokens = self._backend.batch_tokens
        return EncodingRun(
            self.tokenizer,
            self.padder,
            self._backend,
            dim=self.dim,
            settings=RunSettings(
                max_tokens=self.max_tokens,
                prompt=self.prompts.query if kind == "query" else self.prompts.document,
                blank_allowed=kind != "query",
                batch_tokens=whole_number("batch_tokens", batch_tokens),
            ),
        )

    def similarity(
        self, a: Sequence[str] | npt.ArrayLike, b: Sequence[str] | npt.ArrayLike
    ) -> Vectors:
        """The cosine matrix ``(len(a), len(b))`` of two lists of texts or arrays of vectors.

        Raises:
            InputError: Vectors of another size than this encoder's, or not finite.
        """
        first, second = self._unit_vectors(a), self._unit_vectors(b)
        return first @ second.T

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder that `SentenceTransformer(folder)` loads and that gives the same vectors.

        Raises:
            InputError: The folder holds something that is not a model saved by sbertkit.
            StorageError: The disk is full or a permission is missing.
        """
        save_encoder(self, output_folder(folder))

    def make_trainable(self) -> None:
        """Lets gradients reach the tensors that decide a vector, and no others.

        An unused pooler would only drift by weight decay, and stall distributed training.
        """
        for tensor in self._contributing.values():
            tensor.requires_grad_()

    def variant(self, pooling: Pooling, steps: Sequence[nn.Module]) -> "Encoder":
        """An encoder of the same weights and tokenizer with another pooling and post-processing.

        Args:
            pooling: From token vectors to a text's vector.
            steps: What follows, in order (see `sbertkit.encoder.postprocess`).

        Raises:
            InputError: They do not suit the model.
        """
        return Encoder(
            self.transformer,
            Network(self.transformer, pooling, steps),
            Tokenizer(self.transformer.tokenizer, append_end=pooling.name == "eos"),
            options=self.options,
            prompts=self.prompts,
            max_tokens=self.max_tokens,
        )

    def weights_changed(self) -> None:
        """Forgets what was known about the weights, after training has changed them in place."""
        self.__dict__.pop("fingerprint", None)

    def _unit_vectors(self, rows: Sequence[str] | npt.ArrayLike) -> Vectors:
        if isinstance(rows, str):
            raise InputTypeError(
                "similarity takes lists of texts; found a bare string, put it in []"
            )
        if _holds_numbers(rows):
            try:
                vectors = np.atleast_2d(np.asarray(rows))
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"expected texts or vectors of size {self.dim}, found rows that form no array: "
                    f"{error}"
                ) from error
        else:
            vectors = self.encode(rows)  # type: ignore[arg-type]  # checked row by row there
        if vectors.ndim != 2 or vectors.shape[1] != self.dim:
            raise InputError(
                f"expected vectors of size {self.dim}, found an array of shape {vectors.shape}"
            )
        return unit_rows(checked_vectors(vectors)).astype(np.float32)

    def _find_contributing(self) -> dict[str, torch.Tensor]:
        """The tensors that reach the vector; those that the files lack are a refusal."""
        # Long enough for what only longer texts use, such as the global bias of LongT5.
        tokens = self.tokenizer.tokenize(["a " * 64], self.max_tokens)
        batch = self.padder.pad(tokens, np.array([0]))
        tensors = self.network.contributing_tensors(
            torch.from_numpy(batch.input_ids),
            torch.from_numpy(batch.mask),
            None if batch.types is None else torch.from_numpy(batch.types),
        )
        lost = {f"transformer.{name}" for name in self.transformer.missing} & tensors.keys()
        if lost:
            raise InputError(
                f"the weights in {self.options.model} lack {len(lost)} tensors that the encoder "
                f"needs, or have them in another size (such as {min(lost)}); they would be random: "
                "get the whole checkpoint with its own config.json"
            )
        return tensors


def _name_of(model: object) -> str:
    """The name or path as a string."""
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        if isinstance(name, str):
            return name
    raise InputTypeError(
        f"model must be a name or a path, found {type(model).__name__}; "
        "pass a hub name or the path of a model folder"
    )


def _holds_numbers(rows: object) -> bool:
    """Whether rows are vectors, not texts: an array of numbers, or a list that begins with one."""
    if hasattr(rows, "__array__"):
        return np.asarray(rows).dtype.kind in "fiu"
    return isinstance(rows, Sequence) and len(rows) > 0 and not isinstance(rows[0], str)
