"""What shells complete: names of sets, suites and models, files and folders."""

from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete

from sbertkit.cli.app import app


def completed(*arguments: str, incomplete: str = "") -> list[tuple[str, str]]:
    complete = ShellComplete(app, {}, "sbertkit", "_SBERTKIT_COMPLETE")
    found = complete.get_completions(list(arguments), incomplete)
    return [(item.type, item.value) for item in found]


@pytest.mark.parametrize(
    ("arguments", "incomplete", "expected"),
    [
        (("search",), "indexes/", ("dir", "indexes/")),
        (("search", "i", "--queries"), "q", ("file", "q")),
        (("index",), "corpus", ("file", "corpus")),
        (("add", "i"), "", ("file", "")),
        (("encode", "--model"), "all", ("plain", "all-MiniLM-L6-v2")),
        (("encode", "--model"), "mod", ("dir", "mod")),
        (("eval", "sts"), "sts", ("plain", "stsb")),
        (("eval", "retrieval"), "sci", ("plain", "scifact")),
        (("eval", "run"), "ret", ("plain", "retrieval-small")),
        (("data", "get"), "cran", ("plain", "cranfield")),
        (("models", "show"), "xlnet/", ("plain", "xlnet/xlnet-base-cased")),
        (("models", "compare"), "all", ("plain", "all-MiniLM-L6-v2")),
        ((), "sea", ("plain", "search")),
    ],
)
def test_arguments_are_completed(
    arguments: tuple[str, ...], incomplete: str, expected: tuple[str, str]
) -> None:
    assert expected in completed(*arguments, incomplete=incomplete)


def test_names_of_other_sets_are_not_offered() -> None:
    assert ("plain", "scifact") not in completed("eval", "sts", incomplete="sci")


def test_every_command_takes_quiet() -> None:
    def commands(group: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        if isinstance(group, click.Group):
            for name in group.list_commands(context):
                found = group.get_command(context, name)
                assert found is not None
                yield from commands(found, f"{path} {name}")
        else:
            yield path, group

    lacking = [
        path
        for path, command in commands(app, "")
        if not any("--quiet" in option.opts for option in command.params)
    ]
    assert lacking == []
