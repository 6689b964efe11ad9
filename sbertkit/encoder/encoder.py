"""The encoder: texts in, vectors out."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sbertkit.arguments import output_folder, whole_number
from sbertkit.arrays import Vectors
from sbertkit.encoder.backends import BACKENDS
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.exports.manifest import ExportManifest, is_export_folder
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts, prompts_from
from sbertkit.encoder.protocols import Kind
from sbertkit.encoder.report import Encoded
from sbertkit.encoder.rows import length_of
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError, InputTypeError
from sbertkit.metrics.cosine import checked_vectors, unit_rows

if TYPE_CHECKING:
    from torch import nn

    from sbertkit.data.sampling import Texts
    from sbertkit.encoder.cached_runtime import CachedRuntime
    from sbertkit.encoder.exports.exported import ExportedRuntime
    from sbertkit.encoder.pooling import Pooling
    from sbertkit.encoder.torch_model import TorchModel
    from sbertkit.encoder.torch_runtime import TorchRuntime


class Encoder:
    """A sentence encoder; made by `Encoder.load`."""

    def __init__(self, runtime: "TorchRuntime | ExportedRuntime | CachedRuntime") -> None:
        self._runtime = runtime

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str],
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        max_tokens: int | None = None,
        dim: int | None = None,
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
            dim: Size that vectors are truncated to, for models that were trained for it
                (Matryoshka); they get unit length again where the model normalizes.
            prompts: Texts put before, under the keys ``query`` and ``document``.
            backend: ``torch``; ``onnx`` or ``openvino``, which run an export on the CPU; or
                ``auto``: on the CPU the export that is in the user's cache, if any, found without
                loading torch; one that is made first for a long job; else torch.
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
            dim=None if dim is None else whole_number("dim", dim),
            prompts=None if prompts is None else prompts_from(prompts),
            backend=backend,
            precision=precision,
            device=device,
            revision=revision,
        )
        if is_export_folder(Path(options.model)):
            return cls.load_export(options)
        from sbertkit.encoder.cached_runtime import load_runtime

        return cls(load_runtime(options, trust_remote_code=trust_remote_code))

    @classmethod
    def load_export(cls, options: LoadOptions, *, hashed: bool = False) -> "Encoder":
        """The encoder of an exported folder.

        Args:
            options: The model is the folder.
            hashed: Whether the caller has compared its files with hashes already.

        Raises:
            InputError: The folder is damaged, or asked to be something else than was exported.
        """
        from sbertkit.encoder.exports.exported import load_exported_runtime

        return cls(load_exported_runtime(options, hashed=hashed))

    def __repr__(self) -> str:
        limit = self.max_tokens
        return (
            f"Encoder({self.options.model!r}, {self.pooling}, dim={self.dim}, max_tokens={limit})"
        )

    @property
    def spec(self) -> EncoderSpec:
        """What is known of it besides its weights."""
        return self._runtime.spec

    @property
    def options(self) -> LoadOptions:
        """What it was loaded with, enough to load it again."""
        return self.spec.options

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        return self.spec.tokenizer

    @property
    def prompts(self) -> Prompts:
        """What is put before queries and documents."""
        return self.spec.prompts

    @property
    def dim(self) -> int:
        """Size of a vector."""
        return self.spec.dim

    @property
    def max_tokens(self) -> int | None:
        """Tokens a text may have, special tokens and prompt counted; ``None``: no limit.

        Setting it changes the fingerprint, as loading with another limit does.

        Raises:
            InputError: More than the model has positions, no room beside the special tokens, or
                another limit for an exported encoder.
            InputTypeError: Set to something else than a whole number.
        """
        return self.spec.max_tokens

    @max_tokens.setter
    def max_tokens(self, limit: int | None) -> None:
        self._runtime.set_max_tokens(whole_number("max_tokens", limit))

    @property
    def pooling(self) -> str:
        """Name of the pooling."""
        return self.spec.pooling

    @property
    def normalizes(self) -> bool:
        """Whether every vector has unit length."""
        return self.spec.normalizes

    @property
    def device(self) -> str:
        """The kind of device that it runs on: ``cpu``, ``cuda`` or ``mps``."""
        return self._runtime.device

    @property
    def precision(self) -> str:
        """What it computes in; what ``auto`` stands for is measured when first asked for."""
        return self._runtime.precision

    @property
    def backend(self) -> str:
        """The library that runs it; ``auto`` takes another one once a job is long enough."""
        kind = type(self._runtime.backend(0))
        place = f"{kind.__module__}:{kind.__qualname__}"
        return next(name for name, one in BACKENDS.items() if one.backend == place)

    @property
    def torch(self) -> "TorchModel":
        """The network behind it, for what only torch can do.

        Raises:
            InputError: It is an exported encoder.
        """
        return self._runtime.model

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a text's vector: weights, tokenizer and settings.

        Loading, saving, copying and exporting keep it; device, backend and precision are not part
        of it.
        """
        return self._runtime.fingerprint

    def encode(
        self,
        texts: Iterable[str] | str,
        *,
        kind: Kind = "document",
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Vectors:
        """Vectors ``(n, dim)`` float32 in the order of the texts; ``(dim,)`` for a bare string.

        Truncated texts are logged once; `encode_with_report` gives their rows.

        Args:
            texts: Any iterable of strings: a list, a generator, a column of a table.
            kind: ``query`` puts the model's query prompt first, ``document`` its document prompt.
            batch_tokens: Tokens per batch, padding included; ``None`` for what suits the device.
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
        """A run whose `vectors(texts)` come one chunk at a time, for more texts than fit in memory.

        Raises:
            InputError: An unknown kind or a batch without room.
            InputTypeError: `batch_tokens` is no whole number.
        """
        if batch_tokens is not None:
            batch_tokens = whole_number("batch_tokens", batch_tokens)
        return EncodingRun(self.spec, self._runtime.backend, kind=kind, batch_tokens=batch_tokens)

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
                an exported encoder.
            StorageError: The disk is full or a permission is missing.
        """
        model = self.torch
        from sbertkit.encoder.saving import save_model

        save_model(model, output_folder(folder))

    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        precision: str = "fp32",
        calibrate: "Texts | None" = None,
    ) -> ExportManifest:
        """Writes a folder with one ONNX model for everything from token ids to the vector.

        The folder is read by `Encoder.load` without torch or transformers; its ``encoder.onnx``
        takes ``input_ids`` and ``attention_mask`` (and ``token_type_ids`` where the model has
        them), (B, T), and gives ``sentence_embedding``, (B, dim).

        Args:
            folder: New, empty, or an earlier export, which is replaced.
            precision: ``fp32``, or ``int8`` for 8-bit weights and activations.
            calibrate: For ``int8``: texts like those that will be encoded, a path or an iterable,
                of which at most 256 are drawn; the ranges of activations are taken from them. By
                default from a few texts of many kinds.

        Returns:
            The manifest of the folder; its `min_cosine` is the lowest over the probe texts.

        Raises:
            InputError: The encoder cannot be exported, or the export computes something else.
            MissingDependency: onnxruntime or onnx is missing.
            StorageError: The disk is full or a permission is missing.
        """
        model = self.torch
        from sbertkit.encoder.exports.exporting import export_model

        return export_model(model, folder, precision=precision, calibrate=calibrate)

    def export_folder(self, precision: str = "fp32") -> Path:
        """A folder with this encoder's export, not to be changed; made where there is none yet.

        It is kept in the user's cache, where later processes find it by the hashes of the model's
        files and need not load torch; that of an exported encoder is its own.

        Args:
            precision: ``fp32``, or ``int8``, for which ranges are taken from a few texts.

        Raises:
            InputError: The encoder cannot be exported.
            MissingDependency: onnxruntime or onnx is missing.
            StorageError: The cache folder cannot be written.
        """
        return self._runtime.export_folder(precision)

    def variant(self, pooling: "Pooling", postprocessors: "Sequence[nn.Module]") -> "Encoder":
        """An encoder of the same weights and tokenizer with another pooling and post-processing.

        Args:
            pooling: From token vectors to a text's vector.
            postprocessors: What follows, in order (see `sbertkit.encoder.postprocessors`).

        Raises:
            InputError: They do not suit the model, or this is an exported encoder.
        """
        model = self.torch.variant(pooling, postprocessors)
        from sbertkit.encoder.torch_runtime import TorchRuntime

        return Encoder(TorchRuntime(model))

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
