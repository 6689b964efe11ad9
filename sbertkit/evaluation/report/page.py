"""A page of tables and pictures, and how it becomes HTML that asks nobody for anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbertkit.errors import MissingDependency
from sbertkit.storage import staged_file, storage_errors
from sbertkit.terminal import visible_text

_TEMPLATE = "page.html"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column names; a column whose name ends in ``>`` is set flush right.

    Attributes:
        columns: Their names.
        rows: Cells, shown as their text.
        caption: What it is.
        marked: Rows that stand out, such as the one this page is about.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG drawing with what it shows."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: a title, sentences, tables and pictures, in this order."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """What a report says.

    Attributes:
        title: Of the page.
        headline: The few figures that matter most, by name.
        facts: What was measured, by name.
        sections: The parts.
        lineage: Where the figures come from, by name; shown at the end.
    """

    title: str
    headline: Mapping[str, str]
    facts: Mapping[str, object]
    sections: Sequence[Section]
    lineage: Mapping[str, object] = field(default_factory=dict)


def render(page: Page) -> str:
    """The page as HTML; all text is escaped, pictures are inside, nothing is fetched.

    Raises:
        MissingDependency: Jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingDependency("reports need Jinja2: pip install jinja2") from error
    environment = Environment(
        loader=PackageLoader("sbertkit.evaluation.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = _plain
    return environment.get_template(_TEMPLATE).render(page=page)


def write_page(path: Path, page: Page) -> None:
    """Writes the page in one step.

    Raises:
        StorageError: The disk is full or the like.
        MissingDependency: Jinja2 is not installed.
    """
    text = render(page)
    with storage_errors(path), staged_file(path) as staged:
        staged.write_text(text, encoding="utf-8", newline="\n")


def _plain(value: Any) -> str:
    """A cell's text; what no page shows or a browser would obey is there as an escape."""
    return "n/a" if value is None else visible_text(str(value))
