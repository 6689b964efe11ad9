"""Options that are made of the settings of a dataclass."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import click

from sbertkit.settings import Range, Setting, Sizes, settings_of, value_type


class Names(click.ParamType[Any]):
    """Names with commas between them."""

    name = "names"

    def __init__(self, choices: Sequence[str] = ()) -> None:
        self.choices = choices

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names, each one of the choices where there are such."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if not name or (self.choices and name not in self.choices):
                expected = f"one of {', '.join(self.choices)}" if self.choices else "a name"
                self.fail(f"expected {expected}, found {name!r}", param, ctx)
        return names


class Numbers(click.ParamType[Any]):
    """Whole numbers with commas between them."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"expected whole numbers such as 1,2,3, found {value!r}", param, ctx)


class _Range(click.ParamType[Any]):
    """A lowest and a highest number."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Range:
        """The two numbers."""
        if isinstance(value, Range):
            return value
        found = re.fullmatch(r"(-?[0-9.]+)-(-?[0-9.]+)", value)
        try:
            low, high = map(float, found.groups() if found else ())
        except ValueError:
            self.fail(f"expected two numbers such as 0-5, found {value!r}", param, ctx)
        if low >= high:
            self.fail(f"expected the lower number first, found {value!r}", param, ctx)
        return Range(low, high)


class _LabelMap(click.ParamType[Any]):
    """Names of integer labels."""

    name = "labels"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[int, str]:
        """The mapping from numbers to names."""
        from sbertkit.data.nli import parse_label_map
        from sbertkit.errors import InputError

        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # converted before
        try:
            return parse_label_map(value)
        except InputError as error:
            self.fail(error.in_shell, param, ctx)


_TYPES: dict[Any, Callable[[Setting], Any]] = {
    int: lambda known: click.IntRange(
        1 if known.minimum is None else int(known.minimum),
        None if known.maximum is None else int(known.maximum),
    ),
    float: lambda known: _float_range(
        known.above if known.minimum is None else known.minimum, known.maximum, known
    ),
    bool: lambda _: bool,
    str: lambda known: click.Choice(known.choices) if known.choices else str,
    tuple: lambda known: Names(known.choices),
    Mapping: lambda _: _LabelMap(),
    Range: lambda _: _Range(),
    Sizes: lambda _: Numbers(),
}
"""The type of an option, by that of its setting."""


def _float_range(low: float | None, high: float | None, known: Setting) -> click.ParamType[Any]:
    if low is None and high is None:
        return click.FLOAT
    return click.FloatRange(low, high, min_open=known.above is not None)


def setting_options(record: type, more: str = "") -> dict[str, Callable[[Any], Any]]:
    """A click option per setting of a dataclass, by name; `more` ends each help text."""
    known = settings_of(record)
    return {
        field.name: _option(field.name, field.default, value_type(field), known[field.name], more)
        for field in fields(record)
        if field.name in known and known[field.name].option
    }


def converted(record: type, name: str, text: str) -> Any:
    """The value of a setting of a dataclass that stands in a text, as its option takes it.

    Raises:
        click.BadParameter: It is none.
    """
    (one,) = (field for field in fields(record) if field.name == name)
    kind = click.types.convert_type(_TYPES[value_type(one)](settings_of(record)[name]))
    return kind.convert(text, None, None)


def _option(name: str, default: Any, kind: Any, known: Setting, more: str) -> Callable[[Any], Any]:
    flag = name.replace("_", "-")
    if kind is bool and default is not False:
        flag = f"{flag}/--no-{flag}"
    if isinstance(default, tuple):
        default = ",".join(default) or None
    return click.option(
        f"--{flag}",
        *known.flags,
        name,
        type=_TYPES[kind](known),
        is_flag=kind is bool,
        **({} if known.alone is None else {"flag_value": known.alone}),
        default=default,
        show_default=default not in (None, False),
        metavar=known.metavar,
        help=f"{known.help}{more}",
    )
