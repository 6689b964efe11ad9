"""Tuning an index to a recall, or changing its kind, from the stored vectors."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from sbertkit.arguments import parse_bytes
from sbertkit.encoder import Encoder
from sbertkit.index.kinds.table import KindWish
from sbertkit.retrieval.manifest import Manifest
from sbertkit.retrieval.opening import check_encoder
from sbertkit.retrieval.tuning_queries import QueryTexts, read_queries, text_queries
from sbertkit.retrieval.vector_index import IndexWork
from sbertkit.retrieval.workspace import locked_index, new_generation


def tune_index(
    path: str | os.PathLike[str],
    recall: float,
    encoder: Callable[[Path, Manifest], Encoder],
    *,
    kind: str | None = None,
    factory: str | None = None,
    memory: int | str | None = None,
    queries: QueryTexts | None = None,
) -> Manifest:
    """Makes an index reach a recall, in one commit; no document is encoded again.

    Args:
        path: The index folder.
        recall: The recall@10 to reach.
        encoder: Gives the encoder for an index, called if there are queries to encode: those given,
            or parts of documents where none are stored.
        kind: Another kind; ``None`` keeps the one that was asked for.
        factory: The factory string, for kind ``factory``.
        memory: Bytes in memory at most, or a text such as ``2GB``; ``None`` for any.
        queries: Queries to measure with, see `read_queries`.

    Returns:
        The new manifest.

    Raises:
        InputError: The recall cannot be reached, or an argument is refused; nothing is changed.
        ModelMismatch: The encoder is not the one that built the index.
        StorageError: The disk is full, a permission is missing or another process writes.
    """
    texts = None if queries is None else read_queries(queries)
    with locked_index(path) as (root, manifest):
        old = manifest.wish
        same = kind is None or kind == old.kind
        wish = KindWish(
            old.kind if kind is None else kind,
            recall,
            old.clusters if same else None,
            (factory or old.factory) if same else factory,
            parse_bytes("memory", memory),
        )

        def load() -> Encoder:
            loaded = encoder(root, manifest)
            check_encoder(root, manifest.encoder, loaded)
            return loaded

        fresh = texts is not None or manifest.measured is None
        work = IndexWork(
            partial(text_queries, load, texts=texts) if fresh else None,
            renewed=factory is not None and factory != old.factory,
            tuned=True,
            required=True,
        )
        with new_generation(root) as workspace:
            tuned = replace(manifest.with_wish(wish), generation=workspace.generation)
            tuned = work.settle(workspace, tuned)
            workspace.sync()
            workspace.commit(tuned)
    return tuned
