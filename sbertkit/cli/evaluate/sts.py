"""``eval sts``."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import STS_SET
from sbertkit.cli.files import (
    STANDARD_OUTPUT,
    json_option,
    report_option,
    set_or_path,
    targets_of,
    write_json,
    write_report,
)
from sbertkit.cli.options import LoadEncoder, encoder_options, no_progress_option
from sbertkit.cli.output import print_facts, print_table
from sbertkit.formatting import decimal, percent, percent_interval

if TYPE_CHECKING:
    from sbertkit.evaluation import StsResult


@click.command()
@click.argument("file", type=STS_SET)
@encoder_options
@click.option(
    "--split", metavar="SPLIT", help="By default test if there are several; all takes every row."
)
@click.option(
    "--scale",
    type=(float, float),
    metavar="LOW HIGH",
    help="Range of the gold scores; others, such as mistyped ones, are refused.",
)
@json_option
@report_option
@no_progress_option
def sts(
    file: str,
    load_encoder: LoadEncoder,
    split: str | None,
    scale: tuple[float, float] | None,
    json_path: str | None,
    report_path: str | None,
) -> None:
    """Compare cosines with gold scores of sentence pairs.

    FILE is tab-separated (score, sentence, sentence, or with a header: split, score, sentence1,
    sentence2), the STS benchmark's or a SemEval release, CSV, JSONL or Parquet. Correlations are
    shown times 100.

    \b
    Example:
      sbertkit eval sts stsb --model all-MiniLM-L6-v2 --split test --json stsb.json
      sbertkit eval sts pairs.tsv
    """
    from sbertkit.data.sts import read_sts
    from sbertkit.evaluation import evaluate_sts
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.report.sts import sts_page

    file = set_or_path(file)
    target, report = targets_of(json_path, report_path, inputs=(file,))
    pairs = read_sts(file, split=split, scale=scale)
    encoder = load_encoder()
    result = evaluate_sts(encoder, pairs)
    about = {
        "model": encoder.options.model,
        "fingerprint": encoder.fingerprint,
        "pooling": encoder.pooling,
        "environment": environment(encoder),
    }
    write_json(target, {**about, **result.to_dict()})
    write_report(report, lambda: sts_page(result, about))
    if STANDARD_OUTPUT not in (target, report):
        _print(result, encoder.options.model)


def _print(result: "StsResult", model: str) -> None:
    from sbertkit.evaluation.report.sts import similarity_table, subset_table

    undefined = f"undefined ({result.reason})"
    facts: list[tuple[str, object]] = [
        ("model", model),
        ("file", result.source),
        ("split", result.split or "none in the file"),
        ("pairs", f"{result.pairs:,}"),
        ("Spearman", undefined if result.spearman is None else percent(result.spearman)),
    ]
    if result.interval is not None:
        level = f"{100 * result.interval.level:.0f} % interval"
        facts.append((level, percent_interval(result.interval)))
    facts += [
        ("Pearson", undefined if result.pearson is None else percent(result.pearson)),
        ("truncated", f"{result.truncated} of {result.sentences:,} distinct sentences"),
        ("cosine of random pairs", decimal(result.mean_random_cosine)),
    ]
    print_facts(facts)
    tables = [similarity_table(result), *([subset_table(result)] if result.subsets else [])]
    for table in tables:
        print_table(table.columns, table.rows)
