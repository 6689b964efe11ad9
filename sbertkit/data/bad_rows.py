"""Rows that cannot be read, and their refusal in one message."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from sbertkit.errors import InputError

_MAX_LISTED = 10

Good = TypeVar("Good")


class BadRow(NamedTuple):
    """A line or row, or the lines up to `last`, that cannot be read."""

    number: int
    reason: str
    last: int | None = None

    @property
    def place(self) -> str:
        """The number of the line, or the first and the last: ``2-4``."""
        return f"{self.number}-{self.last}" if (self.last or 0) > self.number else f"{self.number}"


@dataclass(slots=True)
class BadRows:
    """The bad rows of a file, which are refused together; the first ten are listed.

    Attributes:
        name: What messages call the file.
        unit: What messages count in it: ``line`` or ``row``.
        count: How many there are.
        listed: Places and reasons of the first ones.
    """

    name: str
    unit: str = "line"
    count: int = 0
    listed: list[str] = field(default_factory=list)

    def add(self, bad: BadRow) -> None:
        """Takes one more."""
        self.count += 1
        if self.count <= _MAX_LISTED:
            self.listed.append(f"{bad.place} ({bad.reason})")

    def removed_from(self, rows: Iterable[Good | BadRow]) -> Iterator[Good]:
        """The good ones of some rows; takes the bad ones."""
        for row in rows:
            if isinstance(row, BadRow):
                self.add(row)
            else:
                yield row

    def refuse(self, hint: str = "") -> None:
        """Nothing when there are none.

        Args:
            hint: What the message says of all of them.

        Raises:
            InputError: There are some.
        """
        if not self.count:
            return
        more = self.count - len(self.listed)
        listed = ", ".join([*self.listed, f"and {more:,} more"] if more else self.listed)
        noun, them = (self.unit, "it") if self.count == 1 else (f"{self.unit}s", "them")
        raise InputError(
            f"{self.name}: {self.count:,} bad {noun}: {listed}{hint}; correct or remove {them}"
        )
