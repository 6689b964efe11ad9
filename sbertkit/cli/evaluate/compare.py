"""``eval compare``."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.files import STANDARD_OUTPUT, json_option, targets_of, write_json
from sbertkit.cli.options import measure_option
from sbertkit.cli.output import print_facts, print_table
from sbertkit.errors import InputError
from sbertkit.formatting import decimal, interval_text

if TYPE_CHECKING:
    from sbertkit.evaluation import Comparison


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--qrels", metavar="FILE", help="Relevance judgments, for run files.")
@measure_option
@click.option("--exclude-self", is_flag=True, help="Exclude documents with the query's own id.")
@click.option(
    "--missing-as-zero", is_flag=True, help="Count queries that only one system answers as 0."
)
@json_option
def compare(
    first: str,
    second: str,
    qrels: str | None,
    measures: tuple[str, ...],
    exclude_self: bool,
    missing_as_zero: bool,
    json_path: str | None,
) -> None:
    """Test whether system A is significantly better than system B.

    A and B are run files (with --qrels), or results that eval retrieval wrote with --json. The
    difference of the means comes with a bootstrap interval and the p-value of the two-sided paired
    permutation test.

    \b
    Example:
      sbertkit eval compare mine.trec bm25.trec --qrels scifact/qrels/test.tsv
      sbertkit eval compare mine.json theirs.json
    """
    from sbertkit.evaluation import compare_results, compare_runs
    from sbertkit.evaluation.measures import DEFAULT_MEASURES

    (target,) = targets_of(json_path, inputs=(first, second, qrels))
    if qrels is None:
        for value, option in ((measures, "--measure"), (exclude_self, "--exclude-self")):
            if value:
                raise click.UsageError(f"{option} needs run files and --qrels")
        found = compare_results(first, second, missing_as_zero=missing_as_zero)
    else:
        for path in (first, second):
            if path.endswith(".json"):
                raise InputError(
                    f"{path} looks like a result, not a run; compare two results without --qrels, "
                    "or two run files with it"
                )
        found = compare_runs(
            first,
            second,
            qrels,
            measures=measures or DEFAULT_MEASURES,
            exclude_self=exclude_self,
            missing_as_zero=missing_as_zero,
        )
    write_json(target, found.to_dict())
    if target is not STANDARD_OUTPUT:
        _print(found, first, second)


def _print(found: "Comparison", first: str, second: str) -> None:
    rows = [
        (
            name,
            decimal(found.first[name], 4),
            decimal(found.second[name], 4),
            decimal(test.difference, 4, sign="+"),
            interval_text(test.interval, sign="+"),
            decimal(test.p_value, 4),
        )
        for name, test in found.tests.items()
    ]
    print_table(("measure", "A>", "B>", "A - B>", "95 % interval>", "p>"), rows)
    print_facts(
        [
            ("A", first),
            ("B", second),
            ("queries", f"{found.queries:,}"),
            ("p", "two-sided paired permutation test"),
        ]
    )
