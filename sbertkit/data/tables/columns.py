"""The fields of rows, found by the names of their columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sbertkit.data.metadata import BadRecordError
from sbertkit.data.text import printable
from sbertkit.errors import InputError

_EMPTY: Mapping[str, Any] = {}
_ABSENT = object()


class Row(NamedTuple):
    """A row as it was read: nothing is known yet about the types of its values.

    Attributes:
        number: Of its line or row, from 1.
        values: By field; a field that the row lacks is not in it.
        others: Its other columns by name, where they are wanted.
        classes: The names of the classes behind a field's numbers, where the file has them.
    """

    number: int
    values: dict[str, object]
    others: Mapping[str, object] = _EMPTY
    classes: Mapping[str, tuple[str, ...]] = _EMPTY


class Layout:
    """Where the values of the fields are in the cells of a row.

    Args:
        positions: Positions of the fields, from 0.
        width: How many cells a row has.
        others: Positions of other columns by name.
        more: Whether a row may have more cells.
        classes: See `Row`.
    """

    def __init__(
        self,
        positions: Mapping[str, int],
        width: int,
        *,
        others: Mapping[str, int] = _EMPTY,
        more: bool = False,
        classes: Mapping[str, tuple[str, ...]] = _EMPTY,
    ) -> None:
        self.positions = positions
        self.width = width
        self.others = others
        self._more = more
        self._classes = classes
        self._in_order = tuple(positions.items())

    def fits(self, count: int) -> bool:
        """Whether a row has that many cells."""
        return count == self.width or (self._more and count > self.width)

    def row(self, number: int, cells: Sequence[object]) -> Row:
        """The row in the cells of a line."""
        values = {field: cells[position] for field, position in self._in_order}
        if not self.others:
            return Row(number, values, _EMPTY, self._classes)
        others = {name: cells[position] for name, position in self.others.items()}
        return Row(number, values, others, self._classes)


class Fields(Protocol):
    """Finds the fields of rows by the names of columns."""

    @property
    def headerless(self) -> Callable[[Sequence[str]], Layout | None] | None:
        """The layout that the first cells of a text file have, None if they are a header."""
        ...

    @property
    def nested(self) -> tuple[str, ...]:
        """Names such as ``author.name`` that may mean a field of a field."""
        ...

    def fits(self, names: Sequence[str]) -> bool:
        """Whether `of_header` takes names."""
        ...

    def of_header(self, names: Sequence[str], where: str) -> Layout:
        """The layout that the names of a table's columns give; see `Columns`."""
        ...

    def of_object(self, names: Sequence[str]) -> Layout:
        """The layout that the keys of an object give; see `Columns`."""
        ...


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields that a kind of data has, and the names of their columns.

    Attributes:
        aliases: The names of the column of each field, the best first, in lower case unless
            `exact`; the best one that a table has counts.
        needed: Fields that every row must have.
        expected: What messages call the columns that a header must have.
        either: Fields of which a header must have one, though a JSON object may lack all.
        paired: Fields that take names of one rank: ``sentence1`` with ``sentence2``.
        exact: Whether the case of a name counts.
        nested: See `Fields`.
        headerless: See `Fields`.
    """

    aliases: Mapping[str, tuple[str, ...]]
    needed: tuple[str, ...]
    expected: str
    either: tuple[str, ...] = ()
    paired: tuple[str, ...] = ()
    exact: bool = False
    nested: tuple[str, ...] = ()
    headerless: Callable[[Sequence[str]], Layout | None] | None = None

    def positions(self, names: Sequence[str]) -> dict[str, int]:
        """Where the fields are among columns of some names, whether needed or not."""
        known = self._folded(names)
        found: dict[str, int] = {}
        alone = ((field,) for field in self.aliases if field not in self.paired)
        for fields in (*alone, *([self.paired] if self.paired else [])):
            for chosen in zip(*(self.aliases[field] for field in fields), strict=True):
                if all(name in known for name in chosen):
                    found.update(zip(fields, map(known.index, chosen), strict=True))
                    break
        return found

    def _folded(self, names: Sequence[str]) -> list[str]:
        return list(names) if self.exact else [name.strip().lower() for name in names]

    def _layout(self, names: Sequence[str]) -> Layout:
        positions = self.positions(names)
        known = self._folded(names)
        used = {known[position] for position in positions.values()}
        if any(known.count(name) > 1 for name in used):
            raise BadRecordError(f"duplicate column name (found {_shown(names)})")
        return Layout(positions, len(names))

    def fits(self, names: Sequence[str]) -> bool:
        """Whether `of_header` takes names."""
        try:
            self.of_header(names, "")
        except InputError:
            return False
        return True

    def of_header(self, names: Sequence[str], where: str) -> Layout:
        """The layout that the names of a table's columns give.

        Args:
            names: Of all columns.
            where: The file, and the line of the header, for messages.

        Raises:
            InputError: A needed column is missing, or a duplicate name.
        """
        try:
            layout = self._layout(names)
        except BadRecordError as error:
            raise InputError(f"{where}: {error.reason}; rename it") from error
        missing = self._missing(layout)
        if self.either and not any(field in layout.positions for field in self.either):
            missing.append(" or ".join(self.aliases[field][0] for field in self.either))
        if missing:
            raise InputError(
                f"{where}: expected {self.expected}, found {_shown(names)};"
                f" rename columns or add {' and '.join(missing)}"
            )
        return layout

    def of_object(self, names: Sequence[str]) -> Layout:
        """The layout that the keys of an object give.

        Raises:
            BadRecordError: A needed one is missing, or a duplicate name.
        """
        layout = self._layout(names)
        missing = self._missing(layout)
        if missing:
            raise BadRecordError(f"no field {' and '.join(missing)}")
        return layout

    def _missing(self, layout: Layout) -> list[str]:
        """The best names of needed columns that are missing, quoted; all names of paired ones."""
        missing = [field for field in self.needed if field not in layout.positions]
        if missing and missing == list(self.paired):
            ranks = zip(*(self.aliases[field] for field in missing), strict=True)
            return [", or ".join(" and ".join(f"'{name}'" for name in rank) for rank in ranks)]
        return [f"'{printable(self.aliases[field][0])}'" for field in missing]


class ObjectReader:
    """Makes rows of mappings, most of which have the same keys as the one before.

    Args:
        columns: The fields that they have.
    """

    def __init__(self, columns: Fields) -> None:
        self._columns = columns
        self._names: tuple[str, ...] | None = None
        self._layout = Layout({}, 0)

    def row(self, number: int, fields: Mapping[str, object]) -> Row:
        """The row in a mapping.

        Raises:
            BadRecordError: A needed field is missing.
        """
        if self._columns.nested:
            fields = _with_nested(fields, self._columns.nested)
        names = tuple(fields)
        if names != self._names:
            self._layout = self._columns.of_object(names)
            self._names = names
        return self._layout.row(number, list(fields.values()))


def _with_nested(fields: Mapping[str, object], names: Sequence[str]) -> Mapping[str, object]:
    """The fields of an object, and those fields of its fields that are named with dots."""
    found = dict(fields)
    for name in names:
        value: object = fields
        for part in name.split("."):
            value = value.get(part, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        if value is not _ABSENT:
            found.setdefault(name, value)
    return found


def _shown(names: Sequence[str]) -> str:
    return printable(", ".join(names), 200)
