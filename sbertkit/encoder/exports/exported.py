"""Runs an exported encoder; loads neither torch nor transformers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.backends.libraries import backends_for, open_backend
from sbertkit.encoder.batching import BatchCollator
from sbertkit.encoder.exports.manifest import (
    MODEL_FILE,
    TOKENIZER_BYTES,
    TOKENIZER_FILE,
    ExportManifest,
    read_manifest,
)
from sbertkit.encoder.exports.probes import OPENING_PROBES, check_equal, probe_vectors
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError
from sbertkit.files import read_regular

if TYPE_CHECKING:
    from sbertkit.encoder.torch_model import TorchModel


class ExportedRuntime:
    """Runs an export.

    Attributes:
        spec: Tokenizer, prompts and limits.
        precision: What it computes in.
        fingerprint: That of the encoder that was exported.
        export_precision: What its ONNX model is in.
        device: Always the CPU.
    """

    device = "cpu"

    def __init__(self, manifest: ExportManifest, folder: Path, spec: EncoderSpec) -> None:
        self.spec = spec
        self.fingerprint = manifest.fingerprint
        self.export_precision = manifest.precision
        self._folder = folder
        self.precision = "bf16" if spec.options.precision == "bf16" else manifest.precision
        name = spec.options.backend
        if name == "auto":
            name = _fastest_backend(self.precision, pairs=spec.scores_pairs)
        self._backend = open_backend(name, folder / MODEL_FILE, self.precision)

    @property
    def model(self) -> "TorchModel":
        """None.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.spec.options.model} is an exported encoder, which encodes and cannot be "
            "changed, trained or saved; load the model that it was made from"
        )

    def set_max_tokens(self, limit: int) -> None:
        """Refuses another limit than that of the encoder that was exported.

        Raises:
            InputError: Another limit.
        """
        if limit != self.spec.max_tokens:
            raise InputError(
                f"{self._folder} is an exported encoder with max_tokens {self.spec.max_tokens}, "
                f"not {limit}; export the model again as it should be"
            )
        self.spec = self.spec.with_limit(limit)

    def export_folder(self, precision: str = "fp32") -> Path:  # noqa: ARG002  # as above
        """Its own."""
        return self._folder

    def backend(self, texts: int) -> Backend:  # noqa: ARG002  # as above
        """That of the ONNX model."""
        return self._backend


def _fastest_backend(precision: str, *, pairs: bool) -> str:
    """The backend that ``auto`` stands for."""
    if precision == "fp32" and not pairs:
        return "onnx"  # which opens sooner, and is as fast with short texts
    found = backends_for(precision, "auto")
    return found[0] if found else "onnx" if precision == "fp32" else "openvino"


def load_exported_runtime(
    options: LoadOptions,
    folder: Path | None = None,
    *,
    hashed: bool = False,
    expected: Vectors | None = None,
) -> ExportedRuntime:
    """The runtime of an exported folder, which has encoded `OPENING_PROBES`; see `Encoder.load`.

    Args:
        options: What is asked for.
        folder: The folder; by default, the model.
        hashed: See `read_manifest`.
        expected: The vectors of these texts by torch in float32, (n, dim), to compare.

    Raises:
        InputError: The folder is damaged, or asked to be something else than was exported, or gives
            other vectors.
        MissingDependency: The library that is to run it is missing.
    """
    folder = folder or Path(options.model)
    manifest = read_manifest(folder, hashed=hashed)
    _check_asked(options, manifest)
    with _consistent(folder):
        pairs = manifest.task == "rerank"
        tokenizer = Tokenizer(_read_tokenizer(folder, manifest), pairs=pairs)
        if manifest.max_tokens is not None and manifest.max_tokens <= len(tokenizer.special):
            raise InputError(f"max_tokens {manifest.max_tokens} leaves no room for text")
        spec = EncoderSpec(
            options=options,
            name=manifest.model,
            tokenizer=tokenizer,
            collator=BatchCollator(
                manifest.pad_id,
                manifest.padding_side,
                tokenizer.special,
                manifest.uses_token_types,
            ),
            prompts=Prompts(**manifest.prompts),
            max_tokens=manifest.max_tokens,
            pooling=manifest.pooling,
            normalizes=manifest.normalizes,
            dim=manifest.dim,
            activation=manifest.activation,
        )
        runtime = ExportedRuntime(manifest, folder, spec)
        found = probe_vectors(spec, runtime.backend(2), OPENING_PROBES)
        if expected is not None:
            check_equal(expected, found, runtime.precision, options.model)
    return runtime


def _read_tokenizer(folder: Path, manifest: ExportManifest) -> SimpleNamespace:
    """The tokenizer of a folder, with what `Tokenizer` asks of one of the transformers library."""
    from tokenizers import Tokenizer as FastTokenizer

    # Its bytes and not its path, which need not be valid Unicode.
    fast = FastTokenizer.from_buffer(read_regular(folder / TOKENIZER_FILE, limit=TOKENIZER_BYTES))
    for name in ("pad_id", "fallback_token_id"):
        token = getattr(manifest, name)
        if fast.id_to_token(token) is None:
            raise InputError(f"{name} {token} is not in the vocabulary of {TOKENIZER_FILE}")
    return SimpleNamespace(
        backend_tokenizer=fast,
        pad_token_id=manifest.pad_id,
        eos_token_id=manifest.fallback_token_id,
        model_input_names=["token_type_ids"] if manifest.uses_token_types else [],
        truncation_side=manifest.truncation_side,
    )


@contextmanager
def _consistent(folder: Path) -> Iterator[None]:
    """Turns what a folder makes the libraries raise, its hashes being right, into one refusal.

    Raises:
        InputError: Its files do not belong together, or are none that the libraries can use.
    """
    try:
        with library_errors("it cannot be used"):
            yield
    except InputError as error:
        raise InputError(f"{folder}: {error}; export the encoder again") from error


def _check_asked(options: LoadOptions, manifest: ExportManifest) -> None:
    """Refuses options that ask for another encoder than the one that was exported."""
    asked: dict[str, tuple[object, tuple[object, ...]]] = {
        "task": (options.task, (manifest.task,)),
        "pooling": (options.pooling, (None, manifest.pooling)),
        "normalize": (options.normalize, (None, manifest.normalizes)),
        "max_tokens": (options.max_tokens, (None, manifest.max_tokens)),
        "dim": (options.dim, (None, manifest.dim)),
        "prompts": (options.prompts, (None, Prompts(**manifest.prompts))),
        "backend": (options.backend, ("auto", "onnx", "openvino")),
        "device": (options.device, ("auto", "cpu")),
        "precision": (options.precision, ("fp32", "auto", manifest.precision)),
    }
    if manifest.precision == "fp32" and options.backend != "onnx":
        asked["precision"] = (options.precision, ("auto", "bf16", "fp32"))
    for name, (value, possible) in asked.items():
        if value not in possible:
            known = " or ".join(repr(one) for one in possible if one is not None)
            raise InputError(
                f"{options.model} is an exported encoder, whose {name} is {known}, not {value!r}; "
                "take the model that it was made from, or export that again"
            )
