"""What makes a model a cross-encoder, and what one declares."""

from dataclasses import replace
from typing import Any

from sbertkit.encoder.activations import ACTIVATIONS, DEFAULT_ACTIVATION
from sbertkit.encoder.head import Head
from sbertkit.encoder.layout import ModelFolder
from sbertkit.encoder.network import Network
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.prompts import Declared, Prompts, Warn
from sbertkit.encoder.transformer import Transformer
from sbertkit.errors import InputError


def check_task(options: LoadOptions, declared: ModelFolder, *, new_head: bool = False) -> None:
    """Refuses a model that does something else than what it is loaded for.

    Args:
        options: What it is loaded for.
        declared: What its folder declares.
        new_head: Whether a cross-encoder is to be made of it.

    Raises:
        InputError: A cross-encoder as an encoder of texts, or the other way around.
    """
    if new_head and declared.scores and not declared.has_head:
        raise InputError(
            f"{options.model} is a cross-encoder of several modules, which is not trained here; "
            "take one whose transformer has a head, or an encoder"
        )
    if new_head:
        return
    if options.task == "rerank" and declared.declares_modules and not declared.scores:
        raise not_a_cross_encoder(options.model, "its modules give vectors of texts")
    if options.task == "embed" and declared.scores:
        raise InputError(
            f"{options.model} is a cross-encoder, which scores pairs and gives no vectors; "
            "load it with Reranker.load, or pass it as --rerank"
        )


def not_a_cross_encoder(model: str, reason: str) -> InputError:
    """The refusal of a model that cannot score pairs."""
    return InputError(
        f"{model} is no cross-encoder ({reason}); expected a CrossEncoder of sentence-transformers "
        "with one label, or train one with train-reranker"
    )


def takes_head(options: LoadOptions, declared: ModelFolder, *, new_head: bool = False) -> bool:
    """Whether the head of the transformer gives the score, and no further modules do."""
    declares_none = new_head or not declared.declares_modules
    return options.task == "rerank" and (declared.has_head or declares_none)


def with_new_head(transformer: Transformer) -> Transformer:
    """A classifier whose head and pooler may be random, since they will be trained."""
    base = f"{transformer.model.base_model_prefix}."
    missing = (name for name in transformer.missing if name.startswith(base))
    return replace(transformer, missing=frozenset(one for one in missing if ".pooler." not in one))


def head_of(options: LoadOptions, transformer: Transformer) -> Pooling:
    """The head of a classifier.

    Raises:
        InputError: The files have no weights for it, or it gives several scores.
    """
    base = f"{transformer.model.base_model_prefix}."
    heads = sorted(name for name in transformer.missing if not name.startswith(base))
    if heads:
        raise not_a_cross_encoder(options.model, f"its files have no weights for {heads[0]}")
    check_score_count(options, transformer.label_count)
    return Head()


def check_scores(options: LoadOptions, network: Network) -> None:
    """Refuses a cross-encoder whose modules give several scores."""
    check_score_count(options, network.dim)


def check_score_count(options: LoadOptions, count: int) -> None:
    """Refuses a model with several scores.

    Raises:
        InputError: Such a model.
    """
    if count != 1:
        raise InputError(
            f"{options.model} has {count} labels, and a re-ranker has one, its score; take a "
            "cross-encoder that was trained to rank"
        )


def declared_activation(declared: Declared, config: Any, warn: Warn) -> str:
    """What the model declares to be applied to its scores; ``Sigmoid`` where it declares nothing.

    Args:
        declared: What the folder's config_sentence_transformers.json has.
        config: The transformer's, where older versions of sentence-transformers have it.
        warn: Is called where what is declared is not known here.
    """
    older = getattr(config, "sentence_transformers", None)
    path = (
        declared.activation_fn
        or (older.get("activation_fn") if isinstance(older, dict) else None)
        or getattr(config, "sbert_ce_default_activation_function", None)
    )
    if path is None:
        return DEFAULT_ACTIVATION
    name = str(path).rsplit(".", 1)[-1]
    if name in ACTIVATIONS and str(path).startswith("torch."):
        return name
    warn(
        f"declares the activation {str(path)[:100]!r}, which is not supported: using "
        f"{DEFAULT_ACTIVATION}, which does not change the order"
    )
    return DEFAULT_ACTIVATION


def declared_prompts(name: str, declared: Declared) -> Prompts:
    """The prompt that a cross-encoder puts before the query: its default one.

    Raises:
        InputError: The default prompt is none of its prompts.
    """
    default = declared.default_prompt_name
    if default is None:
        return Prompts()
    prompts = declared.prompts or {}
    if default not in prompts:
        raise InputError(
            f"{name}: config_sentence_transformers.json names the default prompt {default!r}, "
            f"but has prompts for {', '.join(prompts) or 'nothing'} only"
        )
    return Prompts(query=prompts[default] or "")
