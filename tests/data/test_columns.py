"""Fields of rows, found by the names of their columns."""

from dataclasses import replace

import pytest

from sbertkit.data.metadata import BadRecordError
from sbertkit.data.tables import Columns, ObjectReader, Row
from sbertkit.errors import InputError

COLUMNS = Columns(
    {"id": ("id", "key"), "text": ("text", "body"), "more": ("title", "head")},
    needed=("text", "more"),
    paired=("text", "more"),
    expected="a text and its title",
)


def row(names: str, columns: Columns = COLUMNS) -> Row:
    """The row of a table with those columns, each of which holds its name."""
    return columns.of_header(names.split(), "x line 1").row(7, names.split())


def test_the_best_name_of_a_field_counts_in_any_order_and_case() -> None:
    found = row("x TITLE Body Text key ID y")
    assert found == Row(7, {"id": "ID", "text": "Text", "more": "TITLE"})


def test_paired_fields_take_names_of_one_rank() -> None:
    assert row("body text head").values == {"text": "body", "more": "head"}


@pytest.mark.parametrize("names", ["text head", "id", "x y"])
def test_a_header_without_a_pair_is_refused_with_all_its_names(names: str) -> None:
    with pytest.raises(InputError) as refusal:
        row(names)
    assert str(refusal.value) == (
        f"x line 1: expected a text and its title, found {', '.join(names.split())};"
        " rename columns or add 'text' and 'title', or 'body' and 'head'"
    )


@pytest.mark.parametrize("names", ["text title Text", "title text id ID"])
def test_a_duplicate_name_of_a_field_is_refused(names: str) -> None:
    with pytest.raises(InputError, match="duplicate column name"):
        row(names)


def test_other_columns_may_have_one_name() -> None:
    assert row("text title x x").values == {"text": "text", "more": "title"}


def test_a_header_needs_one_of_some_fields_and_an_object_none() -> None:
    columns = replace(COLUMNS, either=("id",))
    with pytest.raises(InputError, match="rename columns or add id"):
        row("text title", columns)
    assert ObjectReader(columns).row(1, {"text": 1, "title": 2}).values == {"text": 1, "more": 2}


def test_exact_names_differ_by_their_case() -> None:
    exact = replace(COLUMNS, exact=True, needed=())
    assert row("ID text title", exact) == Row(7, {"text": "text", "more": "title"})


def test_objects_may_have_other_keys_than_the_one_before() -> None:
    reader = ObjectReader(COLUMNS)
    assert reader.row(1, {"text": 1, "title": 2}).values == {"text": 1, "more": 2}
    assert reader.row(2, {"title": 3, "text": 4}).values == {"text": 4, "more": 3}
    with pytest.raises(BadRecordError, match="no field 'text' and 'title', or 'body' and 'head'"):
        reader.row(3, {"text": 5, "head": 6})
    assert reader.row(4, {"head": 7, "body": 8, "id": 9}).values == {"id": 9, "text": 8, "more": 7}
