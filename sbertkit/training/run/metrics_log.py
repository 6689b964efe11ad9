"""The metrics log of a run: one JSON object per line, with ``step`` in each."""

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.schema import Count, as_record, parse_json
from sbertkit.storage import replace_file, storage_errors

LOG_FILE = "log.jsonl"
"""The metrics log in the folder of a trained model."""


@dataclass(frozen=True, slots=True)
class _Row:
    step: Count


class RunLog:
    """The metrics log of a run in progress.

    Args:
        path: The file, None for none; earlier rows after `step` are dropped.
        step: The step at which the run begins, or is resumed.
    """

    def __init__(self, path: Path | None, step: int) -> None:
        self._path = path
        self.rows: list[dict[str, Any]] = []
        if path is None:
            return
        self.rows = [row for row in surviving_rows(path) if row["step"] <= step]
        with storage_errors(path):
            replace_file(path, "".join(map(_line, self.rows)).encode())

    def note(self) -> str:
        """The last loss and learning rate, for the progress; empty before the first."""
        for row in reversed(self.rows):
            if "loss" in row and row["loss"] is not None:
                rate = row.get("learning_rate")
                return f"loss {row['loss']:.3f}" + ("" if rate is None else f", lr {rate:.1e}")
        return ""

    def add(self, row: dict[str, Any]) -> None:
        """Appends a row; JSON has no NaN and no infinity, so that such values become null."""
        clean = {key: value if _is_json(value) else None for key, value in row.items()}
        self.rows.append(clean)
        if self._path is not None:
            with storage_errors(self._path), self._path.open("a", encoding="utf-8") as file:
                file.write(_line(clean))


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of the log of a finished run.

    Raises:
        InputError: No regular file, or a line that is no row.
        OSError: It cannot be read.
    """
    return [_row(line, path) for line in _lines(path)]


def surviving_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of the log of an unfinished run, without lines that a crash truncated.

    Raises:
        InputError: No regular file.
        StorageError: It cannot be read.
    """
    with storage_errors(path):
        lines = _lines(path) if path.exists() else []
    for line in lines:
        with suppress(InputError):
            yield _row(line, path)


def _lines(path: Path) -> list[str]:
    return read_regular(path).decode(errors="replace").removesuffix("\n").split("\n")


def _row(line: str, path: Path) -> dict[str, Any]:
    row: dict[str, Any] = parse_json(line, path)
    as_record(row, _Row, path)
    as_record(row, dict[str, float | None], path)
    return row


def _is_json(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False) + "\n"
