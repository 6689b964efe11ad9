"""``eval``: one module per command."""

import click

from sbertkit.cli.evaluate.compare import compare
from sbertkit.cli.evaluate.index import index
from sbertkit.cli.evaluate.isotropy import isotropy
from sbertkit.cli.evaluate.mteb import mteb
from sbertkit.cli.evaluate.retrieval import retrieval
from sbertkit.cli.evaluate.run import run
from sbertkit.cli.evaluate.sts import sts


@click.group(name="eval", commands=[sts, retrieval, isotropy, index, run, compare, mteb])
def evaluate() -> None:
    """Evaluate encoders and indexes.

    \b
    Example:
      sbertkit eval sts stsb.tsv --model all-MiniLM-L6-v2 --split test
      sbertkit eval retrieval scifact --model all-MiniLM-L6-v2
    """
