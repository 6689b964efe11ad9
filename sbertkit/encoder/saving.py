"""Writes a model as a folder in the layout of sentence-transformers."""

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from sbertkit.encoder.head import Head
from sbertkit.encoder.layout import pooling_flags
from sbertkit.encoder.long_attention import DECLARED_GLOBAL, unused_head
from sbertkit.encoder.model_files import LINEAGE_FILE, MODULES_FILE
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.encoder.postprocessors import Truncate
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.encoder.torch_model import TorchModel
from sbertkit.encoder.transformer import Transformer, quiet_transformers
from sbertkit.errors import InputError
from sbertkit.storage import clear_leftovers, staged_folder, storage_errors, writer_errors

_FORMAT = 1
_BASE_MODULES = "sentence_transformers.base.modules"
CROSS_ENCODER: Mapping[str, Any] = {
    "transformer_task": "sequence-classification",
    "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
    "module_output_name": "scores",
}
"""How a folder of sentence-transformers says that its transformer is a classifier of pairs."""


def save_model(
    model: TorchModel, folder: Path, *, lineage: Mapping[str, Any] | None = None
) -> None:
    """Writes the folder in one step; see `Encoder.save` and `write_model_files`."""
    with storage_errors(folder):
        clear_leftovers(folder)
        check_model_target(folder)
        with staged_folder(folder, last=MODULES_FILE) as staged:
            write_model_files(model, staged, lineage=lineage)


def write_model_files(
    model: TorchModel,
    folder: Path,
    *,
    lineage: Mapping[str, Any] | None = None,
    add: Callable[[Path], None] | None = None,
) -> None:
    """Writes the files into an empty folder, which the caller puts in its place.

    Args:
        model: What to save.
        folder: Where to.
        lineage: How the model came about, as JSON can hold it.
        add: Writes further files into the folder.

    Raises:
        OSError: A file cannot be written, as on a full disk.
    """
    # So safetensors and tokenizers report a full disk, the latter without a type of its own.
    with writer_errors(folder, SafetensorError, Exception):
        _write_folder(model, folder)
        if add is not None:
            add(folder)
    _write_json(
        folder / LINEAGE_FILE,
        {
            "format": _FORMAT,
            "files": sorted(_files_in(folder)),
            "fingerprint": model.fingerprint,
            "lineage": {
                "base": lineage_name(model.spec.options.model),
                "pooling": model.spec.pooling,
                **(lineage or {}),
            },
        },
    )


def lineage_name(model: str) -> str:
    """What a saved model calls a model or file: a hub name, or no more than a folder's own name."""
    path = Path(model)
    local = path.is_absolute() or path.exists()
    return Path(os.path.normpath(path.absolute())).name if local else model


