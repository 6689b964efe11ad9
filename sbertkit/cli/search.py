"""``search``."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from sbertkit.cli.options import device_option, trust_option
from sbertkit.cli.output import print_json, print_line, print_table, shortened
from sbertkit.errors import InputError
from sbertkit.terminal import visible_text

if TYPE_CHECKING:
    from sbertkit.retrieval import Hit

Hits = Sequence[Sequence["Hit"]]

_RUN_NAME = "sbertkit"


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("queries", metavar="QUERY...", nargs=-1, required=True)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits per query."
)
@click.option("--model", metavar="MODEL", help="By default, the one that the index names.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("table", "jsonl", "trec")),
    default="table",
    show_default=True,
)
@device_option
@trust_option
def search(
    directory: str,
    queries: tuple[str, ...],
    k: int,
    model: str | None,
    output_format: str,
    device: str,
    trust_remote_code: bool,
) -> None:
    """Search the index DIR.

    Every QUERY is one query; - reads one per line from standard input.

    \b
    Example:
      sbertkit search indexes/corpus "a person having a meal"
      sbertkit search indexes/corpus - -k 3 --format jsonl < queries.txt
    """
    from sbertkit.retrieval import SearchIndex

    texts = list(_query_texts(queries))
    if not texts:
        raise InputError("standard input has no queries; give one per line")
    with SearchIndex.open(
        directory, model=model, device=device, trust_remote_code=trust_remote_code
    ) as opened:
        hits = opened.search_batch(texts, k)
    _PRINTERS[output_format](texts, hits)


def _query_texts(queries: Sequence[str]) -> Iterator[str]:
    from sbertkit.data.lines import read_lines

    for query in queries:
        if query == "-":
            yield from (line.text for line in read_lines("-"))
        else:
            # What the locale of the shell could not decode is most often UTF-8.
            yield os.fsencode(query).decode("utf-8", "replace")


def _print_tables(queries: Sequence[str], hits: Hits) -> None:
    for query, found in zip(queries, hits, strict=True):
        rows = (
            (rank, f"{hit.score:.4f}", hit.id, shortened(hit.text))
            for rank, hit in enumerate(found, 1)
        )
        print_table(("rank>", "score>", "id", "text"), rows, title=query)


def _print_jsonl(queries: Sequence[str], hits: Hits) -> None:
    for number, (query, found) in enumerate(zip(queries, hits, strict=True), 1):
        for rank, hit in enumerate(found, 1):
            print_json({"query": query, "query_id": number, "rank": rank, **hit._asdict()})


def _print_trec(queries: Sequence[str], hits: Hits) -> None:
    del queries
    for hit in (hit for found in hits for hit in found):
        if hit.id.split() != [hit.id] or visible_text(hit.id) != hit.id:
            raise InputError(
                f"id {hit.id!r} holds white space or control codes, which the trec format cannot; "
                "use --format jsonl"
            )
    for number, found in enumerate(hits, 1):
        for rank, hit in enumerate(found, 1):
            print_line(f"{number} Q0 {hit.id} {rank} {hit.score:.8f} {_RUN_NAME}")


_PRINTERS: dict[str, Callable[[Sequence[str], Hits], None]] = {
    "table": _print_tables,
    "jsonl": _print_jsonl,
    "trec": _print_trec,
}
