"""``eval compare``."""

from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.files import (
    STANDARD_OUTPUT,
    json_option,
    report_option,
    targets_of,
    write_json,
    write_report,
)
from sbertkit.cli.options import measure_option, quiet_option
from sbertkit.cli.output import print_facts, print_table
from sbertkit.errors import InputError

if TYPE_CHECKING:
    from sbertkit.evaluation import Comparison


@click.command()
@click.argument("first", metavar="A", type=PATH)
@click.argument("second", metavar="B", type=PATH)
@click.option("--qrels", metavar="FILE", help="Relevance judgments, for run files.")
@measure_option
@click.option("--exclude-self", is_flag=True, help="Exclude documents with the query's own id.")
@click.option(
    "--missing-as-zero", is_flag=True, help="Count queries that only one system answers as 0."
)
@json_option
@report_option
@quiet_option
def compare(
    first: str,
    second: str,
    qrels: str | None,
    measures: tuple[str, ...],
    exclude_self: bool,
    missing_as_zero: bool,
    json_path: str | None,
    report_path: str | None,
    quiet: bool,
) -> None:
    """Test whether system A is significantly better than system B.

    A and B are results that eval sts, eval retrieval or eval run wrote with --json, or run files
    (with --qrels). The difference of the scores comes with a paired bootstrap interval and the
    p-value of the two-sided paired permutation test.

    \b
    Example:
      sbertkit eval compare mine.json theirs.json --report comparison.html
      sbertkit eval compare mine.trec bm25.trec --qrels scifact/qrels/test.tsv
    """
    from sbertkit.evaluation import compare_results, compare_runs
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.measures import DEFAULT_MEASURES
    from sbertkit.evaluation.report.comparison import comparison_page

    target, report = targets_of(json_path, report_path, inputs=(first, second, qrels))
    if qrels is None:
        for value, option in ((measures, "--measure"), (exclude_self, "--exclude-self")):
            if value:
                raise click.UsageError(f"{option} needs run files and --qrels")
        found = compare_results(first, second, missing_as_zero=missing_as_zero, progress=not quiet)
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
            progress=not quiet,
        )
    about: dict[str, Any] = {"A": first, "B": second, **({"qrels": qrels} if qrels else {})}
    about["environment"] = environment()
    write_json(target, {**about, **found.to_dict()})
    write_report(report, lambda: comparison_page(found, about))
    if STANDARD_OUTPUT not in (target, report):
        _print(found, first, second)


def _print(found: "Comparison", first: str, second: str) -> None:
    from sbertkit.evaluation.report.comparison import TEST, comparison_table, system_name, verdict

    table = comparison_table(found)
    print_table(table.columns, table.rows)
    facts = [
        ("A", system_name(found.systems[0], first)),
        ("B", system_name(found.systems[1], second)),
        (found.unit, f"{found.count:,}"),
        ("p", TEST),
        ("verdict", verdict(found)),
    ]
    print_facts(facts + [("left out", name) for name in found.left_out])
