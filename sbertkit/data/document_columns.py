"""Which columns of a table are the text, the id and the metadata of documents."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sbertkit.arguments import did_you_mean
from sbertkit.data.bad_rows import BadRow
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.tables import Layout, Row
from sbertkit.data.text import is_blank, printable
from sbertkit.errors import InputError

TITLE = "title"
TEXTS = ("text", "body", "content", "document", "passage", "question", "abstract")
IDS = ("id", "_id", "docid", "doc_id")
"""The usual names of columns, the best first, in any case; a title goes before the text."""

_PART = "text:"
"""Before the name of a text column, which is a field of its own until they are joined."""
_SHOWN = 8  # columns of metadata


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns that a user has chosen.

    Attributes:
        text: Names, whose texts are joined by a space in this order; none takes the usual ones.
        id: A name; ``None`` takes a usual one, or else numbers of lines.
        metadata: Names; ``None`` takes all columns that are neither text nor id.
    """

    text: tuple[str, ...] = ()
    id: str | None = None
    metadata: tuple[str, ...] | None = None

    @property
    def made(self) -> bool:
        """Whether anything was chosen."""
        return bool(self.names) or self.metadata is not None

    @property
    def names(self) -> tuple[str, ...]:
        """All that were chosen."""
        return (*self.text, *([] if self.id is None else [self.id]), *(self.metadata or ()))


class DocumentColumns:
    """Finds the fields of documents among the columns of a table, and notes what was found.

    The first of several text columns, such as a title, stays in the metadata. A name with dots,
    such as ``author.name``, is a field of a field where there is no column of that name.

    Args:
        choice: What the user has chosen.
        with_id: Whether every document must have an id.
    """

    headerless = None

    def __init__(self, choice: ColumnChoice | None = None, *, with_id: bool = False) -> None:
        self._choice = choice or ColumnChoice()
        self._with_id = with_id or self._choice.id is not None
        self.nested = tuple(name for name in self._choice.names if "." in name)
        self._texts: dict[tuple[str, ...], None] = {}
        self._ids: dict[str, None] = {}
        self._metadata: dict[str, None] = {}
        self._seen: set[str] = set()
        self._first: tuple[str, ...] = ()

    @property
    def chosen(self) -> bool:
        """Whether the user has chosen any."""
        return self._choice.made

    def fits(self, names: Sequence[str]) -> bool:
        """Whether `of_header` takes names."""
        try:
            self._of_header(names, "")
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
        layout = self._of_header(names, where)
        self._note(names, layout)
        return layout

    def _of_header(self, names: Sequence[str], where: str) -> Layout:
        try:
            layout = self._layout(names)
            missing = self._missing(names)
        except BadRecordError as error:
            raise InputError(f"{where}: {error.reason}; rename it") from error
        if missing:
            raise InputError(f"{where}: {_no_column(missing[0], names)}")
        if not layout.positions.keys() - {"id"}:
            raise InputError(
                f"{where}: expected a column '{TEXTS[0]}', or {TITLE}, {', '.join(TEXTS[1:])}, "
                f"found {_shown(names)}; name the text's columns by text_columns (--text-column)"
            )
        if self._with_id and "id" not in layout.positions:
            raise InputError(
                f"{where}: expected a column 'id', or {', '.join(IDS[1:])}, found {_shown(names)}; "
                "name it by id_column (--id-column)"
            )
        return layout

    def of_object(self, names: Sequence[str]) -> Layout:
        """The layout that the keys of an object give.

        Raises:
            BadRecordError: It has no text or no needed id, or a duplicate name.
        """
        layout = self._layout(names)
        if not layout.positions.keys() - {"id"}:
            wanted = " or ".join(map(repr, self._choice.text or (TEXTS[0],)))
            raise BadRecordError(
                f"no field {printable(wanted, 200)}, found {_shown(names)} (name the text by "
                "text_columns (--text-column))"
            )
        if self._with_id and "id" not in layout.positions:
            wanted = printable(self._choice.id or IDS[0])
            raise BadRecordError(f"no field '{wanted}', found {_shown(names)}")
        self._note(names, layout)
        return layout

    def has_usual_names(self, names: Sequence[str]) -> bool:
        """Whether the cells of a line are the header of documents and no document themselves.

        Two of which only the second is a usual name may be an id and a text of one word.
        """
        known = [name.strip().lower() for name in names]
        usual = {TITLE, *TEXTS, *(IDS if len(known) == 2 else ())}
        return not usual.isdisjoint(known[:1] if len(known) == 2 else known) and all(
            name.strip() and not any(map(str.isspace, name.strip())) for name in names
        )

    def document(self, row: Row | BadRow) -> Row | BadRow:
        """The row with the fields ``text`` and, if there is one, ``id``."""
        if isinstance(row, BadRow):
            return row
        parts = {name: value for name, value in row.values.items() if name.startswith(_PART)}
        texts = []
        for name, value in parts.items():
            if isinstance(value, str):
                texts.append(value)
            elif value is not None or len(parts) == 1:
                field, found = printable(name.removeprefix(_PART)), type(value).__name__
                return BadRow(row.number, f"{field} must be a str, found {found}")
        filled = [text for text in texts if not is_blank(text)]
        whole = filled[0] if len(filled) == 1 else " ".join(filled).strip()
        values = {"id": row.values["id"]} if "id" in row.values else {}
        return row._replace(values={**values, "text": whole if filled else "".join(texts)})

    def check_found(self, where: str) -> None:
        """Refuses a chosen column that no row has had.

        Raises:
            InputError: There is one.
        """
        missing = [name for name in self._choice.names if name not in self._seen]
        if missing and self._first:
            raise InputError(f"{where}: {_no_column(missing[0], self._first)}")

    def describe(self) -> str | None:
        """What was taken, in a line; ``None`` if no row was read by names of columns."""
        if not self._texts:
            return None
        metadata = list(map(printable, self._metadata))
        if len(metadata) > _SHOWN:
            metadata[_SHOWN:] = [f"and {len(metadata) - _SHOWN} more"]
        parts = {
            "text": " or ".join(" + ".join(map(printable, names)) for names in self._texts),
            "id": " or ".join(map(printable, self._ids)),
            "metadata": ", ".join(metadata) or "none",
        }
        return "; ".join(f"{name}: {found}" for name, found in parts.items())

    def _layout(self, names: Sequence[str]) -> Layout:
        chosen, places = self._choice, _Places(names)
        if chosen.text:
            texts = [places.find(name) for name in chosen.text]
        else:
            texts = [places.find(TITLE), places.first(TEXTS)]
        parts = [place for place in texts if place is not None]
        identifier = places.first(IDS) if chosen.id is None else places.find(chosen.id)
        if chosen.metadata is None:
            kept = places.others({identifier, *(parts[1:] if len(parts) > 1 else parts)})
        else:
            kept = places.named(chosen.metadata)
        fields = {f"{_PART}{names[place]}": place for place in parts}
        if identifier is not None:
            fields["id"] = identifier
        return Layout(fields, len(names), others=kept)

    def _missing(self, names: Sequence[str]) -> list[str]:
        """The chosen columns that are not among some names."""
        places = _Places(names)
        return [name for name in self._choice.names if places.find(name) is None]

    def _note(self, names: Sequence[str], layout: Layout) -> None:
        self._first = self._first or tuple(names)
        self._seen.update(set(self._choice.names) - set(self._missing(names)))
        parts = (place for field, place in layout.positions.items() if field != "id")
        self._texts[tuple(names[place] for place in parts)] = None
        place = layout.positions.get("id")
        self._ids["the line number" if place is None else names[place]] = None
        self._metadata.update(dict.fromkeys(layout.others))


