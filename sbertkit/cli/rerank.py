"""The options of commands that re-rank."""

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import MODEL
from sbertkit.cli.options import Command, given_options
from sbertkit.errors import InputError, MissingDependency, StorageError
from sbertkit.reranking import RERANK_DEPTH

if TYPE_CHECKING:
    from sbertkit.reranking import Reranker

LoadReranking = Callable[[], dict[str, Any]]

_rerank_option = click.option(
    "--rerank",
    metavar="MODEL",
    type=MODEL,
    help="Order the first hits again by the scores of this cross-encoder: a folder, an export or a "
    "hub name.",
)
_depth_option = click.option(
    "--rerank-depth",
    type=click.IntRange(min=1),
    default=RERANK_DEPTH,
    show_default=True,
    help="How many hits are ordered again.",
)


def rerank_options(command: Command) -> Command:
    """Adds the options of re-ranking; the command, which has ``--device``, gets `load_reranking`.

    That gives the arguments `rerank` and `rerank_depth` of a search, or of an evaluation; none
    without ``--rerank``.
    """

    @functools.wraps(command)
    def with_reranking(*, rerank: str | None, rerank_depth: int, **others: Any) -> Any:
        context = click.get_current_context()
        if rerank is None and "rerank_depth" in given_options(context):
            raise click.UsageError("--rerank-depth needs --rerank MODEL")

        def load() -> dict[str, Any]:
            if rerank is None:
                return {}
            device, trust = context.params["device"], context.params["trust_remote_code"]
            loaded = _load(rerank, device, trust_remote_code=trust)
            return {"rerank": loaded, "rerank_depth": rerank_depth}

        return command(load_reranking=load, **others)

    return _rerank_option(_depth_option(with_reranking))  # type: ignore[return-value]


def _load(model: str, device: str, *, trust_remote_code: bool) -> "Reranker":
    """The re-ranker; on the CPU its export is kept, so that the next command loads no torch."""
    from sbertkit.reranking import Reranker

    reranker = Reranker.load(model, device=device, trust_remote_code=trust_remote_code)
    if reranker.device == "cpu":
        with suppress(InputError, MissingDependency, StorageError):  # torch does
            reranker.export_folder()
    return reranker
