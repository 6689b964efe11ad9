"""``tune``."""

import click

from sbertkit.cli.completion import INDEX, MODEL
from sbertkit.cli.fusion import WeightOrAuto, weight_text
from sbertkit.cli.options import device_option, quiet_option, trust_option, wait_option
from sbertkit.cli.output import print_line
from sbertkit.cli.recall import (
    factory_option,
    memory_option,
    print_tried,
    recall_text,
    tuning_queries_option,
)
from sbertkit.index.kinds import NAMES


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "--recall",
    type=click.FloatRange(0, 1, min_open=True),
    help="Recall@10 that a search is to reach; 1 is exhaustive search.",
)
@click.option(
    "--weight",
    type=WeightOrAuto(),
    metavar="WEIGHT",
    help="What vectors count in --mode hybrid, 0 to 1; auto measures it with parts of documents.",
)
@click.option(
    "--kind",
    type=click.Choice(("auto", *NAMES)),
    help="Another kind of index; by default as it is.",
)
@factory_option
@memory_option
@tuning_queries_option
@click.option(
    "--model", metavar="MODEL", type=MODEL, help="Where the model is now, if it was moved."
)
@device_option
@trust_option
@wait_option
@quiet_option
def tune(
    directory: str,
    recall: float | None,
    weight: float | str | None,
    kind: str | None,
    factory: str | None,
    memory: str | None,
    queries: str | None,
    model: str | None,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Make the index DIR reach a recall, or change its kind or weight, in one commit.

    It is trained, built and measured from the stored vectors; no document is encoded again. Queries
    are encoded if they are given, or if the index has none stored, and parts of documents for
    --weight auto.

    \b
    Example:
      sbertkit tune indexes/articles --recall 0.99
      sbertkit tune indexes/articles --recall 0.95 --kind ivfpq --queries questions.txt
      sbertkit tune indexes/articles --weight auto
    """
    from functools import partial

    from sbertkit.retrieval import index_info
    from sbertkit.retrieval.opening import load_encoder
    from sbertkit.retrieval.tune import tune_index

    del quiet
    if recall is None and weight is None:
        raise click.UsageError("give --recall, --weight or both")
    load = partial(load_encoder, model=model, device=device, trust_remote_code=trust_remote_code)
    tune_index(
        directory,
        recall,
        load,
        weight=weight,
        kind=kind,
        factory=factory,
        memory=memory,
        queries=queries,
    )
    facts = index_info(directory)
    if weight is not None and facts.lexical is not None:
        print_line(f"{directory}: hybrid search with {weight_text(facts.lexical.weight)}")
    if recall is None:
        return
    if facts.measured is None:
        print_line(f"{directory}: {facts.kind}, exhaustive search, recall@10 1")
        return
    print_line(f"{directory}: {facts.kind}, {recall_text(facts.measured)}")
    print_tried(facts.measured)
