"""``encode`` and ``similarity``."""

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.options import (
    LoadEncoder,
    encoder_options,
    long_options,
    no_progress_option,
    quiet_option,
    resume_option,
)
from sbertkit.cli.output import print_line
from sbertkit.cli.read_options import read_options
from sbertkit.encoder.long_options import LongOptions
from sbertkit.errors import InputError
from sbertkit.formatting import counted

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions


logger = logging.getLogger(__name__)

_FILE_NAME = re.compile(r"\S+\.(txt|tsv|csv|jsonl|md|gz)")


@click.command()
@click.argument("source", metavar="INPUT", type=PATH)
@click.option("-o", "--output", required=True, metavar="OUT", help="A .npy or .parquet file.")
@encoder_options
@long_options(
    "truncate",
    "What is done with documents longer than the model's limit; with passages, OUT.parquet has a "
    "row for each, with its start and end.",
)
@read_options
@resume_option
@quiet_option
def encode(
    source: str,
    output: str,
    load_encoder: LoadEncoder,
    long: LongOptions,
    read: "ReadOptions",
    resume: bool,
    quiet: bool,
) -> None:
    """Encode a corpus to a file of vectors.

    INPUT is a corpus as for index, or - for standard input. A .npy file holds a float32 matrix with
    a row for each document, in order, blank ones too; a .parquet file has the columns id, text and
    vector.

    \b
    Example:
      sbertkit encode sentences.txt -o sentences.npy
      sbertkit encode corpus.jsonl.gz -o corpus.parquet --model intfloat/e5-small-v2
      sbertkit encode corpus.jsonl.gz -o corpus.parquet --resume
    """
    from sbertkit.encoder import encode_corpus

    report = encode_corpus(
        load_encoder, source, output, read=read, long=long, progress=not quiet, resume=resume
    )
    print_line(
        f"{counted(report.rows, 'vector')} in {output} ({report.seconds:.1f} s, "
        f"{report.tokens_per_second:,.0f} tokens/s)"
    )


@click.command()
@click.argument("first", metavar="TEXT")
@click.argument("second", metavar="TEXT")
@encoder_options
@no_progress_option
def similarity(first: str, second: str, load_encoder: LoadEncoder) -> None:
    """Print the cosine of two texts or files.

    Files are compared line by line.

    \b
    Example:
      sbertkit similarity "A man is eating." "Somebody has a meal."
      sbertkit similarity questions.txt answers.txt
    """
    import numpy as np

    from sbertkit.metrics.cosine import row_cosines

    left, right = _sides(first, second)
    vectors = load_encoder().encode([*left, *right])
    rows = np.arange(len(left))
    for cosine in row_cosines(vectors, rows, rows + len(left)):
        print_line(f"{cosine:.6f}")


def _names_a_file(text: str) -> bool:
    """Whether a text is the path of a file or pipe; one too long for a path is not."""
    try:
        return Path(text).exists() and not Path(text).is_dir()
    except (OSError, ValueError):
        return False


def _sides(first: str, second: str) -> tuple[list[str], list[str]]:
    """The texts of both arguments, line by line where they name files."""
    files = [_names_a_file(name) for name in (first, second)]
    if not any(files):
        for text in (first, second):
            if _FILE_NAME.fullmatch(text):
                logger.warning("there is no file %s: its name is compared as a text", text)
        return [first], [second]
    if not all(files):
        name, other = (first, second) if files[0] else (second, first)
        raise InputError(f"{name} is a file and {other!r} is not; give two texts or two files")
    from sbertkit.data.lines import read_lines

    left, right = ([line.text for line in read_lines(name)] for name in (first, second))
    if len(left) != len(right):
        raise InputError(
            f"{first} has {len(left)} lines and {second} has {len(right)}; "
            "files are compared line by line and need as many"
        )
    if not left:
        raise InputError(f"{first} and {second} have no lines; expected texts to compare")
    return left, right
