"""The folder layout of sentence-transformers: what a model folder declares."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn

from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.long_attention import DECLARED_GLOBAL, GLOBAL_MODELS
from sbertkit.encoder.model_files import MODULES_FILE, Module
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.encoder.postprocessors import POSTPROCESSORS, SCORES, build_postprocessor
from sbertkit.encoder.prompts import Declared
from sbertkit.encoder.weights import tensor_shapes
from sbertkit.errors import InputError
from sbertkit.files import inside, read_regular
from sbertkit.schema import Count, Record, as_record, parse_json

_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_POOLING_FLAGS = {kind.st_flag: kind.st_name for kind in POOLINGS.values()}
_DEFAULT_LAYER_START = 4
_CLASSIFICATION = "sequence-classification"
_TASKS = ("feature-extraction", _CLASSIFICATION)


@dataclass(frozen=True, slots=True)
class _TransformerConfig:
    max_seq_length: Count | None = None
    do_lower_case: bool | None = None
    transformer_task: str = "feature-extraction"


@dataclass(frozen=True, slots=True)
class _PoolingConfig:
    """The pooling by its mode's name; else there is one flag for each mode."""

    pooling_mode: str | list[str] | None = None
    include_prompt: bool | None = True


@dataclass(frozen=True, slots=True)
class _LayersConfig:
    layer_start: Count = _DEFAULT_LAYER_START


@dataclass(slots=True)
class ModelFolder:
    """What a folder says about itself.

    Attributes:
        transformer: Folder of the encoder's own files.
        declares_modules: Whether there is a modules.json; else it is a plain encoder.
        pooling_mode: sentence-transformers' name of the pooling, if one is declared.
        layers: Hidden states whose average is pooled; empty for the output alone.
        postprocessors: Post-processing in order.
        max_tokens: The declared limit, if any.
        has_head: Whether the transformer is a classifier of sequences.
        scores: Whether the model gives scores of pairs in place of vectors of texts.
        lower_case: Whether texts are lower-cased before tokenizing.
        global_attention: Whether the first token has global attention in a model where that is for
            its user to say: in a plain encoder it has, else it has where that is declared, as
            sentence-transformers gives it to none by itself.
        settings: The content of config_sentence_transformers.json.
        declared: What is read of it.
    """

    transformer: Path
    declares_modules: bool = False
    pooling_mode: str | None = None
    layers: tuple[int, ...] = ()
    postprocessors: list[nn.Module] = field(default_factory=list)
    max_tokens: int | None = None
    has_head: bool = False
    scores: bool = False
    lower_case: bool = False
    global_attention: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    declared: Declared = field(default_factory=Declared)


def read_model_folder(folder: Path) -> ModelFolder:
    """What the folder declares; weights of post-processing are read, those of the encoder not.

    Raises:
        InputError: A module that is not supported, a broken or missing file.
    """
    modules_file = folder / MODULES_FILE
    if not modules_file.is_file():
        return ModelFolder(folder, global_attention=True)
    model = ModelFolder(folder, declares_modules=True)
    settings_file = folder / "config_sentence_transformers.json"
    if settings_file.is_file():
        model.settings = read_object(settings_file)
        model.declared = as_record(model.settings, Declared, settings_file)
    modules = _read(modules_file, list[Module])
    if not modules:
        raise InputError(f"{modules_file}: expected a list of modules, found an empty one")
    for position, module in enumerate(modules):
        _read_module(model, folder, module, position)
    return model


def pooling_flags(mode: str) -> dict[str, bool]:
    """The settings of a Pooling module that has that one mode."""
    return {flag: mode == flagged for flag, flagged in _POOLING_FLAGS.items()}


