"""The encoder: texts in, vectors out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder, whole_number
from sbertkit.arrays import Vectors
from sbertkit.encoder.backends import Backend
from sbertkit.encoder.batching import Padder
from sbertkit.encoder.encoding import EncodingRun, RunSettings, length_of
from sbertkit.encoder.exports.manifest import is_graph_folder
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts, prompts_from
from sbertkit.encoder.report import Encoded
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError, InputTypeError
from sbertkit.metrics.cosine import checked_vectors, unit_rows

if TYPE_CHECKING:
    import torch
    from torch import nn

    from sbertkit.encoder.network import Network
    from sbertkit.encoder.pooling import Pooling
    from sbertkit.encoder.torch_runtime import TorchSource
    from sbertkit.encoder.transformer import Transformer

Kind = Literal["document", "query"]


class Source(Protocol):
    """What stands behind an encoder: a torch network, or a graph exported from one."""

    dim: int
    """Size of a vector."""

    @property
    def pooling(self) -> str:
        """Name of the pooling."""
        ...

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        ...

    @property
    def device(self) -> str:
        """The kind of device that it runs on."""
        ...

    def fingerprint(self, encoder: "Encoder", /) -> str:
        """See `Encoder.fingerprint`."""
        ...

    def precision(self, encoder: "Encoder", /) -> str:
        """What it computes in."""
        ...

    def check_limit(self, encoder: "Encoder", /, limit: int) -> None:
        """Refuses a token limit that it cannot have."""
        ...

    def graph_folder(self, encoder: "Encoder", /) -> Path:
        """See `Encoder.graph_folder`."""
        ...

    def backend(self, encoder: "Encoder", /, texts: int) -> Backend:
        """The backend for a job of at least so many texts."""
        ...


class Encoder:
    """A sentence encoder; made by `Encoder.load`.

    Attributes:
        options: What it was loaded with, enough to load it again.
        tokenizer: Its tokenizer.
        prompts: What is put before queries and documents.
        dim: Size of a vector.
        padder: Builds its padded batches.
    """

    def __init__(
        self,
        source: Source,
        tokenizer: Tokenizer,
        padder: Padder,
        *,
        options: LoadOptions,
        prompts: Prompts,
        max_tokens: int | None,
    ) -> None:
        self.options = options
        self.tokenizer = tokenizer
        self.padder = padder
        self.prompts = prompts
        self._max_tokens = max_tokens
        self.dim = source.dim
        self._source = source

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
            model: A sentence-transformers, Hugging Face or exported folder, a hub name, or
                ``all-MiniLM-L6-v2``, which is taken from the bundled package when installed.
            pooling: ``cls``, ``mean``, ``max``, ``eos``, ``mean_sqrt_len``, ``weighted_mean`` or
                ``first_last``. A model that declares none gets ``mean`` and a warning.
            normalize: Whether vectors get unit length. A plain Hugging Face encoder: yes.
            max_tokens: Tokens a text may have, special tokens and prompt counted.
            prompts: Texts put before, under the keys ``query`` and ``document``.
            backend: ``torch``; ``onnx`` or ``openvino``, which run a graph on the CPU; or ``auto``:
                on the CPU a graph for a job that is long enough to make one first, or to read one
                that was made before, else torch.
            precision: ``fp32``, exact; ``bf16``; ``fp16`` on a GPU; ``int8`` on a CPU; or
                ``auto``, the fastest of these whose cosine to fp32 is at least 0.9995 on every
                probe text.
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
        if is_graph_folder(Path(options.model)):
            from sbertkit.encoder.exports.exported import load_graph_encoder

            return load_graph_encoder(options)
        from sbertkit.encoder.torch_runtime import load_torch_encoder

        return load_torch_encoder(options, trust_remote_code=trust_remote_code)

    def __repr__(self) -> str:
        limit = self.max_tokens
        return (
            f"Encoder({self.options.model!r}, {self.pooling}, dim={self.dim}, max_tokens={limit})"
        )

    @property
    def max_tokens(self) -> int | None:
        """Tokens a text may have, special tokens and prompt counted; ``None``: no limit.

        Setting it changes the fingerprint, as loading with another limit does.

        Raises:
            InputError: More than the model has positions, no room beside the special tokens, or
                another limit for an exported graph.
            InputTypeError: Set to something else than a whole number.
        """
        return self._max_tokens

    @max_tokens.setter
    def max_tokens(self, limit: int | None) -> None:
        limit = whole_number("max_tokens", limit)
        self._source.check_limit(self, limit)
        self._max_tokens = limit
        self.options = replace(self.options, max_tokens=limit)
        self.__dict__.pop("fingerprint", None)

    @property
    def pooling(self) -> str:
        """Name of the pooling."""
        return self._source.pooling

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        return self._source.normalizes

    @property
    def device(self) -> str:
        """The kind of device that it runs on: ``cpu``, ``cuda`` or ``mps``."""
        return self._source.device

    @property
    def precision(self) -> str:
        """What it computes in; what ``auto`` stands for is measured when first asked for."""
        return self._source.precision(self)

    @property
    def network(self) -> "Network":
        """The torch module behind it.

        Raises:
            InputError: It is an exported graph.
        """
        return self._torch_source().network

    @property
    def transformer(self) -> "Transformer":
        """The pretrained encoder below the pooling.

        Raises:
            InputError: It is an exported graph.
        """
        return self._torch_source().transformer

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the model's config_sentence_transformers.json has, also what is not used here.

        Raises:
            InputError: It is an exported graph.
        """
        return self._torch_source().settings

    @property
    def contributing(self) -> "dict[str, torch.Tensor]":
        """The tensors that reach the vector, by name.

        Raises:
            InputError: It is an exported graph.
        """
        return self._torch_source().contributing

    @property
    def steps(self) -> "list[nn.Module]":
        """The post-processing, in order."""
        return list(self.network.steps)

    @property
    def steps_before_normalization(self) -> "list[nn.Module]":
        """The post-processing without a normalization at its end."""
        return self.steps[:-1] if self.normalizes else self.steps

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a text's vector: weights, tokenizer and settings.

        Loading, saving, copying and exporting keep it; device, backend and precision are not part
        of it.
        """
        return self._source.fingerprint(self)

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
        if batch_tokens is not None:
            batch_tokens = whole_number("batch_tokens", batch_tokens)
        return EncodingRun(
            self.tokenizer,
            self.padder,
            lambda texts: self._source.backend(self, texts),
            dim=self.dim,
            settings=RunSettings(
                max_tokens=self.max_tokens,
                prompt=self.prompts.query if kind == "query" else self.prompts.document,
                blank_allowed=kind != "query",
                batch_tokens=batch_tokens,
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
            InputError: The folder holds something that is not a model saved by sbertkit, or this is
                an exported graph.
            StorageError: The disk is full or a permission is missing.
        """
        from sbertkit.encoder.saving import save_encoder

        save_encoder(self, output_folder(folder))

    def graph_folder(self) -> Path:
        """A folder with this encoder as one graph, not to be changed; made where there is none yet.

        It is kept in the user's cache, in float32; that of an exported graph is its own.

        Raises:
            InputError: The encoder cannot be exported.
            MissingDependency: onnxruntime or onnx is missing.
            StorageError: The cache folder cannot be written.
        """
        return self._source.graph_folder(self)

    def make_trainable(self) -> None:
        """Lets gradients reach the tensors that decide a vector, and no others.

        An unused pooler would only drift by weight decay, and stall distributed training.
        """
        for tensor in self.contributing.values():
            tensor.requires_grad_()

    def variant(self, pooling: "Pooling", steps: "Sequence[nn.Module]") -> "Encoder":
        """An encoder of the same weights and tokenizer with another pooling and post-processing.

        Args:
            pooling: From token vectors to a text's vector.
            steps: What follows, in order (see `sbertkit.encoder.postprocessors`).

        Raises:
            InputError: They do not suit the model, or this is an exported graph.
        """
        from sbertkit.encoder.torch_runtime import variant_of

        return variant_of(self, pooling, steps)

    def weights_changed(self) -> None:
        """Forgets what was known about the weights, after training has changed them in place."""
        self.__dict__.pop("fingerprint", None)
        self._torch_source().weights_changed()

    def _torch_source(self) -> "TorchSource":
        """The source, for what only a torch network can do.

        Raises:
            InputError: It is an exported graph.
        """
        if not hasattr(self._source, "network"):
            raise InputError(
                f"{self.options.model} is an exported graph, which encodes and cannot be changed, "
                "trained or saved; load the model that it was made from"
            )
        return self._source  # type: ignore[return-value]  # the only one that has a network

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
    """Whether rows are vectors: an array of numbers, or a list with neither text nor gap."""
    if hasattr(rows, "__array__"):
        return np.asarray(rows).dtype.kind in "fiu"
    return (
        isinstance(rows, Sequence)
        and len(rows) > 0
        and not any(row is None or isinstance(row, str) for row in rows)
    )
