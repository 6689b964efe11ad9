"""The three labels of natural language inference, and what data sets write for them."""

import logging
import re
from collections.abc import Mapping

from sbertkit.arguments import whole_number
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.nli_labels import NLI_LABELS
from sbertkit.data.text import printable
from sbertkit.errors import InputError, InputTypeError

logger = logging.getLogger(__name__)

NO_GOLD = -1
"""What `LabelReader` gives for a row without agreement on its label."""

_INDICES = {name: index for index, name in enumerate(NLI_LABELS)}
_NAMES = ", ".join(NLI_LABELS)
_EXAMPLE = ",".join(f"{index}={name}" for index, name in enumerate(NLI_LABELS))
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_MIN_NUMBER = -(10**18)


def parse_label_map(text: str) -> dict[int, str]:
    """The mapping in ``0=entailment,1=neutral,2=contradiction``.

    Args:
        text: Numbers and names; not every name is needed, and two numbers may have one name.

    Raises:
        InputError: Not of this form, an unknown name, or a duplicate number.
        InputTypeError: Not a str.
    """
    if not isinstance(text, str):
        raise InputTypeError(f"labels must be a str such as {_EXAMPLE}, not {text!r}")
    mapping: dict[int, str] = {}
    for part in text.split(","):
        number, equals, name = part.partition("=")
        if not equals or not _NUMBER.fullmatch(number.strip()):
            raise InputError(
                f"labels: expected NUMBER=NAME, found '{printable(part)}'; write for example"
                f" {_EXAMPLE}"
            )
        key = int(number)
        if key in mapping:
            raise InputError(f"labels: duplicate number {key}; give it one name")
        mapping[key] = _canonical(name)
    return mapping


def check_label_map(labels: Mapping[int, str]) -> dict[int, str]:
    """The mapping with its names as in `NLI_LABELS`.

    Raises:
        InputError: It is empty or has an unknown name.
        InputTypeError: Not a mapping from whole numbers to str.
    """
    if not isinstance(labels, Mapping):
        found = type(labels).__name__
        raise InputTypeError(f"labels must map numbers to names, e.g. {_EXAMPLE}; found {found}")
    if not labels:
        raise InputError(f"labels: expected numbers and their names, e.g. {_EXAMPLE}; found none")
    return {
        whole_number("a number of labels", number, _MIN_NUMBER): _canonical(name)
        for number, name in labels.items()
    }


def _canonical(name: str) -> str:
    if not isinstance(name, str):
        raise InputTypeError(f"labels: expected one of {_NAMES}, found {type(name).__name__}")
    known = name.strip().lower()
    if known not in _INDICES:
        raise InputError(f"labels: expected one of {_NAMES}, found '{printable(name, 40)}'")
    return known


class UnmappedNumberError(Exception):
    """A label is a number without a mapping; caught inside this package."""

    def __init__(self, number: int) -> None:
        shown = printable(str(number), 40)
        super().__init__(
            f"label {shown} is a number, so a mapping to names is needed; pass labels"
            f" (--labels) {_EXAMPLE} in the order of this data set"
        )


class UnknownLabelError(BadRecordError):
    """A label that is none of the three."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"unknown label '{printable(shown, 40)}'")


class LabelReader:
    """Gives the index of what a data set writes as a label.

    Names count in any case and with blanks around; a number is what the mapping says. ``-``, -1,
    None and empty text mean that there is no gold label.

    Args:
        numbers: What numbers mean, with names as in `NLI_LABELS`; None when that is unknown.
        name: What messages call the file.
    """

    def __init__(self, numbers: Mapping[int, str] | None, name: str) -> None:
        self._numbers = numbers
        self._name = name
        self._known: dict[str, int] = {}
        self._warned = False

    def read(self, value: object, classes: tuple[str, ...] = ()) -> int:
        """The index in `NLI_LABELS`, or `NO_GOLD`.

        Args:
            value: The label.
            classes: The names of numbers in the file itself, which count where `numbers` is None.

        Raises:
            UnknownLabelError: Not one of the three labels.
            BadRecordError: A number that the mapping or the file lacks.
            UnmappedNumberError: A number without a mapping.
        """
        if classes and isinstance(value, int):
            value = self._named(value, classes)
        if isinstance(value, str):
            index = self._known.get(value)
            if index is None:
                index = self._known[value] = self._of_text(value.strip())
            return index
        if value is None:
            return NO_GOLD
        if isinstance(value, int) and not isinstance(value, bool):
            return self._of_number(value)
        raise UnknownLabelError(str(value))

    def _named(self, number: int, classes: tuple[str, ...]) -> object:
        """The name that the file gives to a number, unless the caller says what numbers mean."""
        shown = printable(", ".join(classes), 100)
        if self._numbers is not None:
            if not self._warned:
                logger.warning(
                    "%s: the numbers have the names that were given, not the file's own (%s)",
                    self._name,
                    shown,
                )
            self._warned = True
            return number
        if number == NO_GOLD:
            return number
        if 0 <= number < len(classes):
            return classes[number]
        raise BadRecordError(f"label {number} is not one of the file's classes {shown}")

    def _of_text(self, text: str) -> int:
        if text in ("", "-"):
            return NO_GOLD
        index = _INDICES.get(text.lower())
        if index is not None:
            return index
        if _NUMBER.fullmatch(text):
            return self._of_number(int(text))
        raise UnknownLabelError(text)

    def _of_number(self, number: int) -> int:
        name = None if self._numbers is None else self._numbers.get(number)
        if name is not None:
            return _INDICES[name]
        if number == NO_GOLD:
            return NO_GOLD
        if self._numbers is None:
            raise UnmappedNumberError(number)
        mapping = ", ".join(f"{key}={name}" for key, name in list(self._numbers.items())[:5])
        raise BadRecordError(f"label {printable(str(number), 40)} is not in the mapping {mapping}")
