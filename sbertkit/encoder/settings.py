"""What an encoder is to be, from what the caller asks and what the model declares."""

import json
from collections.abc import Mapping
from typing import Any

from torch import nn

from sbertkit.encoder.layout import ModelFolder
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.pooling import Pooling, pooling_of_st
from sbertkit.encoder.postprocessors import Normalize, Truncate
from sbertkit.encoder.prompts import Declared, Warn
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.encoder.transformer import Transformer
from sbertkit.errors import InputError

_DEFAULT_POOLING = "mean"
_COSINE = (None, "cosine")
_SAME_ORDER = (*_COSINE, "dot", "euclidean")
"""Similarities of vectors of unit length that order as the cosine does."""
_MAX_LENGTH = 1_000_000
"""What a tokenizer declares beyond that stands for "not known"; transformers writes 1e30."""


def choose_pooling(
    options: LoadOptions, declared: ModelFolder, transformer: Transformer, warn: Warn
) -> Pooling:
    """The pooling asked for, else the declared one, else ``mean`` with a warning."""
    count = transformer.layer_count
    if options.pooling is not None:
        return Pooling.named(options.pooling, count)
    if declared.pooling_mode is not None:
        if any(not 0 <= layer <= count for layer in declared.layers):
            raise InputError(
                f"{options.model}: layer weights for hidden states {declared.layers}, but the "
                f"model has {count} layers"
            )
        return pooling_of_st(declared.pooling_mode, declared.layers, count)
    warn("declares no pooling: using mean over the tokens; choose with pooling (--pooling)")
    return Pooling.named(_DEFAULT_POOLING, count)


def choose_postprocessors(
    options: LoadOptions, declared: ModelFolder, size: int
) -> list[nn.Module]:
    """The declared post-processing, with one normalization at its end or none, as asked for.

    Before that vectors are truncated as asked for or declared. sentence-transformers truncates
    after the normalization, which gives vectors of the same direction.

    Args:
        options: What is asked for.
        declared: What the model declares.
        size: Of the vectors that pooling gives.

    Raises:
        InputError: More numbers than a vector has are asked for.
    """
    modules = list(declared.postprocessors)
    while modules and isinstance(modules[-1], Normalize):
        modules.pop()
    wanted = options.normalize
    if wanted is None:
        wanted = len(modules) < len(declared.postprocessors) or not declared.declares_modules
    for module in modules:
        size = module.out_dim(size)  # type: ignore[operator]  # a PostProcessor
    if options.dim is not None and options.dim > size:
        raise InputError(
            f"dim {options.dim} is more than the {size} numbers of a vector of {options.model}; "
            f"choose at most {size}"
        )
    dim = options.dim or declared.declared.truncate_dim or size
    if dim < size:
        modules.append(Truncate(size, dim))
    return [*modules, Normalize()] if wanted else modules


def check_similarity(
    options: LoadOptions, declared: Declared, warn: Warn, *, normalizes: bool
) -> None:
    """Warns where the model declares a similarity that orders otherwise than the cosine."""
    name = declared.similarity_fn_name
    if options.normalize is None and name not in (_SAME_ORDER if normalizes else _COSINE):
        warn(
            f"declares the similarity {name!r}, which orders otherwise than the cosine that "
            "sbertkit searches and scores by"
        )


def choose_limit(
    options: LoadOptions,
    declared: ModelFolder,
    transformer: Transformer,
    tokenizer: Tokenizer,
    warn: Warn,
) -> int | None:
    """Tokens a text may have, as asked for or as sentence-transformers would set it.

    Raises:
        InputError: More than the position table holds, or no room beside the special tokens.
    """
    if options.max_tokens is not None:
        check_limit(options.max_tokens, options.model, transformer, tokenizer)
        return options.max_tokens
    table = transformer.position_limit
    special = len(tokenizer.special)
    limit = declared.max_tokens
    if limit is None:
        length = transformer.tokenizer.model_max_length
        limit = int(length) if length < _MAX_LENGTH else None
    if limit is not None and limit <= special:
        raise InputError(
            f"{options.model} declares a limit of {limit} tokens, which leaves no room for text "
            f"beside {special} special tokens; pass max_tokens"
        )
    if table is None:
        return limit
    if limit is not None and limit > table:
        warn(f"declares a limit of {limit} tokens but has {table} positions: using {table}")
    return table if limit is None else min(limit, table)


def check_limit(limit: int, model: str, transformer: Transformer, tokenizer: Tokenizer) -> None:
    """Refuses a limit that a model cannot have.

    Raises:
        InputError: More than the position table holds, or no room beside the special tokens.
    """
    table = transformer.position_limit
    special = len(tokenizer.special)
    if table is not None and limit > table:
        raise InputError(
            f"max_tokens {limit} is more than the {table} positions of {model}; "
            f"choose at most {table}"
        )
    if limit <= special:
        raise InputError(
            f"max_tokens {limit} leaves no room for text beside {special} special tokens; "
            f"choose at least {special + 1}"
        )


def lower_casing(tokenizer: Any) -> None:
    """Makes a tokenizer lower-case its input first, as `do_lower_case` of a model folder asks.

    Raises:
        InputError: The tokenizer is written in Python and has no such step.
    """
    from tokenizers import normalizers

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"the model declares do_lower_case, which its tokenizer ({type(tokenizer).__name__}) "
            "cannot do: not supported"
        )
    old = backend.normalizer
    if old is not None and _lower_cases(json.loads(old.__getstate__())):
        return
    steps = [normalizers.Lowercase()] if old is None else [normalizers.Lowercase(), old]
    backend.normalizer = normalizers.Sequence(steps)


def _lower_cases(normalizer: Mapping[str, Any]) -> bool:
    """Whether a normalizer of the tokenizers library, as its JSON, has a lower-casing step."""
    if normalizer["type"] == "Sequence":
        return any(_lower_cases(step) for step in normalizer["normalizers"])
    return normalizer["type"] == "Lowercase" or bool(normalizer.get("lowercase"))
