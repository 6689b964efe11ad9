"""A folder with an exported encoder: graph, tokenizer, and what is to be known of them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sbertkit.errors import InputError, NewerFormat
from sbertkit.storage import sha256_file

GRAPH_FILE = "encoder.onnx"
TOKENIZER_FILE = "tokenizer.json"
ENTRY_FILE = "graph.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """What a folder says of its graph, enough to encode with it.

    Attributes:
        fingerprint: Of the encoder that was exported.
        precision: What the graph computes in.
        model: The encoder's name.
        pooling: Name of the pooling inside.
        normalizes: Whether every vector has unit length.
        dim: Size of a vector.
        max_tokens: Tokens a text may have.
        prompts: Texts put before, under ``query`` and ``document``.
        padding_side: Where batches are padded.
        pad_id: With which token.
        empty_id: The token of an empty text, for a tokenizer without special tokens.
        gives_types: Whether batches have token types.
        cuts_left: Whether long texts lose their beginning.
        least_cosine: To torch in float32, the least over probe texts.
        versions: Of the libraries that made it.
        files: SHA-256 of the other files by name.
    """

    fingerprint: str
    precision: str
    model: str
    pooling: str
    normalizes: bool
    dim: int
    max_tokens: int | None
    prompts: Mapping[str, str]
    padding_side: Literal["left", "right"]
    pad_id: int
    empty_id: int
    gives_types: bool
    cuts_left: bool
    least_cosine: float
    versions: Mapping[str, str]
    files: Mapping[str, str]


def is_graph_folder(folder: Path) -> bool:
    """Whether a folder has an exported encoder."""
    return (folder / ENTRY_FILE).is_file()


def write_entry(folder: Path, entry: GraphEntry) -> None:
    """Writes what is to be known, with a hash of itself."""
    content = {"format": _FORMAT, **asdict(entry)}
    text = json.dumps({**content, "sha256": _own_hash(content)}, indent=2, ensure_ascii=False)
    (folder / ENTRY_FILE).write_text(text + "\n", encoding="utf-8")


def read_entry(folder: Path, *, hashed: bool = False) -> GraphEntry:
    """What a folder says, after its files have the hashes it names; nothing else is parsed.

    Args:
        folder: An export.
        hashed: Whether the caller has compared the files with hashes already.

    Raises:
        InputError: A file is missing, changed or not ours.
        NewerFormat: A later version wrote it.
    """
    path = folder / ENTRY_FILE
    try:
        content = json.loads(path.read_bytes())
        known = content.pop("sha256")
        version = content["format"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read; export the encoder again") from error
    if isinstance(version, int) and version > _FORMAT:
        raise NewerFormat(
            f"{folder} has format {version}, this version of sbertkit reads up to {_FORMAT}; "
            "update sbertkit, or export the encoder again"
        )
    if known != _own_hash(content):
        raise InputError(f"{path} is damaged; export the encoder again")
    del content["format"]
    try:
        entry = GraphEntry(**content)
    except TypeError as error:
        raise InputError(f"{path} is damaged; export the encoder again") from error
    for name, expected in () if hashed else entry.files.items():
        file = folder / name
        if not file.is_file() or sha256_file(file) != expected:
            raise InputError(f"{file} is missing or damaged; export the encoder again")
    return entry


def _own_hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
