"""What counts as blank text, the repair of text that is not Unicode, and names of encodings."""

import codecs
import unicodedata

from sbertkit.errors import InputError, InputTypeError

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def is_blank(text: str) -> bool:
    """Whether a text is empty or holds only white space, control and format characters."""
    stripped = text.strip()
    if not stripped:
        return True
    if stripped[0].isprintable():
        return False
    return all(unicodedata.category(char) in _INVISIBLE for char in stripped)


def has_surrogates(text: str) -> bool:
    """Whether a text holds surrogate code points, which no UTF encoding can represent."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def repair_surrogates(text: str) -> str:
    """The text with each unpaired surrogate as U+FFFD and each pair as the character it means."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(text: str, limit: int = 80) -> str:
    """The text as messages show it: control characters escaped, truncated to `limit`."""
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    if shown.isprintable():
        return shown
    escaped = (
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shown
    )
    return "".join(escaped)


def folded(text: str) -> str:
    """The text without differences of case and blanks."""
    return " ".join(text.casefold().split())


def codec_name(encoding: str) -> str:
    """Python's own name of a text encoding, such as ``utf-8`` for ``UTF8``.

    Raises:
        InputError: No text encoding has this name.
        InputTypeError: The name is not a str.
    """
    if not isinstance(encoding, str):
        raise InputTypeError(f"encoding must be a str, found {type(encoding).__name__}")
    try:
        # encoding one character also refuses codecs that are not text, such as hex
        "a".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise InputError(
            f"encoding '{printable(encoding)}' is not known; pass the name of a text encoding,"
            " such as utf-8, utf-16, latin-1, cp1252, gb18030 or shift_jis"
        ) from error


def check_errors(errors: str) -> None:
    """Nothing, when a way to treat undecodable bytes is ``strict`` or ``replace``.

    Raises:
        InputError: It is something else.
    """
    if errors not in ("strict", "replace"):
        raise InputError(f"errors must be 'strict' or 'replace', not {errors!r}")
