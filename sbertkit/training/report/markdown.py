"""Text and numbers from elsewhere as parts of a Markdown document, in which text stays text."""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from sbertkit.data.text import repair_surrogates
from sbertkit.formatting import UNDEFINED

_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_PLAIN_IN_CODE = re.compile(r"[\w .,:;=+@%/()'-]+")
_RISKY_IN_PROSE = re.compile(
    r"[^\w\s.:,;'()%+=-]|_"
    # what a link could be made of; not the full stop of a sentence or of a number
    r"|:(?=\S)|\.(?=[^\s\d])|(?<!\d)\.(?=\d)"
)


def one_line(value: object, limit: int = 200) -> str:
    """A value as one line without control characters, truncated to `limit` characters."""
    text = repair_surrogates(str(value))
    shown = (
        " " if char.isspace() else "" if unicodedata.category(char) in _INVISIBLE else char
        for char in text
    )
    line = " ".join("".join(shown).split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def base_name(path: object) -> str | None:
    """The last part of a path of any system, so that no folder is named; None for no path."""
    parts = [part for part in re.split(r"[/\\]", "" if path is None else str(path)) if part]
    return parts[-1] if parts else None


def code(value: object) -> str:
    """A value as code, for paragraphs, headings and table cells; ``n/a`` for None and no text."""
    line = "" if value is None else one_line(value)
    if not line:
        return UNDEFINED
    if _PLAIN_IN_CODE.fullmatch(line):
        return f"`{line}`"
    # Markdown gives a backtick or a pipe a meaning even in code, but never an entity.
    return f"<code>{''.join(map(_entity, line))}</code>"


def prose(value: object) -> str:
    """A value as running text, for a paragraph that begins with other text."""
    return _RISKY_IN_PROSE.sub(lambda found: _entity(found[0]), one_line(value, 1000))


def finite(value: object) -> float | None:
    """The value where it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < math.inf else None


def number(value: object, places: int | None = None) -> str:
    """A number as it was given or with so many decimal places; ``n/a`` for all else."""
    known = finite(value)
    if known is None:
        return UNDEFINED
    return str(known) if places is None else f"{known:.{places}f}"


def listed(value: object) -> str:
    """A value as JSON has it: a number, true or false, the items of a list, or text as code."""
    if isinstance(value, Mapping):
        value = [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, list | tuple):
        return ", ".join(map(listed, value)) or UNDEFINED
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, int | float) else code(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are safe already; nothing where there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) if len(lines) > 2 else ""


def _entity(char: str) -> str:
    plain = char == " " or char.isalnum() or not char.isascii()
    return char if plain else f"&#{ord(char)};"
