"""``eval mteb``."""

from pathlib import Path

import click

from sbertkit.cli.files import STANDARD_OUTPUT, json_option, targets_of, write_json
from sbertkit.cli.options import LoadEncoder, encoder_options, quiet_option
from sbertkit.cli.output import print_facts, print_table
from sbertkit.progress import say


@click.command()
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@encoder_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    default=str(Path("results") / "mteb"),
    show_default=True,
    help="Folder for mteb's results.",
)
@json_option
@quiet_option
def mteb(
    tasks: tuple[str, ...],
    load_encoder: LoadEncoder,
    output: str,
    json_path: str | None,
    quiet: bool,
) -> None:
    """Run tasks of the package mteb, unchanged, with an encoder.

    mteb downloads its data from the hub. Tasks whose results for this encoder are in DIR are not
    run again.

    \b
    Example:
      sbertkit eval mteb STSBenchmark SciFact --model all-MiniLM-L6-v2
    """
    from sbertkit.evaluation import evaluate_mteb
    from sbertkit.evaluation.environment import environment

    (target,) = targets_of(json_path, inputs=tasks)
    encoder = load_encoder()
    result = evaluate_mteb(encoder, tasks, output, progress=not quiet)
    write_json(target, {"environment": environment(encoder), **result.to_dict()})
    if target is not STANDARD_OUTPUT:
        rows = [(name, result.measures[name], f"{one:.4f}") for name, one in result.scores.items()]
        print_table(("task", "measure", "score>"), rows)
        print_facts([("model", result.model), ("mteb", result.version), ("results", output)])
    if result.failed:
        for name, reason in result.failed.items():
            say(f"sbertkit: error: {name}: {reason}")
        click.get_current_context().exit(1)
