"""A model as a folder with one ONNX file, compared with torch before it is put in place."""

import copy
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from sbertkit.arguments import output_folder
from sbertkit.data.sampling import Texts, sample_texts
from sbertkit.encoder.backends import EXPORT_PRECISIONS
from sbertkit.encoder.backends.onnx import OnnxBackend
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.batching import Batch
from sbertkit.encoder.exports.manifest import (
    EXPORT_FILES,
    MANIFEST_FILE,
    MODEL_FILE,
    TOKENIZER_FILE,
    ExportManifest,
    is_export_folder,
    read_manifest,
    write_manifest,
)
from sbertkit.encoder.exports.probes import (
    PROBES,
    TRACED_PROBES,
    check_equal,
    min_cosine,
    probe_vectors,
)
from sbertkit.encoder.exports.tracing import quantize_model, trace_model
from sbertkit.encoder.network import Network
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.report import EncodeStats
from sbertkit.encoder.rows import PairRows, rows_of
from sbertkit.encoder.saving import lineage_name
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.errors import InputError
from sbertkit.storage import clear_leftovers, sha256_file, staged_folder, storage_errors

_CALIBRATION_TEXTS = 256
_LIBRARIES = ("torch", "transformers", "onnxruntime")


def export_model(
    model: TorchModel,
    folder: str | os.PathLike[str],
    *,
    precision: str = "fp32",
    calibrate: Texts | Sequence[tuple[str, str]] | None = None,
) -> ExportManifest:
    """Writes the export of a model; see `Encoder.export` and `Reranker.export`."""
    check_precision(precision)
    if calibrate is not None and precision != "int8":
        raise InputError(f"calibrate is for precision int8, not for {precision}; leave it out")
    place = output_folder(folder)
    with storage_errors(place):
        clear_leftovers(place)
        _check_target(place)
        rows = None if calibrate is None else _calibration_rows(model.spec, calibrate)
        with staged_folder(place, last=MANIFEST_FILE) as staged:
            write_export(model, staged, precision, rows)
    return read_manifest(place)


def check_precision(precision: str) -> None:
    """Refuses a precision that no export has.

    Raises:
        InputError: It is one of those.
    """
    if precision not in EXPORT_PRECISIONS:
        raise InputError(
            f"precision must be one of {', '.join(EXPORT_PRECISIONS)}, not {precision!r}"
        )


def write_export(
    model: TorchModel, folder: Path, precision: str, calibrate: Sequence[Any] | None = None
) -> None:
    """Writes an export into an empty folder; see `Encoder.export`.

    Args:
        model: What is exported.
        folder: Where to.
        precision: Of the ONNX model.
        calibrate: Rows to find the ranges of activations with; by default the probe texts.
    """
    spec = model.spec
    name = spec.options.model
    fast = getattr(spec.tokenizer.hf, "backend_tokenizer", None)
    if fast is None:
        raise InputError(
            f"the tokenizer of {name} is written in Python and cannot be exported; "
            "use backend torch"
        )
    path = folder / MODEL_FILE
    with tempfile.TemporaryDirectory() as scratch:
        exact = path if precision == "fp32" else Path(scratch) / MODEL_FILE
        network = _on_cpu(model.network)
        traced = spec.tokenize(spec.rows_of(TRACED_PROBES))
        trace_model(network, spec.collator, traced, exact, output=spec.output)
        expected = probe_vectors(spec, TorchBackend(network, torch.device("cpu")))
        found = probe_vectors(spec, OnnxBackend(exact, "fp32"))
        check_equal(expected, found, "fp32", name)
        if precision == "int8":
            quantize_model(exact, path, _batches(spec, calibrate or spec.rows_of(PROBES)))
            found = probe_vectors(spec, OnnxBackend(path, "int8"))
            check_equal(expected, found, "int8", name)
    (folder / TOKENIZER_FILE).write_text(fast.to_str(), encoding="utf-8")
    write_manifest(
        folder,
        ExportManifest(
            fingerprint=model.fingerprint,
            precision=precision,
            model=lineage_name(name),
            pooling=spec.pooling,
            normalizes=spec.normalizes,
            dim=spec.dim,
            max_tokens=spec.max_tokens,
            prompts=spec.prompts._asdict(),
            padding_side=spec.collator.side,
            pad_id=spec.collator.pad_id,
            fallback_token_id=int(spec.tokenize(spec.rows_of([""]))[0].ids[0]),
            uses_token_types=spec.collator.uses_token_types,
            truncation_side=spec.tokenizer.truncation_side,
            min_cosine=min_cosine(expected, found),
            task=spec.options.task,
            activation=spec.activation,
            versions={library: version(library) for library in _LIBRARIES},
            files={file: sha256_file(folder / file) for file in (MODEL_FILE, TOKENIZER_FILE)},
        ),
    )


def _calibration_rows(spec: EncoderSpec, given: Texts | Sequence[tuple[str, str]]) -> Sequence[Any]:
    """Some of the texts or pairs that were given.

    Raises:
        InputError: There are none.
        InputTypeError: They are of another kind.
    """
    if not spec.scores_pairs:
        return sample_texts(given, _CALIBRATION_TEXTS).texts
    reader, stats = PairRows(Prompts()), EncodeStats()
    rows = [
        reader.clean(reader.check(row, number), stats)
        for number, row in enumerate(islice(rows_of(given, reader.expected), _CALIBRATION_TEXTS))
    ]
    if not rows:
        raise InputError("calibrate has no pairs; expected some of query and document")
    return rows


def _batches(spec: EncoderSpec, rows: Sequence[Any]) -> Iterator[Batch]:
    """Rows as the model reads them, few at a time."""
    tokens = spec.tokenize(spec.prompted(rows))
    for places in spec.collator.plan([len(one.ids) for one in tokens], OnnxBackend.batch_tokens):
        yield spec.collator.collate(tokens, places)


def _on_cpu(network: Network) -> Network:
    """The network, or a copy of one that is on another device."""
    if next(network.parameters()).device.type == "cpu":
        return network
    return copy.deepcopy(network).cpu()


def _check_target(folder: Path) -> None:
    """Refuses a folder in which anything else than an earlier export would be overwritten."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder to write the export to")
    ours = set(EXPORT_FILES) if is_export_folder(folder) else set()
    others = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if others:
        raise InputError(
            f"{folder} holds {others[0]}, which is not part of an export; choose an empty or new "
            "folder"
        )