def read_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file of a model folder, where files may be links as in the hub cache.

    Raises:
        InputError: It is missing, no JSON object, or too large.
    """
    return _read(path, dict[str, Any])


def _read_module(model: ModelFolder, folder: Path, module: Module, position: int) -> None:
    """Adds one entry of modules.json to what is known of the model."""
    name = module.type.rsplit(".", 1)[-1]
    # The first module is the encoder, and no other is.
    known = module.type.startswith("sentence_transformers.") and (
        (name == "Transformer") == (position == 0)
    )
    known = known and (not model.has_head or name == "Dropout")
    place = folder
    if module.path:
        with library_errors(f"{folder}: module {position} points to no folder in it"):
            place = inside(folder, module.path)
    if known and name == "Transformer":
        _read_transformer(model, place)
    elif known and name == "WeightedLayerPooling" and model.pooling_mode is None:
        model.layers = _read_layers(place)
    elif known and name == "Pooling" and model.pooling_mode is None:
        model.pooling_mode = _read_pooling_mode(place / "config.json")
    elif known and name == "Dropout":
        pass  # does nothing outside training
    elif known and name in POSTPROCESSORS and model.pooling_mode is not None:
        config_file = place / "config.json"
        config = read_object(config_file) if config_file.is_file() else {}
        model.scores = config.get("module_output_name") == SCORES
        weights = _read_weights(place, name)
        model.postprocessors.append(build_postprocessor(name, config, weights, config_file))
    else:
        if model.has_head:
            raise InputError(
                f"{folder}: task {_CLASSIFICATION!r} is not supported with module {position}, "
                f"{module.type}; a cross-encoder has none"
            )
        raise InputError(
            f"{folder}: module {position} is {module.type}, which is not supported there; expected "
            "Transformer, then Pooling (WeightedLayerPooling before it), then any of "
            f"{', '.join(sorted(POSTPROCESSORS))} or Dropout, all of sentence_transformers"
        )


def _read_transformer(model: ModelFolder, place: Path) -> None:
    model.transformer = place
    found = (place / name for name in _TRANSFORMER_CONFIGS if (place / name).is_file())
    path = next(found, None)
    if path is None:
        return
    content = read_object(path)
    config = as_record(content, _TransformerConfig, path)
    if DECLARED_GLOBAL.items() <= content.items():
        model_type = read_object(place / "config.json").get("model_type")
        model.global_attention = model_type in GLOBAL_MODELS
    model.has_head = config.transformer_task == _CLASSIFICATION and not model.global_attention
    model.scores = model.has_head
    if config.transformer_task not in _TASKS and not model.global_attention:
        raise InputError(f"{path}: task {config.transformer_task!r} is not supported")
    model.max_tokens = config.max_seq_length or None
    model.lower_case = bool(config.do_lower_case)


def _read_pooling_mode(path: Path) -> str:
    content = read_object(path)
    config = as_record(content, _PoolingConfig, path)
    given = {flag: content[flag] for flag in _POOLING_FLAGS.keys() & content.keys()}
    flags = as_record(given, dict[str, bool], path)
    modes = config.pooling_mode
    if modes is None:
        modes = sorted(mode for flag, mode in _POOLING_FLAGS.items() if flags.get(flag))
    elif isinstance(modes, str):
        modes = [modes]
    if len(modes) != 1:
        raise InputError(f"{path}: expected one pooling mode, found {len(modes)} ({modes})")
    if config.include_prompt is False:
        raise InputError(f"{path}: pooling that leaves the prompt out is not supported")
    known = _POOLING_FLAGS.values()
    if modes[0] not in known:
        raise InputError(
            f"{path}: unknown pooling mode {modes[0][:100]!r}; expected one of {', '.join(known)}"
        )
    return modes[0]


def _read_layers(place: Path) -> tuple[int, ...]:
    start = _read(place / "config.json", _LayersConfig).layer_start
    weights = _read_weights(place, "WeightedLayerPooling").get("layer_weights")
    if (
        weights is None
        or weights.ndim != 1
        or not set(weights.tolist()) <= {0.0, 1.0}
        or not weights.any()
    ):
        raise InputError(f"{place}: only layer weights of 0 and 1 are supported")
    return tuple(start + offset for offset, weight in enumerate(weights.tolist()) if weight)


def _read_weights(place: Path, name: str) -> dict[str, Tensor]:
    path = place / "model.safetensors"
    if not path.is_file():
        if name == "Normalize":
            return {}
        raise InputError(f"{place}: no model.safetensors for the module {name}")
    tensor_shapes(path)  # a regular file with a header that is right
    with library_errors(f"the weights in {path} cannot be loaded"):
        return load_file(path)


def _read(path: Path, kind: type[Record]) -> Record:
    try:
        content = read_regular(path, follow=True)
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing; the model folder is not complete") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return as_record(parse_json(content, path), kind, path)
