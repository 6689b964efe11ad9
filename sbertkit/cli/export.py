"""``export``."""

import click

from sbertkit.cli.files import set_or_path
from sbertkit.cli.options import trust_option
from sbertkit.cli.output import print_facts
from sbertkit.encoder.backends import EXPORT_PRECISIONS
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.formatting import percent


@click.command()
@click.argument("model")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    help="A new or empty folder, or an earlier export, which is replaced.",
)
@click.option(
    "--precision",
    type=click.Choice(EXPORT_PRECISIONS),
    default="fp32",
    show_default=True,
    help="int8: weights and activations in 8 bits.",
)
@click.option(
    "--pooling", type=click.Choice(tuple(POOLINGS)), help="By default, as the model declares."
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a text may have.")
@click.option(
    "--pairs", metavar="FILE", help="Sentence pairs with scores; tells what the export loses."
)
@click.option(
    "--calibrate",
    metavar="CORPUS",
    help="For int8: texts like yours, to find the ranges of activations; by default, some of many "
    "kinds.",
)
@trust_option
def export(
    model: str,
    output: str,
    precision: str,
    pooling: str | None,
    max_tokens: int | None,
    pairs: str | None,
    calibrate: str | None,
    trust_remote_code: bool,
) -> None:
    """Write MODEL as one ONNX file, from token ids to the vector.

    Pooling, post-processing and normalization are inside. The export is compared with the model
    before it is written; it is loaded like any model, without torch.

    \b
    Example:
      sbertkit export all-MiniLM-L6-v2 -o models/exported
      sbertkit export all-MiniLM-L6-v2 -o models/int8 --precision int8 --calibrate corpus.txt
    """
    from sbertkit.data.sts import read_sts
    from sbertkit.encoder import Encoder

    judged = None if pairs is None else read_sts(set_or_path(pairs))
    encoder = Encoder.load(
        model,
        pooling=pooling,
        max_tokens=max_tokens,
        backend="torch",
        device="cpu",
        trust_remote_code=trust_remote_code,
    )
    manifest = encoder.export(output, precision=precision, calibrate=calibrate)
    facts: list[tuple[str, object]] = [
        ("model", model),
        ("written", output),
        ("precision", precision),
        ("lowest cosine to the model", f"{manifest.min_cosine:.5f}"),
    ]
    if judged is not None:
        from sbertkit.evaluation import evaluate_sts

        before = evaluate_sts(encoder, judged).spearman
        after = evaluate_sts(Encoder.load(output), judged).spearman
        facts.append(("Spearman of the pairs", f"{percent(before)} -> {percent(after)}"))
    print_facts(facts)
