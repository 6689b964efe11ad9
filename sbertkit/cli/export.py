"""``export``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import MODEL
from sbertkit.cli.files import set_or_path
from sbertkit.cli.options import dim_option, no_progress_option, trust_option
from sbertkit.cli.output import print_facts
from sbertkit.encoder.backends import EXPORT_PRECISIONS
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.errors import InputError, StorageError
from sbertkit.formatting import percent

if TYPE_CHECKING:
    from sbertkit.encoder.exports.manifest import ExportManifest


@click.command()
@click.argument("model", type=MODEL)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="A new or empty folder, or an earlier export, which is replaced.  [default: the user's "
    "cache, where every command finds it]",
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
@click.option("--reranker", is_flag=True, help="MODEL is a cross-encoder, for search --rerank.")
@dim_option
@click.option(
    "--pairs", metavar="FILE", help="Sentence pairs with scores; tells what the export loses."
)
@click.option(
    "--calibrate",
    metavar="CORPUS",
    help="For int8: texts like yours, to find the ranges of activations; by default, some of many "
    "kinds. With --reranker: pairs, as train-reranker reads them.",
)
@trust_option
@no_progress_option
def export(
    model: str,
    output: str | None,
    precision: str,
    pooling: str | None,
    max_tokens: int | None,
    reranker: bool,
    dim: int | None,
    pairs: str | None,
    calibrate: str | None,
    trust_remote_code: bool,
) -> None:
    """Write MODEL as one ONNX file, from token ids to the vector.

    Pooling, post-processing and normalization are inside. The export is compared with the model
    before it is written; it is loaded like any model, without torch. Without -o it goes into the
    user's cache: commands that are then given MODEL, with the same --pooling, --max-tokens and
    --dim, take the export and load no torch.

    \b
    Example:
      sbertkit export all-MiniLM-L6-v2
      sbertkit export all-MiniLM-L6-v2 -o models/exported
      sbertkit export all-MiniLM-L6-v2 -o models/int8 --precision int8 --calibrate corpus.txt
      sbertkit export cross-encoder/ms-marco-MiniLM-L6-v2 --reranker --precision int8 -o models/ce
    """
    from sbertkit.data.sts import read_sts
    from sbertkit.encoder import Encoder

    if reranker:
        for name, value in {"pooling": pooling, "dim": dim, "pairs": pairs}.items():
            if value is not None:
                raise click.UsageError(f"--{name} and --reranker do not go together")
        _export_reranker(model, output, precision, max_tokens, calibrate, trust=trust_remote_code)
        return
    options: dict[str, Any] = {"pooling": pooling, "max_tokens": max_tokens, "dim": dim}
    options["device"] = "cpu"
    if output is None:
        _refuse_without_folder(
            {
                "--pairs": pairs,
                "--calibrate": calibrate,
                "--trust-remote-code": trust_remote_code,
            }
        )
        _export_to_cache(model, precision, options)
        return
    judged = None if pairs is None else read_sts(set_or_path(pairs))
    encoder = Encoder.load(model, backend="torch", trust_remote_code=trust_remote_code, **options)
    manifest = encoder.export(output, precision=precision, calibrate=calibrate)
    facts = _facts(model, output, manifest)
    if judged is not None:
        from sbertkit.evaluation import evaluate_sts

        before = evaluate_sts(encoder, judged).spearman
        after = evaluate_sts(Encoder.load(output), judged).spearman
        facts.append(("Spearman of the pairs", f"{percent(before)} -> {percent(after)}"))
    print_facts(facts)


def _refuse_without_folder(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value:
            raise click.UsageError(f"{name} needs -o DIR")


def _export_reranker(
    model: str,
    output: str | None,
    precision: str,
    max_tokens: int | None,
    calibrate: str | None,
    *,
    trust: bool,
) -> None:
    """Exports a cross-encoder, into the user's cache without a folder."""
    from sbertkit.data.ranking import read_ranking
    from sbertkit.encoder.exports.manifest import read_manifest
    from sbertkit.reranking import Reranker

    if output is None:
        _refuse_without_folder({"--trust-remote-code": trust, "--calibrate": calibrate})
    pairs = None
    if calibrate is not None:
        pairs = [pair[:2] for pair in read_ranking(set_or_path(calibrate)).pairs]
    loaded = Reranker.load(
        model, max_tokens=max_tokens, backend="auto", device="cpu", trust_remote_code=trust
    )
    if output is None:
        folder = str(loaded.export_folder(precision))
        manifest = read_manifest(Path(folder))
    else:
        folder, manifest = output, loaded.export(output, precision=precision, calibrate=pairs)
    print_facts(_facts(model, folder, manifest))


def _export_to_cache(model: str, precision: str, options: Mapping[str, Any]) -> None:
    """Makes the export in the user's cache, unless it is there."""
    from sbertkit.encoder import Encoder
    from sbertkit.encoder.exports.manifest import is_export_folder, read_manifest
    from sbertkit.encoder.exports.places import export_place

    if is_export_folder(Path(model)):
        raise InputError(f"{model} is an export already; pass the model that it was made from")
    encoder = Encoder.load(model, precision=precision, **options)
    folder = encoder.export_folder(precision)
    if folder != export_place(encoder.fingerprint, precision):
        raise StorageError("the export cannot be kept in the user's cache; choose a folder with -o")
    print_facts(_facts(model, str(folder), read_manifest(folder)))


def _facts(model: str, folder: str, manifest: "ExportManifest") -> list[tuple[str, object]]:
    return [
        ("model", model),
        ("written", folder),
        ("precision", manifest.precision),
        (
            "cosine of all scores" if manifest.task == "rerank" else "lowest cosine to the model",
            f"{manifest.min_cosine:.5f}",
        ),
    ]
