"""``eval isotropy``."""

from collections.abc import Mapping
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
from sbertkit.cli.options import LoadEncoder, encoder_options, quiet_option
from sbertkit.cli.output import print_facts, print_table, shortened
from sbertkit.cli.read_options import read_options

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions
    from sbertkit.evaluation import IsotropyResult


@click.command()
@click.argument("corpus", type=PATH)
@encoder_options
@click.option(
    "--sample",
    type=click.IntRange(min=2),
    default=2_000,
    show_default=True,
    help="Number of texts drawn at random.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draw."
)
@read_options
@json_option
@report_option
@quiet_option
def isotropy(
    corpus: str,
    load_encoder: LoadEncoder,
    sample: int,
    seed: int,
    read: "ReadOptions",
    json_path: str | None,
    report_path: str | None,
    quiet: bool,
) -> None:
    """Measure how evenly an encoder's vectors use their space, on the texts of CORPUS.

    In a narrow cone all texts have a high cosine. L2 normalization changes the dot product and the
    Euclidean distance; it cannot change the cosine of any two texts.

    \b
    Example:
      sbertkit eval isotropy corpus.txt --model bert-base-uncased --pooling mean
    """
    from sbertkit.evaluation import evaluate_isotropy
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.report.isotropy import isotropy_page

    target, report = targets_of(json_path, report_path, inputs=(corpus,))
    encoder = load_encoder()
    result = evaluate_isotropy(
        encoder, corpus, sample=sample, seed=seed, read=read, progress=not quiet
    )
    about = {
        "model": encoder.options.model,
        "fingerprint": encoder.fingerprint,
        "pooling": encoder.pooling,
        "corpus": corpus,
        "seed": seed,
        "environment": environment(encoder),
    }
    write_json(target, {**about, **result.to_dict()})
    write_report(report, lambda: isotropy_page(result, about))
    if STANDARD_OUTPUT not in (target, report):
        _print(result, about)


def _print(result: "IsotropyResult", about: Mapping[str, Any]) -> None:
    from sbertkit.evaluation.report.isotropy import frequency_table, layer_table, space_table

    print_facts(
        [
            ("model", f"{about['model']}, pooling {about['pooling']}"),
            (
                "corpus",
                f"{shortened(about['corpus'])}, {result.texts:,} of {result.documents:,} texts",
            ),
        ]
    )
    for table in (space_table(result), frequency_table(result), layer_table(result)):
        print_table(table.columns, table.rows)
