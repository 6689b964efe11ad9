"""An encoder as a folder with one graph file, compared with torch before it is given out."""

import copy
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from sbertkit.arguments import output_folder
from sbertkit.data.sampling import Texts, sample_texts
from sbertkit.encoder.backends.onnx import OnnxBackend
from sbertkit.encoder.backends.torch import TorchBackend
from sbertkit.encoder.batching import Batch, plan_batches
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.exports.manifest import (
    ENTRY_FILE,
    EXPORT_FILES,
    GRAPH_FILE,
    PRECISIONS,
    TOKENIZER_FILE,
    GraphEntry,
    is_graph_folder,
    read_entry,
    write_entry,
)
from sbertkit.encoder.exports.probes import PROBES, least_cosine, probe_vectors
from sbertkit.encoder.exports.runtimes import check_equal
from sbertkit.encoder.exports.tracing import quantize_graph, trace_graph
from sbertkit.encoder.network import Network
from sbertkit.encoder.saving import lineage_name
from sbertkit.errors import InputError
from sbertkit.storage import clear_leftovers, sha256_file, staged_folder, storage_errors

_CALIBRATION_TEXTS = 256
_LIBRARIES = ("torch", "transformers", "onnxruntime")


def export_encoder(
    encoder: Encoder,
    folder: str | os.PathLike[str],
    *,
    precision: str = "fp32",
    calibrate: Texts | None = None,
) -> GraphEntry:
    """Writes an encoder as one graph file that holds everything from token ids to the vector.

    The folder is read by `Encoder.load` without torch or transformers; its ``encoder.onnx`` takes
    ``input_ids`` and ``attention_mask`` (and ``token_type_ids`` where the model has them), (B, T),
    and gives ``sentence_embedding``, (B, dim).

    Args:
        encoder: With a tokenizer of the tokenizers library.
        folder: New, empty, or an earlier export, which is replaced.
        precision: ``fp32``, or ``int8`` for 8-bit weights and activations.
        calibrate: For ``int8``: texts like those that will be encoded, a path or an iterable, of
            which at most 256 are drawn; the ranges of activations are taken from them. By default
            from a few texts of many kinds.

    Returns:
        What the folder says of itself; its `least_cosine` is the least over the probe texts.

    Raises:
        InputError: The encoder cannot be exported, or the graph computes something else.
        MissingDependency: onnxruntime or onnx is missing.
        StorageError: The disk is full or a permission is missing.
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
    if calibrate is not None and precision != "int8":
        raise InputError(f"calibrate is for precision int8, not for {precision}; leave it out")
    place = output_folder(folder)
    with storage_errors(place):
        clear_leftovers(place)
        _check_target(place)
        texts = PROBES
        if calibrate is not None:
            texts = sample_texts(calibrate, _CALIBRATION_TEXTS).texts
        with staged_folder(place, last=ENTRY_FILE) as staged:
            write_graph(encoder, staged, precision, texts)
    return read_entry(place)


def write_graph(
    encoder: Encoder, folder: Path, precision: str, calibrate: Sequence[str] = PROBES
) -> None:
    """Writes an export into an empty folder; see `export_encoder`."""
    fast = getattr(encoder.tokenizer.hf, "backend_tokenizer", None)
    if fast is None:
        raise InputError(
            f"the tokenizer of {encoder.options.model} is written in Python and cannot be "
            "exported; use backend torch"
        )
    graph = folder / GRAPH_FILE
    tokens = encoder.tokenizer.tokenize(PROBES[:3], encoder.max_tokens)
    with tempfile.TemporaryDirectory() as scratch:
        exact = graph if precision == "fp32" else Path(scratch) / GRAPH_FILE
        network = _on_cpu(encoder.network)
        trace_graph(network, encoder.padder, tokens, exact)
        expected = probe_vectors(encoder, TorchBackend(network, torch.device("cpu")))
        found = probe_vectors(encoder, OnnxBackend(exact, "fp32"))
        check_equal(expected, found, "fp32", encoder.options.model)
        if precision == "int8":
            quantize_graph(exact, graph, _batches(encoder, calibrate))
            found = probe_vectors(encoder, OnnxBackend(graph, "int8"))
            check_equal(expected, found, "int8", encoder.options.model)
    (folder / TOKENIZER_FILE).write_text(fast.to_str(), encoding="utf-8")
    write_entry(
        folder,
        GraphEntry(
            fingerprint=encoder.fingerprint,
            precision=precision,
            model=lineage_name(encoder.options.model),
            pooling=encoder.pooling,
            normalizes=encoder.normalizes,
            dim=encoder.dim,
            max_tokens=encoder.max_tokens,
            prompts=encoder.prompts._asdict(),
            padding_side=encoder.padder.side,
            pad_id=encoder.padder.pad_id,
            empty_id=int(encoder.tokenizer.tokenize([""], None)[0].ids[0]),
            gives_types=encoder.padder.gives_types,
            cuts_left=encoder.tokenizer.cuts_left,
            least_cosine=least_cosine(expected, found),
            versions={name: version(name) for name in _LIBRARIES},
            files={name: sha256_file(folder / name) for name in (GRAPH_FILE, TOKENIZER_FILE)},
        ),
    )


def _batches(encoder: Encoder, texts: Sequence[str]) -> Iterator[Batch]:
    """Texts as the model reads them, few at a time."""
    prompt = encoder.prompts.document
    tokens = encoder.tokenizer.tokenize([prompt + text for text in texts], encoder.max_tokens)
    for rows in plan_batches([len(one.ids) for one in tokens], OnnxBackend.batch_tokens):
        yield encoder.padder.pad(tokens, rows)


def _on_cpu(network: Network) -> Network:
    """The network, or a copy of one that is on another device."""
    if next(network.parameters()).device.type == "cpu":
        return network
    return copy.deepcopy(network).cpu()


def _check_target(folder: Path) -> None:
    """Refuses a folder in which anything else than an earlier export would be lost."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder to write the export to")
    ours = set(EXPORT_FILES) if is_graph_folder(folder) else set()
    others = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if others:
        raise InputError(
            f"{folder} holds {others[0]}, which is not part of an export; choose an empty or new "
            "folder"
        )
