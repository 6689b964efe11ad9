"""Makes the demo corpus of tagged WordNet synsets from WordNet 3.0's database files.

::

    python -m sbertkit.data.wordnet.make DICT_FOLDER CNTLIST_REV -o glosses.jsonl.gz

A synset is taken when the sense key of at least one of its words has a count above 0 in
``cntlist.rev``. A sense key is spelled as WordNet spells it: the head word of an adjective
satellite keeps its syntactic marker, as in ``above%5:00:00:preceding(a):00``; a word's own marker
is dropped. WordNet 3.0 then gives 27,254 synsets. (Without the marker of the head words 64 of
them would be lost.) Synsets come in the order of the files: nouns, verbs, adjectives, adverbs.

Formats: the manual pages wndb(5WN), senseidx(5WN) and cntlist(5WN).
"""

import argparse
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sbertkit.errors import InputError, MissingFile, SbertkitError, StorageError

PARTS = ("noun", "verb", "adj", "adv")

_TYPE_NUMBERS = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
_EXAMPLES = re.compile(r'[;:,]?\s*"')


class Word(NamedTuple):
    """A word of a synset as the data file spells it, and its number in the lexicographer file."""

    spelling: str
    lex_id: int

    @property
    def lemma(self) -> str:
        """The word without its syntactic marker."""
        return _MARKER.sub("", self.spelling)


class Synset(NamedTuple):
    """One line of a data file; ``head`` is the offset of a satellite's head synset, else None."""

    offset: str
    lex_file: str
    type: str
    words: tuple[Word, ...]
    head: str | None
    gloss: str


def make_records(
    folder: Path, counts: Path, *, examples: bool = True
) -> Iterator[dict[str, object]]:
    """The records of the corpus: ``id``, ``text`` and ``lemmas`` of each tagged synset.

    Args:
        folder: Holds ``data.noun``, ``index.noun`` and so on.
        counts: The file ``cntlist.rev``.
        examples: Whether the text is the whole gloss, or ends before the first quoted example.

    Raises:
        MissingFile: A file is not there.
        InputError: A line is not in WordNet's format, or a synset is not in its index file.
    """
    tagged = _read_tagged(counts)
    for part in PARTS:
        synsets = {synset.offset: synset for synset in _read_data(folder / f"data.{part}")}
        senses = _read_index(folder / f"index.{part}")
        for synset in synsets.values():
            if not any(key in tagged for key in _sense_keys(synset, synsets)):
                continue
            text = synset.gloss if examples else _definition(synset.gloss)
            lemmas = [word.lemma.replace("_", " ") for word in synset.words]
            yield {"id": _name(synset, senses), "text": text, "lemmas": lemmas}


def write_records(records: Iterable[Mapping[str, object]], output: Path) -> int:
    """The number of records written to a gzip file, whose bytes depend on the records alone.

    (Another version of zlib may compress to other bytes; the content is the same.)
    """
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as file:
        file.write("".join(lines).encode())
    try:
        output.write_bytes(packed.getvalue())
    except OSError as error:
        raise StorageError(f"cannot write {output}: {error.strerror}") from error
    return len(lines)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    # The license is at the head of each file, in lines that begin with two blanks.
    if not path.is_file():
        raise MissingFile(f"expected WordNet's file {path.name}, found none at {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, found other bytes ({error})") from error
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("  "):
            yield number, line


def _read_tagged(path: Path) -> frozenset[str]:
    tagged = set()
    for number, line in _read_lines(path):
        fields = line.split()
        if len(fields) != 3 or not fields[2].isdecimal():
            raise InputError(f"{path}, line {number}: expected a sense key, a number and a count")
        if int(fields[2]) > 0:
            tagged.add(fields[0])
    return frozenset(tagged)


def _read_data(path: Path) -> Iterator[Synset]:
    for number, line in _read_lines(path):
        try:
            yield _parse_synset(line)
        except (ValueError, LookupError) as error:
            raise InputError(f"{path}, line {number}: not a synset of WordNet ({error})") from error


def _parse_synset(line: str) -> Synset:
    columns, gloss = line.split("|", 1)
    offset, lex_file, kind, count, *fields = columns.split()
    if kind not in _TYPE_NUMBERS:
        raise ValueError(f"the type {kind!r} is none of n, v, a, s, r")
    end = 2 * int(count, 16)
    words = tuple(Word(fields[i], int(fields[i + 1], 16)) for i in range(0, end, 2))
    head = None
    if kind == "s":
        pointers = range(end + 1, end + 1 + 4 * int(fields[end]), 4)
        heads = [fields[i + 1] for i in pointers if fields[i] == "&"]
        head = heads[0]
    return Synset(offset, lex_file, kind, words, head, gloss.strip())


def _read_index(path: Path) -> dict[str, list[str]]:
    senses = {}
    for number, line in _read_lines(path):
        fields = line.split()
        try:
            synset_count = int(fields[2])
        except (ValueError, IndexError) as error:
            raise InputError(f"{path}, line {number}: not an entry of WordNet") from error
        senses[fields[0]] = fields[-synset_count:]
    return senses


def _sense_keys(synset: Synset, synsets: Mapping[str, Synset]) -> Iterator[str]:
    tail = ":"
    if synset.head is not None:
        if synset.head not in synsets:
            raise InputError(
                f"expected the head synset {synset.head} of {synset.offset}, found none"
            )
        head = synsets[synset.head].words[0]
        tail = f"{head.spelling.lower()}:{head.lex_id:02d}"
    number = _TYPE_NUMBERS[synset.type]
    for word in synset.words:
        yield f"{word.lemma.lower()}%{number}:{synset.lex_file}:{word.lex_id:02d}:{tail}"


def _name(synset: Synset, senses: Mapping[str, Sequence[str]]) -> str:
    # NLTK's name: the first lemma, and which sense of that lemma the synset is.
    lemma = synset.words[0].lemma.lower()
    offsets = senses.get(lemma, ())
    if synset.offset not in offsets:
        raise InputError(
            f"expected synset {synset.offset} among the senses of {lemma!r}, found it not; "
            "take the index and data files from one WordNet"
        )
    return f"{lemma}.{synset.type}.{offsets.index(synset.offset) + 1:02d}"


def _definition(gloss: str) -> str:
    for match in _EXAMPLES.finditer(gloss):
        before = gloss[: match.start()]
        if before.count("(") == before.count(")"):  # else the quotation is part of the definition
            return before.rstrip("; ") or gloss
    return gloss.rstrip("; ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the script; a refused input exits with status 1 and one line on standard error."""
    parser = argparse.ArgumentParser(prog="python -m sbertkit.data.wordnet.make")
    parser.add_argument("folder", metavar="DICT_FOLDER", type=Path, help="folder of data.noun etc.")
    parser.add_argument("counts", metavar="CNTLIST_REV", type=Path, help="the file cntlist.rev")
    parser.add_argument("-o", "--output", metavar="OUT", type=Path, required=True)
    parser.add_argument("--no-examples", action="store_true", help="leave quoted examples out")
    options = parser.parse_args(arguments)
    try:
        whole = not options.no_examples
        write_records(make_records(options.folder, options.counts, examples=whole), options.output)
    except SbertkitError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
