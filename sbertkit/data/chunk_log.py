"""Log of the finished chunks of a long job, from which a killed job is resumed."""

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.schema import Count, Digest, as_record, parse_json

IdAndText = tuple[str, str]
"""Id and text."""

_RESTART = "to start again, run it without resume (--resume)"


_MAX_LOG_BYTES = 2**30
"""Bytes; a chunk of some thousand rows takes a few hundred, more where many are reported."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that is done.

    Attributes:
        rows: How many rows it has.
        digest: SHA-256 over the rows of this and all earlier chunks.
        output: SHA-256 of what was written for it.
        note: What the job needs when it is resumed.
    """

    rows: Count
    digest: Digest
    output: Digest
    note: dict[str, Any]


class ChunkLog:
    """A JSON line for each chunk on the disk, after one that describes the job.

    Args:
        path: The file; its chunks are resumed, if they are of the same job.
        job: What decides the job's output besides its rows; JSON values.

    Raises:
        InputError: The file is of another job.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self._hash = hashlib.sha256()
        self._folder = path.parent
        self._waiting: deque[IdAndText] = deque()
        self.chunks: list[Chunk] = []
        content = read_regular(path, limit=_MAX_LOG_BYTES) if path.exists() else b""
        whole = 0
        for line in content.splitlines(keepends=True):
            try:
                if whole == 0:
                    self._check_job(_entry(line), job)
                else:
                    self.chunks.append(as_record(_entry(line), Chunk, path))
            except _TornLine:
                break
            whole += len(line)
        self._file = path.open("ab")
        try:
            self._file.truncate(whole)
            if whole == 0:
                self._write(dict(job))
        except BaseException:
            self.close()
            raise

    @property
    def rows(self) -> int:
        """Rows of all chunks."""
        return sum(chunk.rows for chunk in self.chunks)

    def texts(self, rows: Iterator[IdAndText]) -> Iterator[str]:
        """The texts that are still to be done; the rows before must be the ones that were.

        Raises:
            InputError: They are others.
        """
        start = 0
        for chunk in self.chunks:
            for _ in range(chunk.rows):
                row = next(rows, None)
                if row is not None:
                    self._add_to_hash(row)
            if self._hash.hexdigest() != chunk.digest:
                raise InputError(
                    f"rows {start + 1} to {start + chunk.rows} are not those that were encoded "
                    f"before: the corpus has changed; {_RESTART}"
                )
            start += chunk.rows
        for row in rows:
            self._waiting.append(row)
            yield row[1]

    def drawn(self, count: int) -> list[IdAndText]:
        """The next rows whose texts have been drawn, each returned once."""
        return [self._waiting.popleft() for _ in range(count)]

    def add(self, rows: Sequence[IdAndText], output: str, note: Mapping[str, Any]) -> None:
        """Logs a chunk that is done.

        Args:
            rows: Its rows.
            output: SHA-256 of what was written for it, which is on the disk.
            note: See `Chunk`.
        """
        for row in rows:
            self._add_to_hash(row)
        chunk = Chunk(len(rows), self._hash.hexdigest(), output, dict(note))
        self._write(asdict(chunk))
        self.chunks.append(chunk)

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # every line has been written out
            self._file.close()

    def _add_to_hash(self, row: IdAndText) -> None:
        for field in row:
            content = field.encode("utf-8", "surrogatepass")
            self._hash.update(len(content).to_bytes(8, "big") + content)

    def _check_job(self, begun: Mapping[str, Any], job: Mapping[str, Any]) -> None:
        for name, value in job.items():
            if begun.get(name) != value:
                raise InputError(
                    f"the unfinished run in {self._folder} has {name} {begun.get(name)!r}, this "
                    f"one {value!r}; {_RESTART}"
                )

    def _write(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode("ascii") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def check_output(chunk: Chunk, found: str, where: object) -> None:
    """Refuses what was written for a chunk and has changed since.

    Args:
        chunk: The chunk.
        found: SHA-256 of the present content.
        where: What was written, for the message.

    Raises:
        InputError: It is not what was written.
    """
    if found != chunk.output:
        raise InputError(
            f"{where} has changed since it was written: expected SHA-256 {chunk.output}, found "
            f"{found}; {_RESTART}"
        )


class _TornLine(Exception):
    """A line that was not written to its end."""


def _entry(line: bytes) -> dict[str, Any]:
    """The content of a line.

    Raises:
        _TornLine: It is truncated, or no JSON object.
    """
    try:
        entry = parse_json(line, "a line") if line.endswith(b"\n") else None
    except InputError:
        entry = None
    if not isinstance(entry, dict):
        raise _TornLine
    return entry
