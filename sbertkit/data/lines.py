r"""Lines of text from bytes: encodings, byte order marks and line ends.

A line ends at ``\n`` and nowhere else; one ``\r`` before it, or at the end of the file, is
dropped. All other separators (U+2028, U+0085, form feed, ...) are part of the text.
"""

import codecs
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from sbertkit.arguments import path_text
from sbertkit.data.bad_rows import BadRow
from sbertkit.data.encodings import looks_like
from sbertkit.data.limits import MAX_LINE_BYTES, MAX_TEXT_BYTES, too_long, utf8_bytes
from sbertkit.data.metadata import BadRecordError
from sbertkit.data.streams import open_bytes, source_name
from sbertkit.data.text import check_errors, codec_name
from sbertkit.errors import InputError

_CHUNK = 1 << 14
_SKIPPED = 1 << 20  # bytes that are read at once of a line that is too long
_SAMPLE = 1 << 13
_WHAT_TO_DO = (
    "convert the file, or pass its encoding (--encoding), or errors (--errors) replace, where the "
    "command has them"
)


class Line(NamedTuple):
    """A line of a file: its number from 1, and its text without the line end."""

    number: int
    text: str


class LongLine(NamedTuple):
    """A line that is longer than a text may be, and that was not kept.

    Attributes:
        number: From 1.
        bytes: Its size, in UTF-8 where the file has another encoding.
        quoted: Whether it has an odd number of double quotes.
    """

    number: int
    bytes: int
    quoted: bool

    def bad_row(self, limit: int) -> BadRow:
        """The line as a bad row, where a text may have `limit` bytes."""
        return BadRow(self.number, too_long(self.bytes, limit))


class UndecodableText(InputError):
    """Bytes that are no text in the encoding, or of another one."""


class _Piece(NamedTuple):
    text: str
    error: UnicodeDecodeError | None
    offset: int


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How the text of a file is read.

    Attributes:
        encoding: Name of a text encoding; a byte order mark is dropped.
        errors: ``strict`` refuses undecodable bytes, ``replace`` puts U+FFFD for them.
        max_bytes: Largest line or text that is kept.
        on_replaced: Called with the place of each line in which bytes were replaced: its number.
        delimiter: What separates the cells of CSV; ``None`` finds it by the header.
    """

    encoding: str = "utf-8"
    errors: str = "strict"
    max_bytes: int = MAX_TEXT_BYTES
    on_replaced: Callable[[int | str], None] | None = None
    delimiter: str | None = None


_DEFAULT = TextOptions()


@dataclass(frozen=True, slots=True)
class _Decoding:
    name: str
    codec: str
    options: TextOptions
    keep_ends: bool

    def replaced(self, number: int, place: str) -> None:
        """Note a line with undecodable bytes, or refuse it."""
        if self.options.errors == "strict":
            raise UndecodableText(
                f"{self.name} line {number}: not valid {self.codec} ({place}); {_WHAT_TO_DO}"
            )
        if self.options.on_replaced is not None:
            self.options.on_replaced(number)

    def check_sample(self, sample: bytes) -> None:
        """Refuses a file that begins as no file of this encoding does, also to replace bytes."""
        found = looks_like(sample, self.codec)
        if found is not None:
            raise UndecodableText(
                f"{self.name} line 1: not valid {self.codec}; it looks like {found}"
            )

    def check_end(self, number: int, size: int) -> None:
        """Refuses a line that does not end, be it to skip it."""
        if size > MAX_LINE_BYTES:
            raise InputError(
                f"{self.name} line {number}: more than {MAX_LINE_BYTES:,} bytes without a line end;"
                " is it a text file?"
            )


def read_lines(source: str | os.PathLike[str], options: TextOptions = _DEFAULT) -> Iterator[Line]:
    """The lines of a file, one at a time, without line ends and byte order mark.

    Args:
        source: A file, gzip when its name ends in ``.gz``, or ``-`` for standard input.
        options: How it is read.

    Raises:
        InputError: Undecodable bytes, an unknown encoding, a line that is too long or a broken gzip
            stream.
        MissingFile: The file does not exist.
        StorageError: The file cannot be read.
    """
    for line in bounded_lines(source, options):
        if isinstance(line, LongLine):
            name = source_name(path_text(source))
            reason = too_long(line.bytes, options.max_bytes)
            raise InputError(f"{name} line {line.number}: {reason}; shorten or remove it")
        yield line


def bounded_lines(
    source: str | os.PathLike[str], options: TextOptions = _DEFAULT
) -> Iterator[Line | LongLine]:
    """The lines of a file as `read_lines` gives them, but long ones reported and not kept.

    Raises:
        InputError: As `read_lines`, but for long lines; or one without end.
    """
    return _lines(source, options, keep_ends=False)


def read_text(source: str | os.PathLike[str], options: TextOptions = _DEFAULT) -> str:
    r"""The whole text of a file without byte order mark, each ``\r\n`` as ``\n``.

    Arguments and errors are those of `bounded_lines`.

    Raises:
        BadRecordError: The text is too long.
    """
    texts: list[str] = []
    size = 0
    for line in _lines(source, options, keep_ends=True):
        size += line.bytes if isinstance(line, LongLine) else utf8_bytes(line.text)
        if size > options.max_bytes:
            texts.clear()
        elif isinstance(line, Line):
            texts.append(line.text)
    if size > options.max_bytes:
        raise BadRecordError(too_long(size, options.max_bytes))
    return "".join(texts).replace("\r\n", "\n")


def _lines(
    source: str | os.PathLike[str], options: TextOptions, *, keep_ends: bool
) -> Iterator[Line | LongLine]:
    check_errors(options.errors)
    codec = codec_name(options.encoding).removesuffix("-sig")
    decoding = _Decoding(source_name(path_text(source)), codec, options, keep_ends)
    split = _utf8_lines if codec == "utf-8" else _other_lines
    with open_bytes(source) as stream:
        decoding.check_sample(_sample(stream))
        yield from split(stream, decoding)


def _sample(stream: BinaryIO) -> bytes:
    """The first bytes of a stream, which stay in it."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(_SAMPLE)[:_SAMPLE]
    start = stream.tell()  # a caller's own stream in the place of standard input
    sample = stream.read(_SAMPLE)
    stream.seek(start)
    return sample


