"""``compact``, ``repair``, ``upgrade`` and ``dump``."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import INDEX, MODEL, PATH
from sbertkit.cli.lexical import lexical_options
from sbertkit.cli.options import (
    device_option,
    filter_option,
    long_options,
    no_progress_option,
    quiet_option,
    trust_option,
    wait_option,
)
from sbertkit.cli.output import print_line
from sbertkit.encoder.long_options import LongOptions
from sbertkit.formatting import counted

if TYPE_CHECKING:
    from sbertkit.retrieval.lexical_index import Lexical


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@lexical_options(None, "Make the words again, or leave them out.  [default: as they are]")
@wait_option
@no_progress_option
def compact(directory: str, lexical: "Lexical | None") -> None:
    """Rewrite the index DIR without its deleted documents.

    It has one segment then. Nothing is encoded and no model is loaded. Searches continue meanwhile.

    \b
    Example:
      sbertkit compact indexes/articles
      sbertkit compact indexes/articles --lexical --language german
    """
    from rich.filesize import decimal

    from sbertkit.retrieval import compact_index, index_info

    before = index_info(directory)
    changes = compact_index(directory, lexical=lexical)
    after = index_info(directory)
    segments = f"{before.segments} segments" if before.segments != 1 else "1 segment"
    print_line(
        f"{counted(changes.documents, 'document')} in {directory}: {segments} with "
        f"{counted(before.deleted, 'deleted document')} became {after.segments}, "
        f"{decimal(before.bytes)} -> {decimal(after.bytes)}"
        if after.generation != before.generation
        else f"{directory} is compact already"
    )


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "--model", metavar="MODEL", type=MODEL, help="Where the model is now, if it was moved."
)
@click.option(
    "--accept-loss", is_flag=True, help="Continue without data that cannot be recovered (listed)."
)
@device_option
@trust_option
@wait_option
@quiet_option
def repair(
    directory: str,
    model: str | None,
    accept_loss: bool,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Repair the damaged index DIR from its intact files.

    Vector indexes are rebuilt from the stored vectors; vectors from the stored texts, by the model
    that built the index. Texts cannot be recovered: damaged ones are reported, and nothing is
    changed without --accept-loss.

    \b
    Example:
      sbertkit repair indexes/articles
    """
    from sbertkit.retrieval import index_info, repair_index

    done = repair_index(
        directory,
        accept_loss=accept_loss,
        model=model,
        device=device,
        trust_remote_code=trust_remote_code,
        progress=not quiet,
    )
    for problem in done.repaired:
        print_line(f"{problem.file}: {problem.reason}")
    for problem in done.lost:
        print_line(f"lost: {problem.file}: {problem.reason}")
    for problem in done.kept:
        print_line(f"kept: {problem.file}: {problem.reason}")
    if done.lost:
        left = index_info(directory).documents
        print_line(f"{counted(left, 'document')} left in {directory}")
    if not done:
        print_line("nothing to repair")


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "--model", metavar="MODEL", type=MODEL, help="Where the model is now, if it was moved."
)
@long_options(
    None,
    "passages encodes the passages of texts that were truncated, truncate leaves all as it is; for "
    "mean, build the index again.  [default: passages, where texts were truncated]",
)
@device_option
@trust_option
@wait_option
@quiet_option
def upgrade(
    directory: str,
    model: str | None,
    long: LongOptions | None,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Bring the index DIR of an older format to the present one.

    Only the texts that were truncated are encoded again, as passages. It also gives passages to an
    index that was built with --long truncate.

    \b
    Example:
      sbertkit upgrade indexes/articles
      sbertkit upgrade indexes/articles --long truncate
    """
    from sbertkit.retrieval import index_info, upgrade_index

    changes = upgrade_index(
        directory,
        long,
        model=model,
        device=device,
        trust_remote_code=trust_remote_code,
        progress=not quiet,
    )
    facts = index_info(directory)
    print_line(
        f"{counted(facts.documents, 'document')}, {counted(facts.vectors, 'vector')} in "
        f"{directory}: {counted(changes.encoded, 'text')} encoded"
    )


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "-o", "--output", required=True, metavar="OUT", type=PATH, help="NAME.parquet or NAME.faiss."
)
@filter_option
@no_progress_option
def dump(directory: str, output: str, condition: str | None) -> None:
    """Write documents and vectors of the index DIR to a file.

    NAME.parquet has columns id, text, metadata (JSON) and vector; index reads it back with
    --vectors. NAME.faiss is a flat inner-product index, beside which NAME.ids.json lists the ids.

    \b
    Example:
      sbertkit dump indexes/articles -o articles.parquet
      sbertkit dump indexes/articles -o recent.parquet --filter "year >= 2020"
      sbertkit index articles.parquet --vectors articles.parquet -o indexes/again
    """
    from sbertkit.retrieval import dump_index

    for path in dump_index(directory, output, filter=condition):
        print_line(str(path))
