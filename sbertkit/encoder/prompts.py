"""The texts put before queries and documents, for the models that were trained with such."""

import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sbertkit.errors import InputError, InputTypeError

logger = logging.getLogger(__name__)

_QUERY_NAMES = ("query",)
_DOCUMENT_NAMES = ("document", "passage", "corpus")


class Prompts(NamedTuple):
    """What is put before a query and before a document."""

    query: str = ""
    document: str = ""


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


def prompts_of_model(name: str, config: Mapping[str, Any]) -> Prompts:
    """Prompts that the folder's configuration declares, else those known for the model's name.

    Args:
        name: The model's name or path, of which the last part is looked up.
        config: The content of config_sentence_transformers.json.

    Raises:
        InputError: What it declares are no prompts.
    """
    declared = _declared_prompts(name, config)
    default_name = config.get("default_prompt_name")
    if default_name is not None and default_name not in declared:
        raise InputError(
            f"{name}: config_sentence_transformers.json names the default prompt {default_name!r}, "
            f"but has prompts for {', '.join(declared) or 'nothing'} only"
        )
    default = declared[default_name] if default_name is not None else ""
    query = _first(declared, _QUERY_NAMES)
    document = _first(declared, _DOCUMENT_NAMES)
    if query or document or default:
        return Prompts(query or default, document or default)
    if declared:  # declared empty on purpose
        return Prompts()
    last = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    for known in _KNOWN:
        if known.pattern.fullmatch(last):
            logger.warning(
                "%s was trained with prompts and declares none: using query %r and document %r; "
                "pass prompts={} for none",
                last,
                *known.prompts,
            )
            return known.prompts
    return Prompts()


def _declared_prompts(name: str, config: Mapping[str, Any]) -> dict[str, str]:
    declared = config.get("prompts") or {}
    if not isinstance(declared, Mapping) or not all(
        isinstance(prompt, str | None) for prompt in declared.values()
    ):
        raise InputError(
            f"{name}: config_sentence_transformers.json must map prompt names to strings, "
            f"found {declared!r}"
        )
    return {key: prompt or "" for key, prompt in declared.items()}


def _first(declared: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((declared[name] for name in names if declared.get(name)), "")