def _utf8_lines(stream: BinaryIO, decoding: _Decoding) -> Iterator[Line | LongLine]:
    start = 0  # of the line, in bytes of the file
    limit, keep_ends = decoding.options.max_bytes, decoding.keep_ends
    longest = limit + 2  # with the line end
    for number, raw in enumerate(iter(lambda: stream.readline(longest), b""), 1):
        if len(raw) > limit and len(raw.removesuffix(b"\n").removesuffix(b"\r")) > limit:
            long = _skip_line(stream, decoding, number, raw)
            start += long.bytes + 1
            yield long
            continue
        line = raw
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            line = raw.removeprefix(codecs.BOM_UTF8)
            start = len(codecs.BOM_UTF8)
            if not line:
                return
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            decoding.replaced(number, _place(line, error.start, start))
            text = line.decode(errors="replace")
        else:
            if b"\0" in line and _is_nul_heavy(line):
                place = _place(line, line.index(0), start)
                decoding.replaced(number, f"{place}; so many NUL bytes look like utf-16 or utf-32")
                text = text.replace("\0", "\ufffd")
        yield Line(number, text if keep_ends else text.removesuffix("\n").removesuffix("\r"))
        start += len(line)


def _skip_line(stream: BinaryIO, decoding: _Decoding, number: int, raw: bytes) -> LongLine:
    """Reads to the end of a line of which `raw` has been read, and keeps none of it."""
    size, quotes = len(raw), raw.count(b'"')
    while raw and not raw.endswith(b"\n"):
        raw = stream.readline(_SKIPPED)
        size += len(raw)
        quotes += raw.count(b'"')
        decoding.check_end(number, size)
    return LongLine(number, size - raw.endswith(b"\n"), quotes % 2 == 1)


def _place(line: bytes, position: int, start: int) -> str:
    byte = f"byte 0x{line[position]:02x}"
    return f"{byte} at offset {position} in the line, {start + position} in the file"


def _is_nul_heavy(line: bytes) -> bool:
    # Latin text in UTF-16 is valid UTF-8 of which every second character is NUL
    return line.count(0) * 4 >= len(line)


class _Pending:
    """The line that is being put together from pieces, of which a long one is only measured."""

    def __init__(self, decoding: _Decoding) -> None:
        self._decoding = decoding
        self._longest = decoding.options.max_bytes + 4  # with a mark and a carriage return
        self.number = 1
        self._start()

    def _start(self) -> None:
        self._texts: list[str] = []
        self._bytes = self._quotes = 0
        self.damaged = False

    def add(self, text: str) -> None:
        """Takes a piece of the line.

        Raises:
            InputError: The line has no end.
        """
        self._bytes += utf8_bytes(text)
        self._quotes += text.count('"')
        self._decoding.check_end(self.number, self._bytes)
        if self._bytes > self._longest:
            self._texts.clear()
        else:
            self._texts.append(text)

    def end(self, end: str) -> Line | LongLine | None:
        """The line, of which there is another one then; None for an empty last one."""
        text = "".join(self._texts)
        if self.number == 1:
            # utf-16-le and its kin leave the mark in the text, utf-16 takes it away
            text = text.removeprefix("\ufeff")
        line: Line | LongLine | None = None
        if text or end:
            kept = text + end if self._decoding.keep_ends else text.removesuffix("\r")
            line = Line(self.number, kept)
        size = self._bytes if self._bytes > self._longest else utf8_bytes(text.removesuffix("\r"))
        if size > self._decoding.options.max_bytes:
            line = LongLine(self.number, size, self._quotes % 2 == 1)
        self.number += 1
        self._start()
        return line


def _other_lines(stream: BinaryIO, decoding: _Decoding) -> Iterator[Line | LongLine]:
    pending = _Pending(decoding)
    for piece in _pieces(stream, decoding):
        if piece.error is not None and not pending.damaged:
            byte = piece.error.object[piece.error.start]
            place = f"byte 0x{byte:02x} at offset {piece.offset} in the file"
            decoding.replaced(pending.number, place)
            pending.damaged = True
        *ended, last = piece.text.split("\n")
        for text in ended:
            pending.add(text)
            line = pending.end("\n")
            if line is not None:
                yield line
        pending.add(last)
    line = pending.end("")
    if line is not None:
        yield line


def _pieces(stream: BinaryIO, decoding: _Decoding) -> Iterator[_Piece]:
    """Decoded text in pieces; a piece with an error is one U+FFFD for the bytes of the error.

    The bytes after an error are decoded from the decoder's state before it, as Python's own
    ``replace`` does, so that lines with replaced bytes differ from lines that contain U+FFFD.
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
                raise UndecodableText(
                    f"{decoding.name}: cannot be read as {decoding.codec} ({error}); {_WHAT_TO_DO}"
                ) from error
