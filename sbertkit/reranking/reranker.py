"""The re-ranker: pairs of a query and a document in, scores out."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from sbertkit.arguments import output_folder, path_text, whole_number
from sbertkit.arrays import Vectors
from sbertkit.encoder.activations import ACTIVATIONS, DEFAULT_ACTIVATION
from sbertkit.encoder.cached_runtime import load_runtime
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.exports.exported import load_exported_runtime
from sbertkit.encoder.exports.manifest import ExportManifest, is_export_folder
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.report import EncodeReport
from sbertkit.encoder.resolve import resolve_options
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.errors import InputTypeError

if TYPE_CHECKING:
    from sbertkit.encoder.cached_runtime import CachedRuntime
    from sbertkit.encoder.exports.exported import ExportedRuntime
    from sbertkit.encoder.torch_runtime import TorchRuntime

Pair = tuple[str, str]
"""A query and a document."""


class Scored(NamedTuple):
    """Scores (n,) float32 in the order of the pairs, and what happened to the pairs."""

    scores: Vectors
    report: EncodeReport


class PairRun(Protocol):
    """One pass over more pairs than memory holds; see `Reranker.start_run`."""

    def vectors(self, pairs: Iterable[Pair], /, *, progress: bool = False) -> Iterator[Vectors]:
        """Scores of the pairs in order, one chunk (n, 1) at a time."""
        ...

    def report(self) -> EncodeReport:
        """What happened to the pairs whose scores have been drawn."""
        ...


class Ranked(NamedTuple):
    """A document of a ranking.

    Attributes:
        place: Where it stands in the list that was ranked, from 0.
        score: As `Reranker.score` gives it.
    """

    place: int
    score: float


class Reranker:
    """Scores how well documents answer a query; made by `Reranker.load`."""

    def __init__(self, runtime: "TorchRuntime | ExportedRuntime | CachedRuntime") -> None:
        self._runtime = runtime

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str],
        *,
        max_tokens: int | None = None,
        backend: str = "auto",
        precision: str = "fp32",
        device: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> "Reranker":
        """A cross-encoder, or a multi-vector encoder, from a folder or a hub name.

        Args:
            model: A CrossEncoder folder of sentence-transformers, a Hugging Face folder of a
                classifier of sequences with one label, an exported folder, or a hub name; or a
                MultiVectorEncoder of sentence-transformers, which that library runs by torch.
            max_tokens: Tokens a pair may have, special tokens and prompt counted; the longer text
                is truncated first. ``None``: as the model declares.
            backend: See `Encoder.load`.
            precision: See `Encoder.load`. Below fp32 the head still computes in float32, so that
                near scores stay apart.
            device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
            revision: Branch, tag or commit on the hub.
            trust_remote_code: Run Python code that comes with the model.

        Raises:
            InputError: The model is not found, is no cross-encoder, has several labels, or an
                argument does not suit it.
        """
        options = LoadOptions(
            model=path_text(model),
            max_tokens=None if max_tokens is None else whole_number("max_tokens", max_tokens),
            backend=backend,
            precision=precision,
            device=device,
            revision=revision,
            task="rerank",
        )
        if is_export_folder(Path(options.model)):
            return cls(load_exported_runtime(options))
        folder = resolve_options(options)
        from sbertkit.reranking.multi_vector import MultiVectorReranker, is_multi_vector

        if is_multi_vector(folder):
            return MultiVectorReranker(options, folder, trust_remote_code=trust_remote_code)
        return cls(load_runtime(options, trust_remote_code=trust_remote_code))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, max_tokens={self.max_tokens})"

    @property
    def model(self) -> str:
        """Its name, as it was given."""
        return self.spec.options.model

    @property
    def spec(self) -> EncoderSpec:
        """What is known of it besides its weights."""
        return self._runtime.spec

    @property
    def max_tokens(self) -> int | None:
        """Tokens a pair may have, special tokens and prompt counted; ``None``: no limit."""
        return self.spec.max_tokens

    @property
    def activation(self) -> str:
        """What the model declares to be applied to its scores, such as ``Sigmoid``."""
        return self.spec.activation or DEFAULT_ACTIVATION

    @property
    def device(self) -> str:
        """The kind of device that it runs on: ``cpu``, ``cuda`` or ``mps``."""
        return self._runtime.device

    @property
    def precision(self) -> str:
        """What it computes in."""
        return self._runtime.precision

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides a pair's score; see `Encoder.fingerprint`."""
        return self._runtime.fingerprint

    def score(
        self,
        pairs: Iterable[Pair],
        *,
        activated: bool = True,
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Vectors:
        """Scores (n,) float32 of pairs (query, document), as `CrossEncoder.predict` gives them.

        Truncated pairs are logged once; `score_with_report` gives their rows.

        Args:
            pairs: Any iterable of pairs of strings.
            activated: Apply what the model declares, such as a sigmoid, in float32. Far from 0 a
                sigmoid makes different scores equal; without it they are what ranks.
            batch_tokens: Tokens per batch, padding included; ``None`` for what suits the device.
            progress: Show progress on standard error.

        Raises:
            InputError: A blank query, or scores that are not finite.
            InputTypeError: A row is no pair of strings; the message names it.
        """
        return self.score_with_report(
            pairs, activated=activated, batch_tokens=batch_tokens, progress=progress
        ).scores

    def score_with_report(
        self,
        pairs: Iterable[Pair],
        *,
        activated: bool = True,
        batch_tokens: int | None = None,
        progress: bool = False,
    ) -> Scored:
        """As `score`, with a report on truncated, blank, repaired and duplicate pairs."""
        if batch_tokens is not None:
            batch_tokens = whole_number("batch_tokens", batch_tokens)
        run = self.start_run(batch_tokens=batch_tokens)
        chunks = [scores[:, 0] for scores in run.vectors(pairs, progress=progress)]
        scores = np.concatenate([np.empty(0, np.float32), *chunks])
        return Scored(self.activated(scores) if activated else scores, run.report())

    def start_run(self, *, batch_tokens: int | None = None) -> PairRun:
        """A run over more pairs than fit in memory.

        Its `vectors(pairs)` are the scores before the activation, one chunk (n, 1) at a time; its
        `report()` says what happened to the pairs.
        """
        return EncodingRun(self.spec, self._runtime.backend, batch_tokens=batch_tokens)

    def activated(self, scores: Vectors) -> Vectors:
        """Scores after what the model declares to be applied to them."""
        return ACTIVATIONS[self.activation](scores)

    def rank(
        self, query: str, documents: Iterable[str], k: int | None = None, *, progress: bool = False
    ) -> list[Ranked]:
        """The documents that answer a query best, best first; equal ones in the order given.

        The order is that of the scores before the activation.

        Args:
            query: The query.
            documents: The documents.
            k: How many are wanted; ``None`` for all.
            progress: Show progress on standard error.

        Raises:
            InputError: A blank query, or `k` below 1.
            InputTypeError: Something else than texts.
        """
        if isinstance(documents, str):
            raise InputTypeError(
                "rank takes a list of documents; found a bare string, put it in []"
            )
        if not isinstance(documents, Iterable):
            found = type(documents).__name__
            raise InputTypeError(f"rank takes a list of documents, found {found}")
        documents = list(documents)
        k = len(documents) if k is None else whole_number("k", k)
        scores = self.score([(query, one) for one in documents], activated=False, progress=progress)
        shown = self.activated(scores)
        order = np.argsort(-scores, kind="stable")[:k]
        return [Ranked(int(place), float(shown[place])) for place in order]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes a folder that `CrossEncoder(folder)` loads and that gives the same scores.

        Raises:
            InputError: The folder holds something that is not a model saved by sbertkit, this is an
                export, or a cross-encoder of several modules.
            StorageError: The disk is full or a permission is missing.
        """
        model = self._runtime.model
        from sbertkit.encoder.saving import save_model

        save_model(model, output_folder(folder))

    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        precision: str = "fp32",
        calibrate: Sequence[Pair] | None = None,
    ) -> ExportManifest:
        """Writes a folder with one ONNX model for everything from token ids to the score.

        `Reranker.load` reads it without torch or transformers. Its ``encoder.onnx`` gives
        ``scores``, (B, 1), before the activation.

        Args:
            folder: New, empty, or an earlier export, which is replaced.
            precision: ``fp32``, or ``int8`` for 8-bit weights and activations.
            calibrate: For ``int8``: pairs like those that will be scored, of which the first 256
                are read; the ranges of activations are taken from them. By default from a few
                pairs of many kinds.

        Raises:
            InputError: The model cannot be exported, or the export computes something else.
            MissingDependency: onnxruntime or onnx is missing.
            StorageError: The disk is full or a permission is missing.
        """
        model = self._runtime.model
        from sbertkit.encoder.exports.exporting import export_model

        return export_model(model, folder, precision=precision, calibrate=calibrate)

    def export_folder(self, precision: str = "fp32") -> Path:
        """A folder in the user's cache with its export; see `Encoder.export_folder`."""
        return self._runtime.export_folder(precision)
