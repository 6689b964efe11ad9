"""``eval run``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import SUITE
from sbertkit.cli.files import (
    STANDARD_OUTPUT,
    json_option,
    report_option,
    targets_of,
    write_json,
    write_report,
)
from sbertkit.cli.options import LoadEncoder, encoder_options, quiet_option
from sbertkit.cli.output import print_facts, print_table

if TYPE_CHECKING:
    from sbertkit.evaluation.suites import SuiteResult


@click.command()
@click.argument("suite", type=SUITE)
@encoder_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Folder for results. [default: results/SUITE-FINGERPRINT]",
)
@click.option(
    "--cache", metavar="DIR", help="Folder for cached vectors. [default: the user's cache]"
)
@click.option("--no-cache", is_flag=True, help="Do not cache vectors.")
@json_option
@report_option
@quiet_option
def run(
    suite: str,
    load_encoder: LoadEncoder,
    output: str | None,
    cache: str | None,
    no_cache: bool,
    json_path: str | None,
    report_path: str | None,
    quiet: bool,
) -> None:
    """Evaluate an encoder on the data sets of a SUITE and compare with published results.

    SUITE is sts, sts-multilingual, retrieval-small, chinese, or a .toml file of your own. Sets come
    from the folder that SBERTKIT_DATA names, or from the hub. Results are saved set by set: an
    interrupted run continues where it stopped.

    \b
    Example:
      sbertkit eval run sts --model all-MiniLM-L6-v2 --report sts.html
    """
    from sbertkit.arguments import output_folder
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.report.suite import suite_page
    from sbertkit.evaluation.suites import read_suite, run_suite
    from sbertkit.user_cache import cache_folder

    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache do not go together")
    target, report = targets_of(json_path, report_path, inputs=(suite,))
    chosen = read_suite(suite)
    encoder = load_encoder()
    folder = output or str(Path("results") / f"{chosen.name}-{encoder.fingerprint[:12]}")
    cache_path = None if no_cache else output_folder(cache) if cache else cache_folder("vectors")
    result = run_suite(encoder, chosen, folder, cache=cache_path, progress=not quiet)
    about = {"environment": environment(encoder)}
    write_json(target, {**about, **result.to_dict()})
    write_report(report, lambda: suite_page(result, about))
    if STANDARD_OUTPUT not in (target, report):
        _print(result, folder)


def _print(result: "SuiteResult", folder: str) -> None:
    from sbertkit.evaluation.report.suite import suite_table

    table = suite_table(result)
    print_table(table.columns, table.rows, title=result.suite.title)
    facts = [("model", result.model), ("results", folder)]
    facts += [("left out", name) for name in result.missing]
    print_facts(facts)
