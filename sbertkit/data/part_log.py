"""What a long job has done, part by part, kept so that another process can go on after a kill."""

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sbertkit.errors import InputError

Row = tuple[str, str]
"""Id and text."""

_ANEW = "to begin anew, run it without resume (--resume)"


class Part(NamedTuple):
    """A part that is done.

    Attributes:
        rows: How many rows it has.
        digest: SHA-256 over the rows of this and all earlier parts.
        note: What the job wants to know again.
    """

    rows: int
    digest: str
    note: Mapping[str, Any]


class PartLog:
    """A line of JSON for each part that is on the disk, after one that says what the job is.

    Args:
        path: The file; what is in it is gone on with, if it is of the same job.
        job: What decides the job's output besides its rows; JSON values.

    Raises:
        InputError: The file is of another job.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self._hash = hashlib.sha256()
        self._place = path.parent
        self._waiting: deque[Row] = deque()
        self.parts: list[Part] = []
        content = path.read_bytes() if path.exists() else b""
        whole = 0
        for line in content.splitlines(keepends=True):
            entry = _entry(line)
            if entry is None:
                break
            if whole == 0:
                self._check_job(entry, job)
            else:
                self.parts.append(Part(**entry))
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
        """Rows of all parts."""
        return sum(part.rows for part in self.parts)

    def texts(self, rows: Iterator[Row]) -> Iterator[str]:
        """The texts that are still to be done; the rows before must be the ones that were.

        Raises:
            InputError: They are others.
        """
        start = 0
        for part in self.parts:
            for _ in range(part.rows):
                row = next(rows, None)
                if row is not None:
                    self._add_to_hash(row)
            if self._hash.hexdigest() != part.digest:
                raise InputError(
                    f"rows {start + 1} to {start + part.rows} are not those that were encoded "
                    f"before: the corpus has changed; {_ANEW}"
                )
            start += part.rows
        for row in rows:
            self._waiting.append(row)
            yield row[1]

    def drawn(self, count: int) -> list[Row]:
        """The next rows whose texts have been drawn, each told once."""
        return [self._waiting.popleft() for _ in range(count)]

    def add(self, rows: Sequence[Row], note: Mapping[str, Any]) -> None:
        """Says that a part is done, whose output is on the disk."""
        for row in rows:
            self._add_to_hash(row)
        part = Part(len(rows), self._hash.hexdigest(), note)
        self._write(part._asdict())
        self.parts.append(part)

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # every line has been written out
            self._file.close()

    def _add_to_hash(self, row: Row) -> None:
        for field in row:
            content = field.encode("utf-8", "surrogatepass")
            self._hash.update(len(content).to_bytes(8, "big") + content)

    def _check_job(self, begun: Mapping[str, Any], job: Mapping[str, Any]) -> None:
        for name, value in job.items():
            if begun.get(name) != value:
                raise InputError(
                    f"the run that was left in {self._place} has {name} {begun.get(name)!r}, this "
                    f"one {value!r}; {_ANEW}"
                )

    def _write(self, entry: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode("ascii") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _entry(line: bytes) -> dict[str, Any] | None:
    """The content of a line; ``None`` for one that was not written to its end."""
    try:
        entry = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
