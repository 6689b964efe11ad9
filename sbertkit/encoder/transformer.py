"""The pretrained encoder below the pooling: loading its weights safely and knowing its limits."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.utils import logging as transformers_logging

from sbertkit.encoder.layout import read_object
from sbertkit.encoder.long_attention import (
    GLOBAL_MODELS,
    attend_globally,
    full_attention,
    window_of,
)
from sbertkit.encoder.prompts import Warn
from sbertkit.encoder.weights import built_within, weight_sizes
from sbertkit.errors import InputError
from sbertkit.files import DOCUMENT_BYTES

_ENCODER_CLASSES = {
    "clip": "CLIPTextModel",
    "clip_text_model": "CLIPTextModel",
    "longt5": "LongT5EncoderModel",
    "mt5": "MT5EncoderModel",
    "t5": "T5EncoderModel",
    "umt5": "UMT5EncoderModel",
}
"""Model types whose text encoder is not what AutoModel gives."""

_CLASSIFIER = "AutoModelForSequenceClassification"

_MAX_VALUES = {"layer": 1_000, "label": 100_000}
"""Limits of whole numbers in config.json by a part of their name: the library makes lists of that
length, and runs one layer as often, whatever the weights are."""

_DOCUMENTS = ("*.json", "*.txt", "*.model", "*.jinja")
"""Files that the library reads whole."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tekken.json")


@dataclass(frozen=True, slots=True)
class Transformer:
    """A loaded encoder with its tokenizer, in float32.

    Attributes:
        model: The transformers model, in evaluation mode.
        tokenizer: The transformers tokenizer.
        missing: Names of weights that the files lack or have in another size, which therefore are
            random.
        global_attention: Whether the model was given global attention on its first token.
    """

    model: Any
    tokenizer: Any
    missing: frozenset[str]
    global_attention: bool = False

    @property
    def layer_count(self) -> int:
        """Number of layers, as hidden states are counted."""
        config = self.model.config
        layers = getattr(config, "num_hidden_layers", None)
        return int(config.num_layers if layers is None else layers)

    @property
    def hidden_size(self) -> int:
        """Size of a token vector."""
        config = self.model.config
        size = getattr(config, "hidden_size", None)
        return int(config.d_model if size is None else size)

    @property
    def label_count(self) -> int:
        """Scores that the head of a model with one gives."""
        return int(self.model.config.num_labels)

    @property
    def takes_token_types(self) -> bool:
        """Whether the model has an argument for token types."""
        return "token_type_ids" in inspect.signature(self.model.forward).parameters

    @property
    def position_limit(self) -> int | None:
        """Tokens that the position table has room for; ``None`` for no limit.

        Models of RoBERTa's kind count positions from the padding id on, which costs some rows.
        """
        table = getattr(self.model.config, "max_position_embeddings", None)
        if table is None or table <= 0:
            return None
        return int(table) - self._position_offset()

    def _position_offset(self) -> int:
        """Rows of the position table that no token gets: those up to the padding id."""
        tables = (
            (getattr(module, "position_embeddings", None), getattr(module, "padding_idx", None))
            for module in self.model.modules()
        )
        offsets = (
            padding + 1
            for table, padding in tables
            if isinstance(table, nn.Embedding) and isinstance(padding, int)
        )
        return next(offsets, 0)

    @property
    def padded_to(self) -> int:
        """The model itself pads a batch to a multiple of so many tokens."""
        return window_of(self.model.config)

    @property
    def pads_left(self) -> bool:
        """Whether to pad on the left: relative positions and a tokenizer that says so."""
        return self.position_limit is None and self.tokenizer.padding_side == "left"


def load_transformer(
    folder: Path,
    warn: Warn,
    *,
    with_head: bool = False,
    labels: int | None = None,
    global_attention: bool = True,
    trust_remote_code: bool = False,
) -> Transformer:
    """The encoder and tokenizer of a Hugging Face folder, from safetensors alone.

    Args:
        folder: The folder.
        warn: Called with what the user should know of the model.
        with_head: Whether the model is a classifier of sequences, whose head is wanted, too.
        labels: Of a head that is new where the files have none of that size.
        global_attention: Whether the first token attends to all others, and they to it, in a model
            where that is for its user to say (see `attend_globally`).
        trust_remote_code: Run Python code that comes with the model.

    Raises:
        InputError: The folder is no such model, its weights are not in safetensors or do not fit.
        Exception: What the library raises for files that are damaged.
    """
    _check_documents(folder)
    sizes = weight_sizes(folder)
    with quiet_transformers():
        config = _read_config(folder, trust_remote_code=trust_remote_code)
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
        with built_within(sizes, folder):
            model, info = _model_class(config, with_head=with_head).from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                # The config may name code on the hub, which would be downloaded and run.
                attn_implementation=None,
                experts_implementation=None,
                **({} if labels is None else {"num_labels": labels}),
                **full_attention(config, warn),
            )
    _check_tokenizer(tokenizer, folder)
    _check_token_ids(tokenizer, model, folder)
    model.eval()
    model.requires_grad_(requires_grad=False)
    mismatched = {name for name, *_ in info["mismatched_keys"]}
    missing = frozenset(info["missing_keys"]) | mismatched
    global_attention = global_attention and config.model_type in GLOBAL_MODELS
    if global_attention:
        attend_globally(model)
    return Transformer(model, tokenizer, missing, global_attention)


