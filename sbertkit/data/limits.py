"""How large one text may be, so that no line, row or file takes all memory."""

MAX_TEXT_BYTES = 16 * 2**20
"""Largest line, row or text file by default; the longest novels have some 6 MB."""

LARGEST_TEXT_BYTES = 10**9
"""Largest limit that can be asked for, which is SQLite's."""

MAX_LINE_BYTES = 2**30
"""Bytes of a line after which its end is no longer looked for."""


def utf8_bytes(text: str) -> int:
    """The size of a text in UTF-8, in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def too_long(size: int, limit: int) -> str:
    """Why a text is refused: its size and the limit, in bytes, and the option that sets it."""
    allowed = f"the {limit:,} that a text may have by max_text_bytes (--max-text-bytes)"
    return f"{size:,} bytes, more than {allowed}"
