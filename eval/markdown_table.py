"""A table as Markdown."""

from collections.abc import Sequence


def markdown(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """The table's lines."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
