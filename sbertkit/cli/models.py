"""``models``: which encoder, by a table, by what it costs here, and on one's own texts."""

from typing import TYPE_CHECKING

import click

from sbertkit.cli.completion import KNOWN_MODEL, MODEL, PATH
from sbertkit.cli.files import STANDARD_OUTPUT, json_option, targets_of, write_json
from sbertkit.cli.options import (
    device_option,
    given_options,
    no_progress_option,
    quiet_option,
    trust_option,
)
from sbertkit.cli.output import print_facts, print_json, print_table, shortened, table_width
from sbertkit.cli.read_options import read_options
from sbertkit.formatting import percent, percent_interval
from sbertkit.progress import say

if TYPE_CHECKING:
    from sbertkit.data import ReadOptions
    from sbertkit.encoder.catalog import KnownModel
    from sbertkit.evaluation import EncoderComparison, ModelCost

_WIDE = 140
"""Columns of a terminal that has room for licences and notes."""
_MAX_CODES = 3
"""Languages that are named in the table; of more, their number."""


@click.group(name="models", invoke_without_command=True)
@click.option("--language", metavar="LANGUAGE", help="Of the texts, such as zh or chinese.")
@click.option("--domain", metavar="DOMAIN", help="general, science, clinical, finance, captions.")
@click.option("--max-params", metavar="NUMBER", help="At most so many parameters, such as 110M.")
@click.option("--length", type=click.IntRange(min=1), help="Tokens that a text needs.")
@click.option("--task", metavar="TASK", help="Of pretraining, such as mlm, rtd or contrastive.")
@click.option(
    "--ready/--base",
    default=None,
    help="Only those trained to give vectors of texts, or only bases to be tuned.",
)
@click.option("--measure", is_flag=True, help="Time those that are on this machine.")
@click.option(
    "--model",
    "folders",
    multiple=True,
    metavar="MODEL",
    type=MODEL,
    help="Another one to time: a folder or a name; may be given several times.",
)
@click.option("--corpus", metavar="CORPUS", type=PATH, help="Whose texts are timed.")
@device_option
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "json")),
    default="table",
    show_default=True,
)
@quiet_option
@click.pass_context
def models(
    context: click.Context,
    language: str | None,
    domain: str | None,
    max_params: str | None,
    length: int | None,
    task: str | None,
    ready: bool | None,
    measure: bool,
    folders: tuple[str, ...],
    corpus: str | None,
    device: str,
    form: str,
    quiet: bool,
) -> None:
    """Find an encoder in a table of pretrained ones.

    Those that give vectors of texts as they are come first, then the bases that train-nli,
    train-sts and train-pairs tune; the smaller first. Measured are those of the table that are
    bundled or in the hub's cache, and each --model: nothing is downloaded.

    \b
    Example:
      sbertkit models --language zh --max-params 110M
      sbertkit models --measure --model models/mine
      sbertkit models compare all-MiniLM-L6-v2 models/mine --corpus corpus.txt
    """
    given = given_options(context)
    if context.invoked_subcommand is not None:
        if given:
            raise click.UsageError(f"options go after {context.invoked_subcommand}, not before it")
        return
    timing = given & {"folders", "corpus", "device"}
    if timing and not measure:
        raise click.UsageError("--model, --corpus and --device need --measure")
    from sbertkit.encoder.catalog import known_models

    found = known_models(
        language=language,
        domain=domain,
        max_parameters=max_params,
        length=length,
        task=task,
        ready=ready,
    )
    if measure:
        _measure(found, folders, corpus, device=device, form=form, quiet=quiet)
    elif form == "json":
        print_json({"models": [one.to_dict() for one in found]}, indent=2)
    else:
        _print_models(found)
    if not found and not folders:
        say("no encoder of the table suits; leave a condition out")


@models.command(name="show")
@click.argument("model", type=KNOWN_MODEL)
@no_progress_option
def show(model: str) -> None:
    """Show what the table knows of MODEL.

    \b
    Example:
      sbertkit models show intfloat/e5-small-v2
    """
    from sbertkit.encoder.catalog import DOMAINS, TASKS, find_known

    known = find_known(model)
    facts = {
        "model": known.name,
        "family": known.family,
        "parameters": f"{known.parameters:,}",
        "dimensions": known.dim,
        "layers": known.layers,
        "tokens": "no limit" if known.max_tokens is None else f"{known.max_tokens:,}",
        "tokenizer": known.tokenizer,
        "pretraining": "; ".join(f"{one}: {TASKS[one]}" for one in known.tasks),
        "use": "gives vectors of texts as it is" if known.ready else "a base to be tuned",
        "pooling": known.pooling,
        "prompts": _prompts(known),
        "languages": " ".join(known.languages),
        "domain": f"{known.domain}: {DOMAINS[known.domain]}",
        "licence": known.licence or "not found",
        "weights": "no safetensors when looked up; convert them first" if known.weights else "",
        "note": known.note,
        "sources": ", ".join(known.sources),
    }
    print_facts((name, value) for name, value in facts.items() if value != "")