class _Places:
    """The positions of columns by name: as it is written, or else in any case.

    Args:
        names: Of the columns.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._exact = {name: place for place, name in enumerate(names)}
        self._folded: dict[str, list[int]] = defaultdict(list)
        for place, name in enumerate(names):
            self._folded[str(name).strip().lower()].append(place)

    def find(self, name: str) -> int | None:
        """The position of a column.

        Raises:
            BadRecordError: Several have the name in another case.
        """
        if name in self._exact:
            found = [self._exact[name]] * self._names.count(name)
        else:
            found = self._folded.get(name.strip().lower(), [])
        if len(found) > 1:
            raise self._duplicate()
        return found[0] if found else None

    def first(self, names: Sequence[str]) -> int | None:
        """The position of the first of some names that there is."""
        found = (self.find(name) for name in names)
        return next((place for place in found if place is not None), None)

    def others(self, taken: set[int | None]) -> dict[str, int]:
        """The positions of the columns that are not taken; those without a name hold nothing.

        Raises:
            BadRecordError: Two have one name.
        """
        named = [name for name in self._names if name != ""]
        if len(set(named)) < len(named):
            raise self._duplicate()
        return {name: self._exact[name] for name in named if self._exact[name] not in taken}

    def named(self, names: Sequence[str]) -> dict[str, int]:
        """The positions of those of some names that there are."""
        found = map(self.find, names)
        return {self._names[place]: place for place in found if place is not None}

    def _duplicate(self) -> BadRecordError:
        return BadRecordError(f"duplicate column name (found {_shown(self._names)})")


def _no_column(name: str, names: Sequence[str]) -> str:
    return f"no column '{printable(name)}'{did_you_mean(name, names)}; found {_shown(names)}"


def _shown(names: Sequence[str]) -> str:
    return printable(", ".join(map(str, names)), 200)
