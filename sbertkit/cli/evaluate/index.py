"""``eval index``."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import INDEX, MODEL
from sbertkit.cli.files import STANDARD_OUTPUT, json_option, set_or_path, targets_of, write_json
from sbertkit.cli.options import (
    device_option,
    given_options,
    measure_option,
    quiet_option,
    trust_option,
)
from sbertkit.cli.output import print_facts, print_table
from sbertkit.formatting import decimal, interval_text

if TYPE_CHECKING:
    from sbertkit.evaluation import IndexResult


@click.command()
@click.argument("directory", metavar="DIR", type=INDEX)
@click.option(
    "-k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits per query."
)
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    help="Number of stored vectors used as queries.",
)
@click.option(
    "--collection", metavar="FOLDER", help="Judged queries of the corpus, in BEIR's layout."
)
@click.option(
    "--split", default="test", show_default=True, metavar="SPLIT", help="Split of the qrels."
)
@measure_option
@click.option(
    "--model", metavar="MODEL", type=MODEL, help="By default, the one that the index names."
)
@json_option
@device_option
@trust_option
@quiet_option
def index(
    directory: str,
    k: int,
    queries: int,
    collection: str | None,
    split: str,
    measures: tuple[str, ...],
    model: str | None,
    json_path: str | None,
    device: str,
    trust_remote_code: bool,
    quiet: bool,
) -> None:
    """Measure the index DIR against exact search over its vectors.

    Reports the recall of the nearest documents, the time per query and the bytes per vector; with
    judged queries also by how much their measures drop. The encoder's quality does not count.

    \b
    Example:
      sbertkit eval index indexes/corpus
      sbertkit eval index indexes/scifact --collection scifact --measure nDCG@10
    """
    from sbertkit.evaluation import evaluate_index
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.index_quality import INDEX_MEASURES
    from sbertkit.retrieval import SearchIndex

    given = given_options(click.get_current_context())
    for name in ("split", "measures"):
        if collection is None and name in given:
            raise click.UsageError(f"--{name.removesuffix('s')} needs --collection")
    if collection is not None and "queries" in given:
        raise click.UsageError("--queries and --collection do not go together")
    collection = None if collection is None else set_or_path(collection)
    (target,) = targets_of(json_path, inputs=(directory, collection))
    with SearchIndex.open(
        directory, model=model, device=device, trust_remote_code=trust_remote_code
    ) as opened:
        result = evaluate_index(
            opened,
            collection,
            k=k,
            queries=queries,
            split=split,
            measures=measures or INDEX_MEASURES,
            progress=not quiet,
        )
        precision = opened.info().precision
    about = {"index": directory, "precision": precision, "environment": environment()}
    write_json(target, {**about, **result.to_dict()})
    if target is not STANDARD_OUTPUT:
        _print(result)


def _print(result: "IndexResult") -> None:
    print_facts(
        [
            ("kind", f"{result.kind}, {result.documents:,} documents"),
            (
                f"recall@{result.k}",
                f"{result.recall:.4f} ({interval_text(result.interval)}), "
                f"minimum {result.min_recall:.2f}, over {result.queries:,} queries",
            ),
            *(
                (f"bytes per vector, {part}", f"{size:,.1f}")
                for part, size in result.bytes_per_vector.items()
            ),
        ]
    )
    rows = [
        (name, *(decimal(value, 2) for value in latency))
        for name, latency in (("index", result.latency), ("exact search", result.exact_latency))
    ]
    print_table(("ms per query", "median>", "95 %>", "99 %>"), rows)
    if result.measures is not None:
        drops = [
            (name, *(decimal(value, 4) for value in values))
            for name, values in result.measures.items()
        ]
        print_table(("measure", "exact search>", "index>", "drop>"), drops)
