"""Settings: fields of frozen dataclasses that carry their help text and the values they take.

A field made by `setting` is checked by `check_settings` and becomes an option of the command line;
its default stands in the dataclass alone.
"""

import math
import numbers
from dataclasses import Field, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, NamedTuple, get_args, get_origin

from sbertkit.arguments import whole_number
from sbertkit.errors import InputError, InputTypeError

_KEY = "setting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of a field beside its type and default.

    Attributes:
        help: Help text, a sentence.
        minimum: The smallest number; of whole numbers 1 by default.
        above: Numbers must be greater than this.
        maximum: The largest number.
        choices: The names to choose from.
        flags: Other spellings of the option.
        metavar: What stands for the value in the help.
        alone: The value of the option where it is given without one.
        runtime: Whether it changes nothing about the result.
        option: Whether the command line has an option of this name.
    """

    help: str
    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    alone: Any = None
    runtime: bool = False
    option: bool = True


class Range(NamedTuple):
    """The lowest and the highest of some numbers."""

    low: float
    high: float


class Sizes(tuple[int, ...]):
    """Distinct sizes, each at least 1."""


def setting(default: Any, help: str, **more: Any) -> Any:  # noqa: A002  # as click and argparse name it
    """A dataclass field with that default; `more` are attributes of `Setting`, no others."""
    return field(default=default, metadata={_KEY: Setting(help=help, **more)})


def settings_of(record: Any) -> dict[str, Setting]:
    """The settings of a dataclass or of one of its instances, by field name."""
    return {one.name: one.metadata[_KEY] for one in fields(record) if _KEY in one.metadata}


def value_type(one: "Field[Any]") -> Any:
    """The type of a field's values without None and type parameters, such as ``int`` or ``tuple``.

    Two numbers are a `Range`, any number of whole ones `Sizes`.

    Args:
        one: Of a dataclass whose annotations are evaluated.
    """
    kinds = [kind for kind in _kinds(one) if kind is not NoneType]
    known = _TUPLES.get(get_args(kinds[0]))
    if known is not None:
        return known
    return get_origin(kinds[0]) or kinds[0]


_TUPLES: dict[tuple[Any, ...], type] = {(float, float): Range, (int, ...): Sizes}
"""What tuples stand for, by the types of their items."""


def check_settings(record: Any) -> None:
    """Checks the settings of a frozen dataclass, and stores each as plain Python's own type.

    Raises:
        InputError: A value out of range, or none of the choices.
        InputTypeError: A value of another type.
    """
    for one in fields(record):
        value = getattr(record, one.name)
        check = _CHECKS.get(value_type(one))
        if _KEY in one.metadata and check and not (value is None and NoneType in _kinds(one)):
            checked = check(one.name, value, one.metadata[_KEY])
            object.__setattr__(record, one.name, checked)


def _kinds(one: "Field[Any]") -> tuple[Any, ...]:
    return get_args(one.type) if isinstance(one.type, UnionType) else (one.type,)


def _whole(name: str, value: object, known: Setting) -> int:
    number = whole_number(name, value, int(1 if known.minimum is None else known.minimum))
    _check_range(name, number, known)
    return number


def _number(name: str, value: object, known: Setting) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, not {value}")
    _check_range(name, number, known)
    return number


def _check_range(name: str, number: float, known: Setting) -> None:
    if known.above is not None and number <= known.above:
        raise InputError(f"{name} must be above {known.above:g}, not {number}")
    if known.minimum is not None and number < known.minimum:
        raise InputError(f"{name} must be at least {known.minimum:g}, not {number}")
    if known.maximum is not None and number > known.maximum:
        raise InputError(f"{name} must be at most {known.maximum}, not {number}")


def _flag(name: str, value: object, _: Setting) -> bool:
    if not isinstance(value, bool):
        raise InputTypeError(f"{name} must be True or False, not {value!r}")
    return value


def _text(name: str, value: object, known: Setting) -> str:
    if known.choices and value not in known.choices:
        raise InputError(f"{name} must be one of {', '.join(known.choices)}, not {value!r}")
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be a str, found {value!r}")
    return value


def _names(name: str, value: object, known: Setting) -> tuple[str, ...]:
    if not isinstance(value, tuple | list) or not all(isinstance(one, str) for one in value):
        raise InputTypeError(f"{name} must be a tuple of names, found {value!r}")
    if known.choices:
        if not value or not set(value) <= set(known.choices):
            raise InputError(f"{name} must be of {', '.join(known.choices)}, found {value!r}")
        if len(set(value)) < len(value):
            raise InputError(f"{name} must be distinct, found {', '.join(value)}")
    return tuple(value)


def _range(name: str, value: object, known: Setting) -> Range:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InputTypeError(f"{name} must be a pair of numbers, found {value!r}")
    found = Range(*(_number(f"a number of {name}", one, known) for one in value))
    if found.low >= found.high:
        raise InputError(f"{name} must be a lower and a higher number, found {tuple(value)}")
    return found


def _sizes(name: str, value: object, known: Setting) -> Sizes:
    if not isinstance(value, tuple | list) or not value:
        raise InputTypeError(f"{name} must be a tuple of sizes, found {value!r}")
    sizes = Sizes(_whole(f"a size of {name}", one, known) for one in value)
    if len(set(sizes)) < len(sizes):
        raise InputError(f"{name} must be distinct sizes, found {', '.join(map(str, sizes))}")
    return sizes


_CHECKS = {
    int: _whole,
    float: _number,
    bool: _flag,
    str: _text,
    tuple: _names,
    Range: _range,
    Sizes: _sizes,
}
