"""A page of tables and pictures, rendered as self-contained HTML."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbertkit.evaluation.environment import environment_facts
from sbertkit.storage import staged_file, storage_errors
from sbertkit.terminal import visible_text

_TEMPLATE = "page.html"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under column names; a column whose name ends in ``>`` is right-aligned.

    Attributes:
        columns: Their names.
        rows: Cells, shown as their text.
        caption: A title.
        marked: Numbers of highlighted rows, such as that of the encoder the page is about.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    marked: frozenset[int] = frozenset()

    @property
    def stacked(self) -> bool:
        """Whether a narrow window shows each row as a list of its cells, for lack of room."""
        texts = [name for name in self.columns if not name.endswith(">")]
        return len(self.columns) > 3 or len(texts) > 1


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG drawing with what it shows."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Case:
    """An example: a title, a text, and lists of more texts by what they are."""

    title: str
    text: str
    lists: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, sentences, tables, pictures and cases, in this order."""

    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    cases: Sequence[Case] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a report.

    Attributes:
        title: Title of the page.
        headline: The most important figures, by name.
        facts: What was evaluated, by name.
        sections: The body.
        lineage: Where the figures come from, by name; shown at the end.
    """

    title: str
    headline: Mapping[str, str]
    facts: Mapping[str, object]
    sections: Sequence[Section]
    lineage: Mapping[str, object] = field(default_factory=dict)


def lineage_of(about: Mapping[str, Any]) -> dict[str, object]:
    """Facts about a result for the end of its page; its ``environment`` in several lines."""
    found = {name: value for name, value in about.items() if name != "environment"}
    return {**found, **environment_facts(about.get("environment", {}))}


def render(page: Page) -> str:
    """The page as HTML; all text is escaped, pictures are inline, nothing is fetched."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def cell(value: object) -> Markup:
        """The text of a cell; a line may end after a slash, as in the name of a model."""
        text = _plain(value)
        parts = [text] if value is None else re.split(r"(?<=\w)/(?=\w)", text)
        return Markup("/<wbr>").join(parts)

    environment = Environment(
        loader=PackageLoader("sbertkit.evaluation.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": _plain, "cell": cell}
    return environment.get_template(_TEMPLATE).render(page=page)


def write_page(path: Path, page: Page) -> None:
    """Writes the page atomically.

    Raises:
        StorageError: The file cannot be written, for example since the disk is full.
    """
    text = render(page)
    with storage_errors(path), staged_file(path) as staged:
        staged.write_text(text, encoding="utf-8", newline="\n")


def _plain(value: Any) -> str:
    """A cell's text; control and invisible characters are escaped."""
    return "n/a" if value is None else visible_text(str(value))
