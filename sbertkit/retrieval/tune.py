"""Tuning an index to a recall, or changing its kind, from the stored vectors."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from sbertkit.arguments import parse_bytes
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.index.kinds.table import KindWish
from sbertkit.retrieval.fusion import checked_weight
from sbertkit.retrieval.fusion_weight import with_weight
from sbertkit.retrieval.lexical_index import check_words
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.manifest_entries import WeightEntry
from sbertkit.retrieval.opening import check_encoder
from sbertkit.retrieval.tuning_queries import QueryTexts, read_queries, text_queries
from sbertkit.retrieval.vector_index import IndexWork
from sbertkit.retrieval.workspace import locked_index, new_generation

MEASURED = "auto"
"""Instead of a weight: that which is measured."""


def tune_index(
    path: str | os.PathLike[str],
    recall: float | None,
    encoder: Callable[[Path, Manifest], Encoder],
    *,
    weight: float | str | None = None,
    kind: str | None = None,
    factory: str | None = None,
    memory: int | str | None = None,
    queries: QueryTexts | None = None,
) -> Manifest:
    """Makes an index reach a recall, or changes its hybrid search, in one commit.

    No document is encoded again.

    Args:
        path: The index folder.
        recall: The recall@10 to reach; ``None`` leaves the vector index as it is.
        encoder: Gives the encoder for an index, called if there are queries to encode: those given,
            or parts of documents where none are stored.
        weight: The weight of vectors in hybrid search, 0 to 1, or ``auto`` to measure it with parts
            of documents; ``None`` leaves it as it is.
        kind: Another kind; ``None`` keeps the one that was asked for.
        factory: The factory string, for kind ``factory``.
        memory: Bytes in memory at most, or a text such as ``2GB``; ``None`` for any.
        queries: Queries to measure with, see `read_queries`.

    Returns:
        The new manifest.

    Raises:
        InputError: The recall cannot be reached, the weight cannot be measured, or an argument is
            refused; nothing is changed.
        ModelMismatch: The encoder is not the one that built the index.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    of_recall = {"kind": kind, "factory": factory, "memory": memory, "queries": queries}
    idle = next((name for name, value in of_recall.items() if value is not None), None)
    if recall is None and idle is not None:
        raise InputError(f"{idle} (--{idle}) needs a recall (--recall) to reach")
    if recall is None and weight is None:
        raise InputError("give a recall (--recall) to reach, a weight (--weight), or both")
    if weight is not None and weight != MEASURED:
        checked_weight(weight)
    texts = None if queries is None else read_queries(queries)
    with locked_index(path) as (root, manifest):

        @cache
        def load() -> Encoder:
            loaded = encoder(root, manifest)
            check_encoder(root, manifest.encoder, loaded)
            return loaded

        with new_generation(root) as workspace:
            tuned = replace(manifest, generation=workspace.generation)
            if recall is not None:
                fresh = texts is not None or manifest.measured is None
                work = IndexWork(
                    partial(text_queries, load, texts=texts) if fresh else None,
                    renewed=factory is not None and factory != manifest.factory,
                    tuned=True,
                    required=True,
                )
                wish = _wish(manifest.wish, recall, kind, factory, parse_bytes("memory", memory))
                tuned = work.settle(workspace, tuned.with_wish(wish))
            if weight is not None:
                tuned = _weighted(root, tuned, load, weight)
            workspace.sync()
            workspace.commit(tuned)
    return tuned


def _wish(
    old: KindWish, recall: float, kind: str | None, factory: str | None, memory: int | None
) -> KindWish:
    """What is asked of the vector index now."""
    if kind is not None and kind != old.kind:
        return KindWish(kind, recall, None, factory, memory)
    return KindWish(old.kind, recall, old.clusters, factory or old.factory, memory)


def _weighted(
    root: Path, manifest: Manifest, load: Callable[[], Encoder], weight: float | str
) -> Manifest:
    """The manifest with a weight that is given or measured."""
    lexical = check_words(root, manifest.lexical)
    if weight != MEASURED:
        given = WeightEntry(checked_weight(weight))
        return replace(manifest, lexical=replace(lexical, weight=given))
    measured = with_weight(root, replace(manifest, lexical=replace(lexical, weight=None)), load)
    if measured.lexical is None or measured.lexical.weight is None:
        raise InputError(
            f"{root} has too few documents of which one half finds the other to measure a weight "
            "with; give one by weight (--weight), or leave it at 0.5"
        )
    return measured
