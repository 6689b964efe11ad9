"""``index``, ``info`` and ``verify``."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sbertkit.cli.options import (
    LoadEncoder,
    encoder_options,
    quiet_option,
    read_options,
    resume_option,
)
from sbertkit.cli.output import json_line, print_facts, print_line, without_controls

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions


@click.command()
@click.argument("corpus")
@click.option("-o", "--output", metavar="DIR", help="By default, indexes/<name of the corpus>.")
@encoder_options
@click.option(
    "--kind",
    type=click.Choice(("auto", "flat", "hnsw", "ivf")),
    default="auto",
    show_default=True,
    help="auto: flat up to 50,000 documents, then hnsw.",
)
@click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.95,
    show_default=True,
    help="Recall@10 that is wanted; kept with the index.",
)
@click.option(
    "--with-encoder/--without-encoder",
    default=True,
    show_default=True,
    help="Put the encoder into DIR, so that a search needs neither the model nor torch.",
)
@click.option("--clusters", type=click.IntRange(min=1), help="Clusters of kind ivf.")
@read_options
@resume_option
@quiet_option
def index(
    corpus: str,
    output: str | None,
    load_encoder: LoadEncoder,
    kind: str,
    recall: float,
    clusters: int | None,
    with_encoder: bool,
    read: "ReadOptions",
    resume: bool,
    quiet: bool,
) -> None:
    """Build a search index over CORPUS.

    CORPUS is text (one document a line), JSONL, TSV (id, tab, text), CSV or Parquet, each also
    gzipped, a BEIR folder, a folder of .txt and .md files, or - for standard input. An index that
    is there already is replaced in one step.

    \b
    Example:
      sbertkit index corpus.txt
      sbertkit index articles.jsonl.gz -o indexes/articles --kind hnsw
    """
    from rich.filesize import decimal

    from sbertkit.retrieval import SearchIndex, default_index_path

    if output is None and corpus == "-":
        raise click.UsageError("standard input has no name: give the index folder with -o DIR")
    path = default_index_path(corpus) if output is None else output
    with SearchIndex.build(
        corpus,
        load_encoder,
        path,
        kind=kind,
        recall=recall,
        clusters=clusters,
        read=read,
        progress=not quiet,
        with_encoder=with_encoder,
        resume=resume,
    ) as built:
        facts = built.info()
    print_line(
        f"{facts.documents:,} documents in {without_controls(str(path))} "
        f"({facts.kind}, {facts.dim} dimensions, {decimal(facts.bytes)})"
    )


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
)
def info(directory: str, output_format: str) -> None:
    """Say what the index DIR holds.

    \b
    Example:
      sbertkit info indexes/corpus
    """
    from sbertkit.retrieval import index_info

    facts = asdict(index_info(directory))
    if output_format == "json":
        print_line(json_line(facts))
    else:
        names = {"recall": "recall wanted"}
        print_facts((names.get(name, name), value) for name, value in facts.items())


@click.command()
@click.argument("directory", metavar="DIR")
@click.pass_context
def verify(context: click.Context, directory: str) -> None:
    """Check every file of the index DIR.

    Each file is compared with its SHA-256; the exit status is 1 if anything is wrong.

    \b
    Example:
      sbertkit verify indexes/corpus
    """
    from sbertkit.retrieval import verify_index

    problems = verify_index(directory)
    for problem in problems:
        print_line(without_controls(f"{problem.file}: {problem.reason}"))
    if problems:
        context.exit(1)
    print_line("no problems found")
