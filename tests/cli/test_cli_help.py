"""Every command explains itself and is documented."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sbertkit.cli.app import app
from sbertkit.encoder.backends import BACKEND_CHOICES, PRECISIONS
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.index.kinds import NAMES

ROOT = Path(__file__).resolve().parents[2]


def commands(group: click.Group, prefix: str = "") -> dict[str, click.Command]:
    """All commands below a group by their whole name, groups left out."""
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        whole = f"{prefix}{name}"
        if isinstance(command, click.Group):
            found.update(commands(command, f"{whole} "))
        else:
            found[whole] = command
    return found


COMMANDS = commands(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_shows_an_example_on_a_line_of_its_own(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "-h"]).output.splitlines()
    start = shown.index("  Example:")
    assert shown[start + 1].startswith(f"    sbertkit {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_is_in_the_documentation(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"sbertkit {name}" in page.read_text(encoding="utf-8") for page in pages)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text_or_a_choice(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help or isinstance(parameter.type, click.Choice), parameter.name


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    formatter = click.HelpFormatter(width=200)
    app.format_commands(click.Context(app), formatter)
    listed = dict(line.split(maxsplit=1) for line in formatter.getvalue().splitlines()[1:])
    assert listed == {
        name: command.get_short_help_str(200) for name, command in app.commands.items()
    }


def test_the_list_of_commands_imports_none() -> None:
    program = (
        "import sys, sbertkit.cli.app as cli; cli.run(['--help']); "
        "sys.exit('sbertkit.cli.options' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout


def choices_of(command: str, option: str) -> set[str]:
    """The values that an option of a command accepts."""
    for parameter in COMMANDS[command].params:
        if option in parameter.opts:
            assert isinstance(parameter.type, click.Choice)
            return set(parameter.type.choices)
    raise KeyError(option)


def test_the_choices_are_those_that_the_library_has() -> None:
    # Written out in the command line, whose help must not load the packages that know them.
    assert choices_of("index", "--pooling") == set(POOLINGS)
    assert choices_of("index", "--precision") == set(PRECISIONS)
    assert choices_of("index", "--backend") == set(BACKEND_CHOICES)
    assert choices_of("index", "--kind") == {"auto", *NAMES}
