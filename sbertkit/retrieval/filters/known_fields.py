"""The fields of an index: their types, how many documents have them, and unknown ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sbertkit.errors import BadFilter
from sbertkit.formatting import listed
from sbertkit.retrieval.filters.expression import Expression, fields_of
from sbertkit.retrieval.filters.field_names import ID
from sbertkit.retrieval.filters.field_store import ColumnSize
from sbertkit.retrieval.filters.keys import NOT_NULL, NULL, STRING
from sbertkit.retrieval.filters.segment_fields import SegmentFields
from sbertkit.retrieval.filters.tokens import bad_filter
from sbertkit.terminal import visible_text

_MAX_LISTED = 12
_NEAR = 0.6


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """A field of the documents of an index.

    Deleted documents are counted until their segment is rewritten.

    Attributes:
        types: How many documents have a value of each type: ``string``, ``number``, ``boolean``,
            ``list``, ``object``, or ``null``.
        share: Share of all documents that have a value which is not null, 0 to 1.
    """

    types: Mapping[str, int]
    share: float

    def __str__(self) -> str:
        types = [type_ for type_ in self.types if type_ != NULL] or [NULL]
        return f"{' or '.join(types)}, {100 * self.share:.3g} %"


def known_fields(documents: int, columns: Iterable[ColumnSize]) -> dict[str, FieldInfo]:
    """The fields of an index by name, those that most documents have first.

    Args:
        documents: Number of documents in all segments.
        columns: The columns of all segments.
    """
    if not documents:
        return {}
    types: dict[str, dict[str, int]] = {}
    for field, type_, entries in columns:
        if type_ in (*NOT_NULL, NULL):
            of_field = types.setdefault(field, {})
            of_field[type_] = of_field.get(type_, 0) + entries
    infos = {}
    for field, counts in types.items():
        having = sum(count for type_, count in counts.items() if type_ != NULL)
        infos[field] = FieldInfo(dict(sorted(counts.items(), key=_by_count)), having / documents)
    ordered = sorted(infos.items(), key=lambda item: (-item[1].share, item[0]))
    return {ID: FieldInfo({STRING: documents}, 1.0), **dict(ordered)}


def fields_of_segments(segments: Sequence[SegmentFields]) -> dict[str, FieldInfo]:
    """The fields of opened segments, see `known_fields`."""
    columns = (column for segment in segments for column in segment.sizes())
    return known_fields(sum(segment.count for segment in segments), columns)


def check_fields(expression: Expression, text: str, segments: Sequence[SegmentFields]) -> None:
    """Refuses fields that no document has; where there are no documents, any are known.

    Args:
        expression: The filter.
        text: Its text, for the message.
        segments: The segments of the index.

    Raises:
        BadFilter: A field is unknown; the known ones are listed, those with a similar name first.
    """
    for name, at in fields_of(expression) if segments else ():
        if not any(segment.has(name) for segment in segments):
            raise _unknown(name, at, text, fields_of_segments(segments))


def _unknown(name: str, at: int, text: str, known: Mapping[str, FieldInfo]) -> BadFilter:
    lowered = {one.lower(): one for one in known}
    near = [lowered[one] for one in get_close_matches(name.lower(), lowered, 3, _NEAR)]
    shown = [f"{one} ({known[one]})" for one in dict.fromkeys((*near, *known))]
    there = visible_text(listed(shown, _MAX_LISTED))
    return bad_filter(text, at, f"no document has the field {visible_text(name)}; found {there}")


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
