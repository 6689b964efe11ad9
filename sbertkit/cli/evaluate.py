"""``eval``."""

import json
from typing import TYPE_CHECKING

import click

from sbertkit.arguments import output_file
from sbertkit.cli.options import LoadEncoder, encoder_options
from sbertkit.cli.output import print_facts
from sbertkit.storage import staged_file, storage_errors

if TYPE_CHECKING:
    from sbertkit.evaluation import StsResult


@click.group(name="eval")
def evaluate() -> None:
    """Measure encoders and indexes.

    \b
    Example:
      sbertkit eval sts stsb.tsv --model all-MiniLM-L6-v2 --split test
    """


@evaluate.command()
@click.argument("file")
@encoder_options
@click.option(
    "--split", metavar="SPLIT", help="By default test where there are several; all for every row."
)
@click.option("--json", "json_path", metavar="OUT", help="Write the result as JSON, too.")
def sts(file: str, load_encoder: LoadEncoder, split: str | None, json_path: str | None) -> None:
    """Compare cosines with gold scores of sentence pairs.

    FILE is tab-separated: score, sentence, sentence, or with a header (split, score, sentence1,
    sentence2). Spearman and Pearson are shown times 100.

    \b
    Example:
      sbertkit eval sts stsb.tsv --model all-MiniLM-L6-v2 --split test --json stsb.json
    """
    from sbertkit.data.sts import read_sts
    from sbertkit.evaluation import evaluate_sts

    target = None if json_path is None else output_file(json_path)
    pairs = read_sts(file, split=split)
    encoder = load_encoder()
    result = evaluate_sts(encoder, pairs)
    if target is not None:
        content = {
            "model": encoder.options.model,
            "fingerprint": encoder.fingerprint,
            **result.to_dict(),
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2)
        with storage_errors(target), staged_file(target) as staged:
            staged.write_text(f"{text}\n", encoding="utf-8")
    print_facts(_facts(result, encoder.options.model))


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
        low, high, level = result.interval
        facts.append((f"{100 * level:.0f} % interval", f"{100 * low:.2f} to {100 * high:.2f}"))
    facts += [
        ("Pearson", undefined if result.pearson is None else f"{100 * result.pearson:.2f}"),
        ("cut sentences", f"{result.truncated} of {result.sentences:,} distinct ones"),
    ]
    if result.mean_random_cosine is not None:
        facts.append(("cosine of random pairs", f"{result.mean_random_cosine:.3f}"))
    return facts
