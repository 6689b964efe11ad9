"""``eval sts``."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.files import (
    STANDARD_OUTPUT,
    json_option,
    report_option,
    set_or_path,
    targets_of,
    write_json,
    write_report,
)
from sbertkit.cli.options import LoadEncoder, encoder_options
from sbertkit.cli.output import print_facts, print_table

if TYPE_CHECKING:
    from sbertkit.evaluation import StsResult
    from sbertkit.metrics import Interval


@click.command()
@click.argument("file")
@encoder_options
@click.option(
    "--split", metavar="SPLIT", help="By default test where there are several; all for every row."
)
@click.option(
    "--scale",
    type=(float, float),
    metavar="LOW HIGH",
    help="Refuse a gold score outside of it, such as one that is mistyped.",
)
@json_option
@report_option
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
    from sbertkit.evaluation.report import sts_page

    file = set_or_path(file)
    target, report = targets_of(json_path, report_path, inputs=(file,))
    pairs = read_sts(file, split=split, scale=scale)
    encoder = load_encoder()
    result = evaluate_sts(encoder, pairs)
    about = {
        "model": encoder.options.model,
        "fingerprint": encoder.fingerprint,
        "pooling": encoder.pooling,
    }
    write_json(target, {**about, **result.to_dict()})
    write_report(report, lambda: sts_page(result, about))
    if STANDARD_OUTPUT not in (target, report):
        print_facts(_facts(result, encoder.options.model))
        _print_tables(result)


def _print_tables(result: "StsResult") -> None:
    rows = [
        (name, _percent(found.spearman), _percent(found.pearson))
        for name, found in result.similarities.items()
    ]
    print_table(("similarity", "Spearman>", "Pearson>"), rows)
    if not result.subsets:
        return
    parts: list[tuple[object, ...]] = [
        (name, f"{score.pairs:,}", _percent(score.spearman), _range(score.interval))
        for name, score in result.subsets.items()
    ]
    pairs = sum(score.pairs for score in result.subsets.values())
    parts.append(("weighted mean", f"{pairs:,}", _percent(result.weighted_mean), ""))
    print_table(("subset", "pairs>", "Spearman>", "95 % interval>"), parts)


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.2f}"


def _range(interval: "Interval | None") -> str:
    if interval is None:
        return "n/a"
    return f"{100 * interval.low:.2f} to {100 * interval.high:.2f}"


def _facts(result: "StsResult", model: str) -> list[tuple[str, object]]:
    undefined = f"undefined ({result.reason})"
    facts: list[tuple[str, object]] = [
        ("model", model),
        ("file", result.source),
        ("split", result.split or "none in the file"),
        ("pairs", f"{result.pairs:,}"),
        ("Spearman", undefined if result.spearman is None else f"{100 * result.spearman:.2f}"),
    ]
    if result.interval is not None:
        facts.append((f"{100 * result.interval.level:.0f} % interval", _range(result.interval)))
    facts += [
        ("Pearson", undefined if result.pearson is None else f"{100 * result.pearson:.2f}"),
        ("cut sentences", f"{result.truncated} of {result.sentences:,} distinct ones"),
    ]
    if result.mean_random_cosine is not None:
        facts.append(("cosine of random pairs", f"{result.mean_random_cosine:.3f}"))
    return facts