def _check_documents(folder: Path) -> None:
    """Refuses what is no model folder, or has files that cost far more memory than any model's."""
    if not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} is not a model folder: expected a config.json in it; "
            "pass a sentence-transformers or Hugging Face folder"
        )
    if (folder / "adapter_config.json").exists():
        raise InputError(
            f"{folder} has an adapter (adapter_config.json), which is not supported; "
            "merge it into the model with peft's merge_and_unload"
        )
    for pattern in _DOCUMENTS:
        for path in folder.glob(pattern):
            size = path.stat().st_size if path.is_file() else 0
            if size > DOCUMENT_BYTES:
                raise InputError(f"{path} has {size:,} bytes; expected at most {DOCUMENT_BYTES:,}")


def _read_config(folder: Path, *, trust_remote_code: bool) -> Any:
    """The library's config, once its content is known to ask for nothing unbounded or foreign."""
    path = folder / "config.json"
    content = read_object(path)
    check_config(content, path)
    try:
        return transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise InputError(
            f"the model in {folder} runs code of its own; allow it with trust_remote_code=True "
            "(--trust-remote-code)"
        ) from error


def check_config(content: Mapping[str, Any], path: Path) -> None:
    """Nothing, if a config.json asks for nothing unbounded or foreign.

    Raises:
        InputError: It does.
    """
    if content.get("quantization_config") is not None:
        raise InputError(
            f"{path}: quantized weights are not supported; get the model in float32, float16 or "
            "bfloat16 and choose a precision (--precision)"
        )
    for key, value in content.items():
        if key in ("_attn_implementation", "_experts_implementation") and value is not None:
            raise InputError(f"{path}: {key} is for the library's own use; remove it")
        for part, limit in _MAX_VALUES.items():
            if part in key and isinstance(value, int) and value > limit:
                raise InputError(f"{path}: {key} is {value:,}; expected at most {limit:,}")
        if isinstance(value, Mapping):  # the config of a part, as of CLIP's text encoder
            check_config(value, path)


def _model_class(config: Any, *, with_head: bool) -> Any:
    name = _CLASSIFIER if with_head else _ENCODER_CLASSES.get(config.model_type, "AutoModel")
    return getattr(transformers, name)


def _check_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Refuses a folder without vocabulary: the library would make one of special tokens alone."""
    if not isinstance(tokenizer, transformers.PreTrainedTokenizerBase):
        raise InputError(
            f"{folder} has a {type(tokenizer).__name__} for a tokenizer; check tokenizer_class in "
            "tokenizer_config.json"
        )
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        return  # written in Python; some need no file
    names = {*_TOKENIZER_FILES, *type(tokenizer).vocab_files_names.values()}
    if not any((folder / name).is_file() for name in names):
        raise InputError(
            f"{folder} has no tokenizer: expected one of {', '.join(sorted(names))}; "
            "copy the tokenizer files of the model into it"
        )


def _check_token_ids(tokenizer: Any, model: Any, folder: Path) -> None:
    """Refuses a tokenizer of another model, whose ids have no row in the embedding table."""
    table = model.get_input_embeddings()
    if not isinstance(table, nn.Embedding):
        return
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= table.num_embeddings:
        raise InputError(
            f"the tokenizer in {folder} has ids up to {largest}, and the model has "
            f"embeddings for {table.num_embeddings}; copy the tokenizer files of the model into it"
        )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keeps the library's reports and bars off the screen; what matters in them is logged here."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def parameters_behind(output: Tensor) -> set[int]:
    """Ids of the parameters that a tensor was computed from, read off its autograd graph."""
    found: set[int] = set()
    seen: set[Any] = set()
    pending: list[Any] = [output.grad_fn]
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        pending.extend(following for following, _ in node.next_functions)
    return found
