"""The command ``search``."""

from typing import Any

import click

from sbertkit.cli.completion import INDEX, MODEL, PATH
from sbertkit.cli.fusion import mode_options
from sbertkit.cli.options import device_option, filter_option, quiet_option, trust_option
from sbertkit.cli.rerank import LoadReranking, rerank_options
from sbertkit.cli.search.hits import PRINTERS, Shown
from sbertkit.cli.settings import Names
from sbertkit.progress import say
from sbertkit.retrieval.modes import HIT_CHOICES, mode_taken


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.argument("texts", metavar="[QUERY...]", nargs=-1)
@click.option(
    "--queries",
    metavar="FILE",
    type=PATH,
    help="Queries with ids: JSON Lines, TSV, CSV, Parquet, a BEIR folder; or lines of text.",
)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits per query."
)
@mode_options(None)
@click.option(
    "--hits",
    type=click.Choice(HIT_CHOICES),
    default=HIT_CHOICES[0],
    show_default=True,
    help="Documents, each with its best passage, or passages.",
)
@filter_option
@click.option(
    "--model", metavar="MODEL", type=MODEL, help="By default, the one that the index names."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(tuple(PRINTERS)),
    default="table",
    show_default=True,
)
@click.option(
    "--fields",
    type=Names(),
    metavar="NAMES",
    help="Fields of the metadata to show; by default those that fit the table.",
)
@click.option(
    "--width",
    type=click.IntRange(min=40),
    metavar="COLUMNS",
    help="Of the table; by default, as the terminal.",
)
@rerank_options
@click.option(
    "--explain",
    is_flag=True,
    help="Say on standard error how the index is searched; show score and rank of each stage, "
    "and the words that matched.",
)
@device_option
@trust_option
@quiet_option
def search(
    directory: str,
    texts: tuple[str, ...],
    queries: str | None,
    k: int,
    mode: str | None,
    hits: str,
    condition: str | None,
    model: str | None,
    output_format: str,
    fields: tuple[str, ...] | None,
    width: int | None,
    load_reranking: LoadReranking,
    fusion: dict[str, Any],
    explain: bool,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Search the index DIR.

    Every QUERY is one query; - reads one per line from standard input. Without any, they are asked
    for on a terminal, and read from standard input otherwise.

    \b
    Example:
      sbertkit search indexes/corpus "a person having a meal"
      sbertkit search indexes/articles "a meal" --filter 'lang = "en" and year >= 2020'
      sbertkit search indexes/corpus '"red car" -toy' --mode lexical
      sbertkit search indexes/corpus "a red car" --weight 0.7
      sbertkit search indexes/corpus "a meal" --rerank cross-encoder/ms-marco-MiniLM-L6-v2
      sbertkit search indexes/corpus - -k 3 --format jsonl < queries.txt
      sbertkit search indexes/corpus --queries scifact --format trec > run.trec
    """
    from sbertkit.cli.search.prompt import Prompt, on_terminal
    from sbertkit.cli.search.queries import given_queries, queries_of
    from sbertkit.retrieval import SearchIndex

    if texts and queries is not None:
        raise click.UsageError("give queries either as QUERY or by --queries FILE")
    if hits == "passages" and output_format == "trec":
        raise click.UsageError("a run names each document once: --hits passages has no trec format")
    shown = Shown(fields, width)
    typed = not texts and queries is None and on_terminal()
    if typed and output_format != "table":
        raise click.UsageError(f"the prompt prints tables; give a QUERY for {output_format}")
    if queries is not None:
        asked = queries_of(queries)
    else:
        asked = [] if typed else given_queries(texts or ("-",))
    settings = {"mode": mode, "hits": hits, **fusion, **load_reranking()}
    with SearchIndex.open(
        directory,
        model=model,
        device=device,
        trust_remote_code=trust_remote_code,
        mode=mode,
    ) as opened:
        nothing = condition is not None and not opened.count(condition)
        if nothing:
            say(f"no document of {directory} matches the filter")
        if typed:
            Prompt(opened, k, settings, shown, condition).run(greet=not quiet)
        if typed or nothing:
            return
        texts_asked = [query.text for query in asked]
        found = opened.search_batch(texts_asked, k, filter=condition, explain=explain, **settings)
        if explain:
            plan = next((hit.plan or "" for hits in found for hit in hits), "nothing was found")
            say(f"{mode_taken(mode, hits, opened.default_mode)}: {plan}")
        PRINTERS[output_format](asked, found, shown._replace(matcher=opened.matcher))