@models.command(name="compare")
@click.argument("first", metavar="MODEL", type=MODEL)
@click.argument("second", metavar="MODEL", type=MODEL)
@click.option("--corpus", metavar="CORPUS", type=PATH, required=True, help="Your texts.")
@click.option(
    "--sample",
    type=click.IntRange(100, 5_000),
    default=2_000,
    show_default=True,
    help="Number of texts drawn at random.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draw."
)
@device_option
@trust_option
@read_options
@json_option
@quiet_option
def compare(
    first: str,
    second: str,
    corpus: str,
    sample: int,
    seed: int,
    device: str,
    trust_remote_code: bool,
    read: "ReadOptions",
    json_path: str | None,
    quiet: bool,
) -> None:
    """Find which of two encoders finds more in your texts.

    No labels are needed: each text gives two parts (neighboring sentences, or the halves of a short
    one), and each part looks for the other one among those of all texts. Both run with torch in
    fp32, so that their speeds can be compared.

    \b
    Example:
      sbertkit models compare all-MiniLM-L6-v2 models/mine --corpus corpus.txt
    """
    from sbertkit.encoder import Encoder
    from sbertkit.evaluation import compare_encoders
    from sbertkit.evaluation.environment import environment

    (target,) = targets_of(json_path, inputs=(corpus,))
    encoders = [
        Encoder.load(name, backend="torch", device=device, trust_remote_code=trust_remote_code)
        for name in (first, second)
    ]
    found = compare_encoders(
        encoders[0],
        encoders[1],
        corpus,
        sample=sample,
        seed=seed,
        read=read,
        progress=not quiet,
    )
    about = {"corpus": corpus, "seed": seed, "environment": environment()}
    write_json(target, {**about, **found.to_dict()})
    if target is not STANDARD_OUTPUT:
        _print_comparison(found, corpus)


def _measure(
    found: "tuple[KnownModel, ...]",
    folders: tuple[str, ...],
    corpus: str | None,
    *,
    device: str,
    form: str,
    quiet: bool,
) -> None:
    from sbertkit.encoder.resolve import local_model
    from sbertkit.evaluation import measure_models
    from sbertkit.evaluation.environment import environment

    present = [one.name for one in found if local_model(one.name) is not None]
    measured = measure_models([*present, *folders], corpus, device=device, progress=not quiet)
    if form == "json":
        content = {
            "environment": environment(),
            "costs": [one.to_dict() for one in measured.costs],
            "failed": measured.failed,
        }
        print_json(content, indent=2)
    else:
        columns = ("model", "params>", "dim>", "load>", "texts/s>", "memory>")
        print_table(columns, map(_cost_row, measured.costs))
    for name, reason in measured.failed.items():
        say(f"sbertkit: error: {name}: {reason}")
    if any(name in measured.failed for name in folders):
        click.get_current_context().exit(1)
    if not measured.costs and not measured.failed:
        say("none of them is on this machine; name a folder with --model")


def _cost_row(one: "ModelCost") -> tuple[object, ...]:
    return (
        one.model,
        _count(one.parameters),
        one.dim,
        f"{one.load_seconds:.1f} s",
        f"{one.texts_per_second:,.0f}",
        f"{max(one.memory, one.device_memory) / 1e9:.2f} GB",
    )


def _print_models(found: "tuple[KnownModel, ...]") -> None:
    columns = ("model", "params>", "dim>", "tokens>", "pooling", "use")
    more = ("prompts", "languages", "domain", "licence", "note")
    width = table_width(None)
    wide = width is None or width >= _WIDE
    rows = []
    for one in found:
        row = (
            one.name,
            _count(one.parameters),
            one.dim,
            "any" if one.max_tokens is None else one.max_tokens,
            one.pooling,
            "as is" if one.ready else "base",
        )
        rest = (
            "yes" if any(one.prompts) else "",
            _languages(one),
            one.domain,
            one.licence or "",
            one.note,
        )
        rows.append((*row, *rest) if wide else row)
    print_table((*columns, *more) if wide else columns, rows)


def _print_comparison(found: "EncoderComparison", corpus: str) -> None:
    sides = (found.first, found.second)
    rows = [
        (
            name,
            *(percent(one.scores[name]) for one in sides),
            percent(test.difference, sign="+"),
            percent_interval(test.interval, sign="+"),
        )
        for name, test in found.tests.items()
    ]
    rows += [
        ("texts/s", *(f"{one.texts_per_second:,.0f}" for one in sides), "", ""),
        ("dimensions", *(str(one.dim) for one in sides), "", ""),
        ("truncated", *(f"{one.encoded.truncated:,}" for one in sides), "", ""),
    ]
    print_table(("", "A>", "B>", "A - B>", "95 % interval>"), rows)
    print_facts(
        [
            ("A", found.first.model),
            ("B", found.second.model),
            ("corpus", f"{shortened(corpus)}, {found.texts:,} of {found.documents:,} texts"),
            ("pairs", f"{found.pairs:,} texts in two parts"),
            ("verdict", found.verdict),
        ]
    )


def _count(parameters: int) -> str:
    return f"{parameters / 1e6:,.0f}M"


def _languages(one: "KnownModel") -> str:
    codes = one.languages
    return " ".join(codes) if len(codes) <= _MAX_CODES else str(len(codes))


def _prompts(one: "KnownModel") -> str:
    named = [f"{name} {text!r}" for name, text in one.prompts._asdict().items() if text]
    return ", ".join(named) or "none"
