r"""Lines of text from bytes: encodings, byte order marks and line ends.

A line ends at ``\n`` and nowhere else; one ``\r`` before it, or at the end of the file, is
dropped. All other separators (U+2028, U+0085, form feed, ...) are part of the text.
"""

import codecs
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from sbertkit.arguments import path_text
from sbertkit.data.streams import open_bytes, source_name
from sbertkit.data.text import check_errors, codec_name
from sbertkit.errors import InputError

_CHUNK = 1 << 14
_WHAT_TO_DO = (
    "convert the file, or pass its own encoding by --encoding NAME, or --errors replace, where the "
    "command has them"
)
_LOOKS_LIKE = {
    codecs.BOM_UTF16_LE: "it looks like utf-16",
    codecs.BOM_UTF16_BE: "it looks like utf-16",
    b"\x1f\x8b": "it looks like gzip, whose name must end in .gz",
}


class Line(NamedTuple):
    """A line of a file: its number from 1, and its text without the line end."""

    number: int
    text: str


class _Piece(NamedTuple):
    text: str
    error: UnicodeDecodeError | None
    offset: int


@dataclass(frozen=True, slots=True)
class _Decoding:
    name: str
    codec: str
    errors: str
    on_replaced: Callable[[int], None] | None

    def replaced(self, number: int, place: str, hint: str = "") -> None:
        """Note a line with undecodable bytes, or refuse it."""
        if self.errors == "strict":
            looks = f"; {hint}" if hint else ""
            raise InputError(
                f"{self.name} line {number}: not valid {self.codec} ({place}){looks}; {_WHAT_TO_DO}"
            )
        if self.on_replaced is not None:
            self.on_replaced(number)


def read_lines(
    source: str | os.PathLike[str],
    encoding: str = "utf-8",
    *,
    errors: str = "strict",
    on_replaced: Callable[[int], None] | None = None,
) -> Iterator[Line]:
    """The lines of a file, one at a time, without line ends and byte order mark.

    Args:
        source: A file, gzip when its name ends in ``.gz``, or ``-`` for standard input.
        encoding: Name of a text encoding.
        errors: ``strict`` refuses undecodable bytes, ``replace`` puts U+FFFD for them.
        on_replaced: Called with the number of each line in which bytes were replaced.

    Raises:
        InputError: Undecodable bytes, an unknown encoding or a broken gzip stream.
        MissingFile: The file does not exist.
        StorageError: The file cannot be read.
    """
    for line in _ended_lines(source, encoding, errors=errors, on_replaced=on_replaced):
        yield Line(line.number, line.text.removesuffix("\n").removesuffix("\r"))


def read_text(
    source: str | os.PathLike[str],
    encoding: str = "utf-8",
    *,
    errors: str = "strict",
    on_replaced: Callable[[int], None] | None = None,
) -> str:
    r"""The whole text of a file without byte order mark, each ``\r\n`` as ``\n``.

    Arguments and errors are those of `read_lines`.
    """
    lines = _ended_lines(source, encoding, errors=errors, on_replaced=on_replaced)
    return "".join(line.text for line in lines).replace("\r\n", "\n")


def _ended_lines(
    source: str | os.PathLike[str],
    encoding: str,
    *,
    errors: str,
    on_replaced: Callable[[int], None] | None,
) -> Iterator[Line]:
    check_errors(errors)
    codec = codec_name(encoding).removesuffix("-sig")
    decoding = _Decoding(source_name(path_text(source)), codec, errors, on_replaced)
    split = _utf8_lines if codec == "utf-8" else _other_lines
    with open_bytes(source) as stream:
        yield from split(stream, decoding)


def _utf8_lines(stream: BinaryIO, decoding: _Decoding) -> Iterator[Line]:
    start = 0  # of the line, in bytes of the file
    for number, raw in enumerate(stream, 1):
        line = raw
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            line = raw.removeprefix(codecs.BOM_UTF8)
            start = len(codecs.BOM_UTF8)
            if not line:
                return
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            hint = _LOOKS_LIKE.get(line[:2], "") if number == 1 else ""
            decoding.replaced(number, _place(line, error.start, start), hint)
            text = line.decode(errors="replace")
        else:
            if b"\0" in line and _is_nul_heavy(line):
                hint = "so many NUL bytes look like utf-16-le, utf-16-be or utf-32"
                decoding.replaced(number, _place(line, line.index(0), start), hint)
                text = text.replace("\0", "\ufffd")
        yield Line(number, text)
        start += len(line)


def _place(line: bytes, position: int, start: int) -> str:
    byte = f"byte 0x{line[position]:02x}"
    return f"{byte} at offset {position} in the line, {start + position} in the file"


def _is_nul_heavy(line: bytes) -> bool:
    # Latin text in UTF-16 is valid UTF-8 of which every second character is NUL
    return line.count(0) * 4 >= len(line)


def _other_lines(stream: BinaryIO, decoding: _Decoding) -> Iterator[Line]:
    number = 1
    pending: list[str] = []
    damaged = False
    for piece in _pieces(stream, decoding):
        if piece.error is not None and not damaged:
            byte = piece.error.object[piece.error.start]
            decoding.replaced(number, f"byte 0x{byte:02x} at offset {piece.offset} in the file")
            damaged = True
        first, *others = piece.text.split("\n")
        pending.append(first)
        for other in others:
            yield Line(number, _without_mark(number, "".join(pending)) + "\n")
            number += 1
            pending = [other]
            damaged = False
    last = _without_mark(number, "".join(pending))
    if last:
        yield Line(number, last)


def _without_mark(number: int, text: str) -> str:
    # utf-16-le and its kin leave the mark in the text, utf-16 takes it away
    return text.removeprefix("\ufeff") if number == 1 else text


def _pieces(stream: BinaryIO, decoding: _Decoding) -> Iterator[_Piece]:
    """Decoded text in pieces; a piece with an error is one U+FFFD for the bytes of the error.

    The bytes after an error are decoded from the decoder's state before it, as Python's own
    ``replace`` does, so that lines with replaced bytes can be told from lines that hold U+FFFD.
    """
    decoder = codecs.getincrementaldecoder(decoding.codec)("strict")
    read = 0
    chunk = b"start"
    while chunk:
        chunk = stream.read(_CHUNK)
        read += len(chunk)
        rest: bytes | None = chunk
        while rest is not None:
            mode = decoder.getstate()[1]
            try:
                yield _Piece(decoder.decode(rest, final=not chunk), None, read)
                rest = None
            except UnicodeDecodeError as error:
                whole = bytes(error.object)  # bytes kept from the last chunk, then `rest`
                decoder.setstate((b"", mode))
                yield _Piece(decoder.decode(whole[: error.start]), None, read)
                yield _Piece("\ufffd", error, read - len(whole) + error.start)
                rest = whole[error.end :]
            except UnicodeError as error:
                raise InputError(
                    f"{decoding.name}: cannot be read as {decoding.codec} ({error}); {_WHAT_TO_DO}"
                ) from error
