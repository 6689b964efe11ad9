"""How fields are named in filters: one name for each path of keys."""

import re
from functools import lru_cache

ID = "id"
"""The field of the documents' ids, which hides one of the metadata with this name."""

KEYWORDS = frozenset(
    {"and", "contains", "false", "in", "is", "not", "null", "or", "starts", "true", "with"}
)
"""Words that are no field's name unless it is quoted, in any case."""

_NO_LETTERS = r"\x00-\x2c./:-@\[-^`{-\x7f\s“”‘’"
BARE_NAME = rf"[^0-9\-{_NO_LETTERS}][^{_NO_LETTERS}]*"
"""ASCII letters, digits, ``_``, ``-``, and everything beyond ASCII but white space and quotes."""

_BARE = re.compile(BARE_NAME)


def quoted(key: str) -> str:
    """A key as a filter has it: as it is, or in backticks, a backtick in it doubled.

    Unpaired surrogates, which no stored name has, are replaced by escapes.
    """
    key = key.encode("utf-8", "backslashreplace").decode()
    if _BARE.fullmatch(key) and key.lower() not in KEYWORDS:
        return key
    return f"`{key.replace('`', '``')}`"


@lru_cache(10_000)
def inner_name(outer: str, key: str) -> str:
    """The name of the field of a key within another field; ``""`` is the metadata itself."""
    return f"{outer}.{quoted(key)}" if outer else quoted(key)
