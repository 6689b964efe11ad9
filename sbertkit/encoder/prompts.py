"""The texts put before queries and documents, for the models that were trained with such."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sbertkit.errors import InputError, InputTypeError
from sbertkit.schema import Positive

Warn = Callable[[str], None]
"""Logs what is to be known of a model, each after its name."""

_QUERY_NAMES = ("query",)
_DOCUMENT_NAMES = ("document", "passage", "corpus")


class Prompts(NamedTuple):
    """What is put before a query and before a document."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What is read of a model's config_sentence_transformers.json.

    Attributes:
        prompts: By their names; an empty one is a statement, ``None`` is not.
        default_prompt_name: Which of them goes before a text that none is named for.
        similarity_fn_name: How vectors are compared.
        truncate_dim: The size that vectors are truncated to.
        activation_fn: What a cross-encoder applies to its scores, by its class in torch.
    """

    prompts: dict[str, str | None] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: str | None = None
    truncate_dim: Positive | None = None
    activation_fn: str | None = None


class _KnownPrompts(NamedTuple):
    pattern: re.Pattern[str]
    prompts: Prompts


_KNOWN = (
    # Wang et al. 2022, Text Embeddings by Weakly-Supervised Contrastive Pre-training, section 4.1
    _KnownPrompts(
        re.compile(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", re.IGNORECASE),
        Prompts("query: ", "passage: "),
    ),
    # Xiao et al. 2023, C-Pack, and the model cards of BAAI/bge-*
    _KnownPrompts(
        re.compile(r"bge-(small|base|large)-en(-v1\.5)?", re.IGNORECASE),
        Prompts("Represent this sentence for searching relevant passages: "),
    ),
    _KnownPrompts(
        re.compile(r"bge-(small|base|large)-zh(-v1\.5)?", re.IGNORECASE),
        Prompts("为这个句子生成表示以用于检索相关文章："),
    ),
)


def prompts_from(given: Mapping[str, str]) -> Prompts:
    """Prompts from what a caller passes: ``query`` and ``document``, each optional.

    Raises:
        InputError: Another key or a value that is not a string.
        InputTypeError: Not a mapping.
    """
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"prompts must map 'query' and 'document' to strings, found {type(given).__name__}"
        )
    for key, value in given.items():
        if key not in Prompts._fields or not isinstance(value, str):
            raise InputError(
                f"prompts must map 'query' and 'document' to strings, not {key!r} to {value!r}"
            )
    return Prompts(**given)


def last_part(name: str) -> str:
    """The last part of a model's name or path, by which some models are known."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def prompts_of_model(name: str, declared: Declared, warn: Warn) -> Prompts:
    """Prompts that a model declares, else those known for its name.

    Args:
        name: The model's name or path, of which the last part is looked up.
        declared: What it declares.
        warn: Is called where known prompts are taken.

    Raises:
        InputError: The default prompt is none of its prompts.
    """
    prompts = declared.prompts or {}
    default_name = declared.default_prompt_name
    if default_name is not None and default_name not in prompts:
        raise InputError(
            f"{name}: config_sentence_transformers.json names the default prompt {default_name!r}, "
            f"but has prompts for {', '.join(prompts) or 'nothing'} only"
        )
    if prompts:
        default = "" if default_name is None else prompts[default_name] or ""
        query = _first(prompts, _QUERY_NAMES)
        document = _first(prompts, _DOCUMENT_NAMES)
        return Prompts(
            default if query is None else query, default if document is None else document
        )
    known = known_prompts(name)
    if known is None:
        return Prompts()
    warn(
        f"was trained with prompts and declares none: using query {known.query!r} and document "
        f"{known.document!r}; pass prompts={{}} for none"
    )
    return known


def known_prompts(name: str) -> Prompts | None:
    """Prompts known for a model's name or path, by its last part."""
    part = last_part(name)
    return next((one.prompts for one in _KNOWN if one.pattern.fullmatch(part)), None)


def _first(prompts: Mapping[str, str | None], names: tuple[str, ...]) -> str | None:
    """The first prompt that is declared under one of the names; an empty one counts."""
    return next((prompts[name] for name in names if prompts.get(name) is not None), None)
