"""Releases of SemEval's STS tasks: files of sentences, and files of their scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sbertkit.data.bad_rows import BadRow
from sbertkit.data.lines import Line, read_lines
from sbertkit.data.streams import source_name
from sbertkit.data.tables import Row
from sbertkit.data.text import is_blank
from sbertkit.errors import InputError


class SubCorpus(NamedTuple):
    """A file of a SemEval release: the sub-corpus's name, the file, and its judged rows."""

    name: str
    file: str
    rows: list[Row | BadRow]


def is_semeval(folder: str) -> bool:
    """Whether a folder is a SemEval release."""
    return any(Path(folder).glob("STS.input.*.txt"))


def read_semeval(folder: str) -> Iterator[SubCorpus]:
    """The sub-corpora of a SemEval release.

    Of each ``STS.input.NAME.txt`` (sentence, tab, sentence) with ``STS.gs.NAME.txt`` (a score a
    line); pairs whose score is blank were not judged and are skipped.

    Raises:
        InputError: A file without its other, or of another length.
    """
    for inputs in sorted(Path(folder).glob("STS.input.*.txt")):
        name = inputs.name.removeprefix("STS.input.").removesuffix(".txt")
        scores = inputs.with_name(f"STS.gs.{name}.txt")
        if not scores.is_file():
            raise InputError(f"{source_name(str(scores))}: the scores of {inputs.name} are missing")
        pairs, gold = list(read_lines(inputs)), list(read_lines(scores))
        if len(pairs) != len(gold):
            raise InputError(
                f"{source_name(str(scores))}: expected a score for each of the {len(pairs):,} "
                f"lines of {inputs.name}, found {len(gold):,} lines"
            )
        rows = [
            _row(pair, score)
            for pair, score in zip(pairs, gold, strict=True)
            if not is_blank(score.text)
        ]
        yield SubCorpus(name, str(inputs), rows)


def _row(pair: Line, score: Line) -> Row | BadRow:
    cells = pair.text.split("\t")
    if len(cells) < 2:
        return BadRow(pair.number, f"{len(cells)} column, expected 2")
    return Row(pair.number, {"score": score.text, "first": cells[0], "second": cells[1]})
