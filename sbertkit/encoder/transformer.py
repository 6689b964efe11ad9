"""The pretrained encoder below the pooling: loading its weights safely and knowing its limits."""

import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers.utils import logging as transformers_logging

from sbertkit.errors import InputError

logger = logging.getLogger(__name__)

_ENCODER_CLASSES = {
    "clip": "CLIPTextModel",
    "clip_text_model": "CLIPTextModel",
    "longt5": "LongT5EncoderModel",
    "mt5": "MT5EncoderModel",
    "t5": "T5EncoderModel",
    "umt5": "UMT5EncoderModel",
}
"""Model types whose text encoder is not what AutoModel gives."""

_LOADING_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    ImportError,
    SafetensorError,
    StrictDataclassError,
)
"""What the libraries raise for files that are cut, damaged or of an unknown kind."""

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tekken.json")


@dataclass(frozen=True, slots=True)
class Transformer:
    """A loaded encoder with its tokenizer, in float32.

    Attributes:
        model: The transformers model, in evaluation mode.
        tokenizer: The transformers tokenizer.
        missing: Names of weights that the files lack or have in another size, which therefore are
            random.
    """

    model: Any
    tokenizer: Any
    missing: frozenset[str]

    @property
    def layer_count(self) -> int:
        """Number of layers, as hidden states are counted."""
        config = self.model.config
        return int(getattr(config, "num_hidden_layers", None) or config.num_layers)

    @property
    def hidden_size(self) -> int:
        """Size of a token vector."""
        config = self.model.config
        return int(getattr(config, "hidden_size", None) or config.d_model)

    @property
    def takes_types(self) -> bool:
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
    def pads_left(self) -> bool:
        """Whether to pad on the left: relative positions and a tokenizer that says so."""
        return self.position_limit is None and self.tokenizer.padding_side == "left"


def load_transformer(folder: Path, *, trust_remote_code: bool = False) -> Transformer:
    """The encoder and tokenizer of a Hugging Face folder, from safetensors alone.

    Raises:
        InputError: The folder is no such model, its weights are not in safetensors or do not fit.
    """
    try:
        with quiet_transformers():
            config = transformers.AutoConfig.from_pretrained(
                folder, trust_remote_code=trust_remote_code, local_files_only=True
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=trust_remote_code, local_files_only=True
            )
            model, info = _model_class(config).from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                trust_remote_code=trust_remote_code,
                local_files_only=True,
                **_full_attention(config, folder),
            )
    except _LOADING_ERRORS as error:
        raise InputError(_refusal(folder, error)) from error
    _check_tokenizer_files(tokenizer, folder)
    model.eval()
    model.requires_grad_(requires_grad=False)
    mismatched = {name for name, *_ in info["mismatched_keys"]}
    return Transformer(model, tokenizer, frozenset(info["missing_keys"]) | mismatched)


def _model_class(config: Any) -> Any:
    return getattr(transformers, _ENCODER_CLASSES.get(config.model_type, "AutoModel"))


def _full_attention(config: Any, folder: Path) -> dict[str, str]:
    """The setting for full attention where the config asks for random blocks.

    A vector would depend on the texts beside and before it: the library gives up the blocks for
    good at the first short batch, lays them out by the padded length and, in training, draws them
    from numpy's global state, which it seeds anew.
    """
    if getattr(config, "attention_type", None) != "block_sparse":
        return {}
    logger.warning(
        "%s has block-sparse attention, with which a vector depends on its batch: using full "
        "attention, whose memory grows with the square of max_tokens (--max-tokens)",
        folder,
    )
    return {"attention_type": "original_full"}


def _check_tokenizer_files(tokenizer: Any, folder: Path) -> None:
    """Refuses a folder without vocabulary: the library would make one of special tokens alone."""
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        return  # written in Python; some need no file
    names = {*_TOKENIZER_FILES, *type(tokenizer).vocab_files_names.values()}
    if not any((folder / name).is_file() for name in names):
        raise InputError(
            f"{folder} has no tokenizer: expected one of {', '.join(sorted(names))}; "
            "copy the tokenizer files of the model into it"
        )


def _refusal(folder: Path, error: Exception) -> str:
    if not (folder / "config.json").is_file():
        return (
            f"{folder} is not a model folder: expected a config.json in it; "
            "pass a sentence-transformers or Hugging Face folder"
        )
    if not list(folder.glob("*.safetensors")):
        return (
            f"{folder} has no *.safetensors file, the only weight format that is read; "
            "convert the weights with safetensors.torch.save_model"
        )
    reason = " ".join(str(error).split())
    if "trust_remote_code" in reason:
        return (
            f"the model in {folder} runs code of its own; allow it with trust_remote_code=True "
            "(--trust-remote-code)"
        )
    return f"the model in {folder} cannot be loaded: {reason[:300]}"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keeps the library's reports and bars off the screen; what matters in them is said by us."""
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
