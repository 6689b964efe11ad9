"""What a file's first bytes say of its encoding, where they contradict the one that is stated."""

import codecs

_MARKS = (  # UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GZIP = b"\x1f\x8b"
_MANY = 0.9
_FEW = 1 / 16
_CERTAIN = 16
"""NUL bytes that are no accident when all of them are at odd or all at even places."""


def looks_like(sample: bytes, codec: str) -> str | None:
    """What a file is that cannot be of the stated encoding, and what to do; None for no doubt.

    Args:
        sample: Its first bytes.
        codec: Python's name of the stated encoding.
    """
    if sample.startswith(_GZIP):
        return "gzip, whose name must end in .gz"
    found = _wide_encoding(sample)
    if found is None or found[:6] == codec[:6]:
        return None
    # Rare characters of UTF-32 have the NULs of UTF-16, so that without a mark decoding decides.
    if codec.startswith("utf-32") and found.endswith(("-le", "-be")):
        return None
    return (
        f"{found}; convert the file, or pass encoding (--encoding) {found}, where the"
        " command has it"
    )


def _wide_encoding(sample: bytes) -> str | None:
    """The encoding of two or four bytes per character, by its mark or the positions of NULs."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    quarter = len(sample) // 4
    if not quarter:
        return None
    zeros = [sample[place : 4 * quarter : 4].count(0) for place in range(4)]
    share = [count / quarter for count in zeros]
    if min(share[2:]) > _MANY and share[0] < _MANY:
        return "utf-32-le"
    if min(share[:2]) > _MANY and share[3] < _MANY:
        return "utf-32-be"
    odd, even = zeros[1] + zeros[3], zeros[0] + zeros[2]
    # Latin text has a NUL in each character, other scripts have one in blanks and line ends alone
    if even <= odd * _FEW and (odd >= quarter or odd >= _CERTAIN):
        return "utf-16-le"
    if odd <= even * _FEW and (even >= quarter or even >= _CERTAIN):
        return "utf-16-be"
    return None
