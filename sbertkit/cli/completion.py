"""What the shell completes for the arguments of commands: paths, and names of sets and models."""

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem


class Completed(click.ParamType[Any]):
    """Text that the shell completes with paths and names.

    Args:
        name: What the text is.
        names: Gives the names.
        paths: ``file`` or ``dir``.
    """

    def __init__(
        self, name: str, names: Callable[[], Iterable[str]] = tuple, paths: str = "file"
    ) -> None:
        self.name = name
        self._names = names
        self._paths = paths

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text as it is."""
        del param, ctx
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so, and a mark for paths."""
        del ctx, param
        named = [CompletionItem(one) for one in self._names() if one.startswith(incomplete)]
        return [*named, CompletionItem(incomplete, type=self._paths)]


def _sets(*tasks: str) -> Callable[[], list[str]]:
    def names() -> list[str]:
        from sbertkit.data.named import NAMED_SETS

        return [one.name for one in NAMED_SETS if not tasks or one.task in tasks]

    return names


def _suites() -> tuple[str, ...]:
    from sbertkit.evaluation.suites.definition import suite_names

    return tuple(suite_names())


def _models() -> tuple[str, ...]:
    from sbertkit.encoder.resolve import BUNDLED_NAME

    return (BUNDLED_NAME,)


def _known_models() -> list[str]:
    from sbertkit.encoder.catalog import KNOWN_MODELS

    return [one.name for one in KNOWN_MODELS]


PATH = Completed("path")
INDEX = Completed("index", paths="dir")
MODEL = Completed("model", _models, "dir")
KNOWN_MODEL = Completed("model", _known_models)
STS_SET = Completed("set", _sets("sts"))
COLLECTION = Completed("collection", _sets("retrieval"), "dir")
SET = Completed("set", _sets())
SUITE = Completed("suite", _suites)
"""The kinds of arguments."""
