"""``diagnose``."""

from typing import TYPE_CHECKING

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
    from sbertkit.evaluation import Diagnosis

_MAX_CANDIDATES = 10


@click.command()
@click.argument("corpus", type=PATH)
@encoder_options
@click.option(
    "--sample",
    type=click.IntRange(100, 2_000),
    default=2_000,
    show_default=True,
    help="Number of texts drawn at random.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draw."
)
@click.option(
    "--write",
    "output",
    metavar="DIR",
    help="Save the recommended encoder; a model that sbertkit saved there is replaced.",
)
@read_options
@json_option
@report_option
@quiet_option
def diagnose(
    corpus: str,
    load_encoder: LoadEncoder,
    sample: int,
    seed: int,
    output: str | None,
    read: "ReadOptions",
    json_path: str | None,
    report_path: str | None,
    quiet: bool,
) -> None:
    """Find pooling, layer and post-processing that suit CORPUS.

    No labels are needed: the score of a configuration is how well parts of a text (neighboring
    sentences, or the halves of a short one) find each other and their text. The current
    configuration is recommended unless another one is significantly better.

    \b
    Example:
      sbertkit diagnose corpus.txt --model bert-base-uncased --write models/diagnosed
    """
    from sbertkit.arguments import output_folder
    from sbertkit.encoder.saving import check_model_target, lineage_name, save_model
    from sbertkit.evaluation import diagnose as find
    from sbertkit.evaluation.environment import environment
    from sbertkit.evaluation.report.diagnosis import diagnosis_page

    target, report = targets_of(json_path, report_path, inputs=(corpus,))
    folder = None if output is None else output_folder(output)
    if folder is not None:
        check_model_target(folder)
    encoder = load_encoder()
    found = find(encoder, corpus, sample=sample, seed=seed, read=read, progress=not quiet)
    about = {
        "model": encoder.options.model,
        "fingerprint": encoder.fingerprint,
        "corpus": corpus,
        "seed": seed,
        "environment": environment(encoder),
    }
    write_json(target, {**about, **found.to_dict()})
    write_report(report, lambda: diagnosis_page(found, about))
    if folder is not None:
        lineage = {"diagnosis": {"corpus": lineage_name(corpus), "seed": seed, **found.summary()}}
        save_model(found.apply(encoder).torch, folder, lineage=lineage)
    if STANDARD_OUTPUT not in (target, report):
        _print(found, encoder.options.model, corpus, output)


def _print(found: "Diagnosis", model: str, corpus: str, output: str | None) -> None:
    from sbertkit.evaluation.report.diagnosis import advice, candidate_table

    table = candidate_table(found, _MAX_CANDIDATES)
    print_table(table.columns, table.rows)
    facts = [
        ("model", model),
        ("corpus", f"{shortened(corpus)}, {len(found.texts):,} of {found.documents:,} texts"),
        ("pairs", f"{found.pairs:,} texts in two parts; the scores are of the selection half"),
        ("advice", advice(found)),
    ]
    if output is not None:
        facts.append(("written", output))
    print_facts(facts)