def check_model_target(folder: Path) -> None:
    """Refuses a folder in which anything else than an earlier saved model would be overwritten.

    Raises:
        InputError: The folder is a file, or holds what sbertkit did not write.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder to write the model to")
    lineage = folder / LINEAGE_FILE
    try:
        ours = {*json.loads(lineage.read_bytes())["files"], LINEAGE_FILE}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        ours = set()
    others = sorted(_files_in(folder) - ours)
    if others:
        raise InputError(
            f"{folder} holds {others[0]}"
            + (f" and {len(others) - 1} more files" if len(others) > 1 else "")
            + ", which sbertkit did not write there; choose an empty or new folder"
        )


def _files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _write_folder(model: TorchModel, folder: Path) -> None:
    if model.spec.scores_pairs:
        _write_cross_encoder(model, folder)
        return
    _write_transformer(model, folder)
    _write_tokenizer(model, folder)
    _write_settings(model, folder)
    modules = ["Transformer"]
    modules += _write_pooling(model, folder)
    for module in model.postprocessors:
        place = folder / f"{len(modules)}_{module.st_name}"
        written = module.dense() if isinstance(module, Truncate) else module
        _write_module(place, written.config(), written)  # type: ignore[operator]
        modules.append(str(module.st_name))
    _write_json(
        folder / MODULES_FILE,
        [
            {
                "idx": position,
                "name": str(position),
                "path": f"{position}_{name}" if position else "",
                "type": f"sentence_transformers.models.{name}",
            }
            for position, name in enumerate(modules)
        ],
    )


def _write_cross_encoder(model: TorchModel, folder: Path) -> None:
    """Writes a classifier of pairs as sentence-transformers' CrossEncoder does.

    Raises:
        InputError: It has further modules.
    """
    if not isinstance(model.network.pooling, Head):
        raise InputError(
            f"{model.spec.options.model} is a cross-encoder of several modules, which is not saved "
            "here; copy its folder"
        )
    activation = f"torch.nn.{model.spec.activation}"
    config = model.transformer.model.config
    # Where older versions of sentence-transformers look for it.
    with _changed(config, sentence_transformers={"activation_fn": activation}):
        _write_transformer(model, folder)
    _write_tokenizer(model, folder)
    _write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": model.spec.max_tokens, **CROSS_ENCODER},
    )
    prompt = model.spec.prompts.query
    _write_json(
        folder / "config_sentence_transformers.json",
        {
            "model_type": "CrossEncoder",
            "activation_fn": activation,
            "prompts": {"query": prompt} if prompt else {},
            "default_prompt_name": "query" if prompt else None,
        },
    )
    _write_json(
        folder / MODULES_FILE,
        [{"idx": 0, "name": "0", "path": "", "type": f"{_BASE_MODULES}.transformer.Transformer"}],
    )


def _write_transformer(model: TorchModel, folder: Path) -> None:
    transformer = model.transformer
    # Weights that the files lacked are random and must not pass for trained ones.
    weights = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in transformer.model.state_dict().items()
        if name not in transformer.missing
    }
    if transformer.global_attention:
        weights |= unused_head(transformer.hidden_size)
    layers = bool(model.network.pooling.layers)
    with quiet_transformers(), _changed(transformer.model.config, output_hidden_states=layers):
        transformer.model.save_pretrained(folder, state_dict=weights, safe_serialization=True)


def _write_tokenizer(model: TorchModel, folder: Path) -> None:
    tokenizer = model.spec.tokenizer.hf
    changes: dict[str, Any] = {
        "padding_side": "left" if model.transformer.pads_left else "right",
        # Any token that it has will do for padding, which no vector depends on.
        "pad_token": tokenizer.pad_token or tokenizer.eos_token or tokenizer.unk_token,
    }
    if model.spec.max_tokens is not None:
        changes["model_max_length"] = model.spec.max_tokens
    with quiet_transformers(), _changed(tokenizer, **changes):
        tokenizer.save_pretrained(folder)
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            return
        read_again = Tokenizer(type(tokenizer).from_pretrained(folder, local_files_only=True))
    if read_again.canonical_json() != model.spec.tokenizer.canonical_json():
        # A class that rebuilds its tokenizer loses what was changed in it (an appended end
        # token, lower-casing); the generic class takes tokenizer.json as it is.
        path = folder / "tokenizer_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        for setting in ("add_bos_token", "add_eos_token"):  # with these it would be rebuilt as well
            config.pop(setting, None)
        config["model_input_names"] = tokenizer.model_input_names
        _write_json(path, config)


def _write_settings(model: TorchModel, folder: Path) -> None:
    transformer: dict[str, Any] = {"max_seq_length": model.spec.max_tokens, "do_lower_case": False}
    tokenizer = model.spec.tokenizer.hf
    if not (tokenizer.pad_token or tokenizer.eos_token or tokenizer.unk_token):
        # sentence-transformers does not batch without one. In the tokenizer's own files it would
        # become a special token, and texts and fingerprint others; a long one is in few texts.
        transformer["tokenizer_args"] = {"pad_token": max(tokenizer.get_vocab(), key=_longest)}
    if model.transformer.global_attention:
        transformer |= DECLARED_GLOBAL
    elif _lacks_its_pooler(model.transformer):
        # else sentence-transformers makes one, which nothing uses, and warns of its weights
        transformer["model_args"] = {"add_pooling_layer": False}
    _write_json(folder / "sentence_bert_config.json", transformer)
    # Which a module does, before the normalization.
    declared = {key: value for key, value in model.settings.items() if key != "truncate_dim"}
    default = declared.get("default_prompt_name")
    if default is None or model.spec.options.prompts is not None:
        default = "document" if model.spec.prompts.document else None
    _write_json(
        folder / "config_sentence_transformers.json",
        {
            "similarity_fn_name": "cosine",
            **declared,
            "prompts": {**(declared.get("prompts") or {}), **model.spec.prompts._asdict()},
            "default_prompt_name": default,
        },
    )


def _lacks_its_pooler(transformer: Transformer) -> bool:
    """Whether there are no weights for the pooler that a model may have."""
    takes = "add_pooling_layer" in inspect.signature(type(transformer.model).__init__).parameters
    return takes and any(name.startswith("pooler.") for name in transformer.missing)


def _longest(token: str) -> tuple[int, str]:
    return len(token), token


def _write_pooling(model: TorchModel, folder: Path) -> list[str]:
    """Writes the pooling's modules; gives their names in order."""
    pooling = model.network.pooling
    names = []
    size = model.transformer.hidden_size
    if pooling.layers:
        names.append("WeightedLayerPooling")
        count = model.transformer.layer_count
        start = min(pooling.layers)
        weights = [1.0 if layer in pooling.layers else 0.0 for layer in range(start, count + 1)]
        place = folder / "1_WeightedLayerPooling"
        config = {
            "word_embedding_dimension": size,
            "layer_start": start,
            "num_hidden_layers": count,
        }
        _write_module(place, config, None)
        save_file({"layer_weights": torch.tensor(weights)}, place / "model.safetensors")
    # The flags are read by every version of sentence-transformers, `pooling_mode` by the newest.
    config = {"word_embedding_dimension": size, **pooling_flags(POOLINGS[pooling.name].st_name)}
    _write_module(folder / f"{len(names) + 1}_Pooling", config, None)
    return [*names, "Pooling"]


def _write_module(place: Path, config: dict[str, Any], module: nn.Module | None) -> None:
    place.mkdir()
    _write_json(place / "config.json", config)
    if module is not None and (weights := module.state_dict()):
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        save_file(tensors, place / "model.safetensors")


@contextmanager
def _changed(thing: Any, **values: Any) -> Iterator[None]:
    """Sets attributes inside the block; what is saved must not change the loaded encoder."""
    before = {name: getattr(thing, name, None) for name in values}
    try:
        for name, value in values.items():
            setattr(thing, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(thing, name, value)


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
