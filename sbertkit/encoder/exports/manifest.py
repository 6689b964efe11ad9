"""An export folder: ONNX model, tokenizer, and the manifest that describes them."""

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from sbertkit.encoder.activations import ACTIVATIONS, DEFAULT_ACTIVATION
from sbertkit.encoder.backends import EXPORT_PRECISIONS
from sbertkit.encoder.head import HEAD
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.encoder.prompts import Prompts
from sbertkit.errors import InputError, NewerFormat
from sbertkit.files import open_regular, read_regular
from sbertkit.schema import Digest, Positive
from sbertkit.sealed import read_sealed, seal

MODEL_FILE = "encoder.onnx"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "export.json"
EXPORT_FILES = (MODEL_FILE, TOKENIZER_FILE, MANIFEST_FILE)
_FORMAT = 1
TOKENIZER_BYTES = 2**28
_MAX_BYTES = {MODEL_FILE: 2**31, TOKENIZER_FILE: TOKENIZER_BYTES}
"""Sizes of files; protobuf, the format of ONNX, counts no further."""
_CHUNK = 2**20
_EXTERNAL = re.compile(rb"(?:\x0a|\x8a\x80*\x00)(?:\x08|\x88\x80*\x00)location")
"""The key, as protobuf writes it, that every tensor has whose numbers are in another file."""
_ENDLESS = re.compile(rb"(?:\x22|\xa2\x80*\x00)(?:\x04|\x84\x80*\x00)(?:Loop|Scan)")
"""The type, as protobuf writes it, of operators that may never end; no encoder has one."""
_REFUSED = {
    b"location": (_EXTERNAL, "tensors in other files; expected all of them inside"),
    b"Loop": (_ENDLESS, "a loop; expected an encoder, which has none"),
    b"Scan": (_ENDLESS, "a loop; expected an encoder, which has none"),
}
"""What an ONNX file may not have: a word to look for, what surrounds it, and the reason."""
_BEFORE = 24
"""Bytes before such a word at most, its own included."""
_REMEDY = "export the encoder again"

_Dim = Annotated[int, msgspec.Meta(ge=1, le=2**16)]
_TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Cosine = Annotated[float, msgspec.Meta(ge=-1.001, le=1.001)]


@dataclass(frozen=True, slots=True)
class ExportManifest:
    """What an export folder has, enough to encode with it.

    Attributes:
        fingerprint: Of the encoder that was exported.
        precision: What the ONNX model computes in.
        model: The encoder's name.
        pooling: Name of the pooling inside.
        normalizes: Whether every vector has unit length.
        dim: Size of a vector.
        max_tokens: Tokens a text may have.
        prompts: Texts put before, under ``query`` and ``document``.
        padding_side: Where batches are padded.
        pad_id: The padding token.
        fallback_token_id: The token of an empty text, for a tokenizer without special tokens.
        uses_token_types: Whether batches have token types.
        truncation_side: Where long texts are truncated.
        min_cosine: To torch in float32, the lowest over probe texts.
        versions: Of the libraries that made it.
        files: SHA-256 of the other files by name.
        task: ``embed``, or ``rerank`` for a model that scores pairs.
        activation: What such a model declares to be applied to its scores.
    """

    fingerprint: Digest
    precision: str
    model: str
    pooling: str
    normalizes: bool
    dim: _Dim
    max_tokens: Positive | None
    prompts: Mapping[str, str]
    padding_side: Literal["left", "right"]
    pad_id: _TokenId
    fallback_token_id: _TokenId
    uses_token_types: bool
    truncation_side: Literal["left", "right"]
    min_cosine: _Cosine
    versions: Mapping[str, str]
    files: Mapping[str, Digest]
    task: Literal["embed", "rerank"] = "embed"
    activation: str | None = None

    def __post_init__(self) -> None:
        for name, value, possible in (
            ("pooling", {self.pooling}, (*POOLINGS, HEAD) if self.task == "rerank" else POOLINGS),
            ("activation", {self.activation or DEFAULT_ACTIVATION}, ACTIVATIONS),
            ("precision", {self.precision}, EXPORT_PRECISIONS),
            ("prompts", set(self.prompts), Prompts._fields),
        ):
            if not value <= set(possible):
                found = ", ".join(sorted(value))
                raise ValueError(f"{name}: expected {' or '.join(possible)}, found {found!r}")
        if self.task == "rerank" and self.dim != 1:
            raise ValueError(f"dim: expected 1 for scores, found {self.dim}")
        if set(self.files) != set(_MAX_BYTES):
            raise ValueError(f"expected the SHA-256 of {' and '.join(_MAX_BYTES)} in files")


def is_export_folder(folder: Path) -> bool:
    """Whether a folder is an export."""
    with suppress(OSError, ValueError):  # a name too long for a path, or with a NUL
        return (folder / MANIFEST_FILE).is_file()
    return False


def write_manifest(folder: Path, manifest: ExportManifest) -> None:
    """Writes the manifest, with a hash of itself."""
    content = asdict(manifest)
    if manifest.task == "embed":  # as before there were others
        del content["task"], content["activation"]
    (folder / MANIFEST_FILE).write_bytes(seal({"format": _FORMAT, **content}))


def read_manifest(folder: Path, *, hashed: bool = False) -> ExportManifest:
    """The manifest of a folder whose files have the hashes it names; nothing else is parsed.

    Args:
        folder: An export.
        hashed: Whether the caller has compared the files with hashes already, and made sure that
            no other file lies in the folder.

    Raises:
        InputError: A file is missing, changed, a link or not ours, or the ONNX model has tensors
            in further files.
        NewerFormat: A later version wrote it.
    """
    path = folder / MANIFEST_FILE
    try:
        manifest = read_sealed(read_regular(path), ExportManifest, path, version=_FORMAT)
        for name, expected in manifest.files.items():
            _check_file(folder / name, None if hashed else expected)
    except NewerFormat as error:
        raise NewerFormat(f"{error}, or {_REMEDY}") from error
    except FileNotFoundError as error:
        raise InputError(f"{error.filename} is missing or damaged; {_REMEDY}") from error
    except (OSError, InputError) as error:
        raise InputError(f"{error}; {_REMEDY}") from error
    return manifest


def _check_file(path: Path, expected: str | None) -> None:
    """Refuses a file that is no regular one, too large, or not the one that was written.

    Args:
        path: The file.
        expected: Its SHA-256; ``None`` where that has been checked.
    """
    digest = hashlib.sha256()
    refused = None
    with open_regular(path) as file:
        size, limit = os.fstat(file.fileno()).st_size, _MAX_BYTES[path.name]
        if size > limit:
            raise InputError(f"{path} has {size:,} bytes; expected at most {limit:,}")
        before = b""
        while expected is not None and (chunk := file.read(_CHUNK)):
            digest.update(chunk)
            refused = refused or _refused(before + chunk)
            before = (before + chunk)[-_BEFORE:]
    if expected not in (None, digest.hexdigest()):
        raise InputError(f"{path} is missing or damaged")
    if refused and path.name == MODEL_FILE:
        raise InputError(f"{path} has {refused}")


def _refused(content: bytes) -> str | None:
    """Why a piece of an ONNX file is refused, if it is."""
    for word, (written, reason) in _REFUSED.items():
        place = content.find(word)
        while place >= 0:
            if written.search(content, max(0, place - _BEFORE), place + len(word)):
                return reason
            place = content.find(word, place + 1)
    return None
