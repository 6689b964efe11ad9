"""``merge``."""

import click

from sbertkit.cli.options import quiet_option
from sbertkit.cli.output import print_facts
from sbertkit.progress import under_way


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the encoder.")
@click.option(
    "--weight",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="What the weights of A count; those of B count the rest.",
)
@click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with A or B.")
@quiet_option
def merge(
    a: str, b: str, output: str, weight: float, *, trust_remote_code: bool, quiet: bool
) -> None:
    """Average the weights of two encoders of the same shape.

    A and B are model folders or hub names, trained from the same base, or one of them is that base:
    their average keeps more of what the base knew. DIR is an encoder like any other.

    \b
    Example:
      sbertkit merge bert-base-uncased models/nli --weight 0.5 -o models/merged
    """
    with under_way(f"loading {a} and {b}", shown=not quiet):
        from sbertkit.training.merging import merge as merge_encoders

        merged = merge_encoders(a, b, output, weight=weight, trust_remote_code=trust_remote_code)
    parts = ", ".join(f"{one['weight']:g} of {one['model']}" for one in merged.record["merged"])
    print_facts(
        [
            ("model", str(merged.folder)),
            ("weights", parts),
            ("pooling", merged.record["pooling"]),
            ("fingerprint", merged.fingerprint),
        ]
    )
