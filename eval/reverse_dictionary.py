"""A reverse dictionary: Webster's definitions as queries, WordNet's glosses as documents.

The queries are first senses of GCIDE (Debian's dict-gcide) that Webster's of 1913 gave, of words
that have one sense there and one synset in WordNet (Debian's wordnet-base), and that do not name
the word itself. The synset of the word is relevant.
"""

import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PARTS = {"n.": "noun", "a.": "adj", "v. t.": "verb", "v. i.": "verb", "adv.": "adv"}
"""Parts of speech of GCIDE, and WordNet's files."""
QUERIES = 1_000
DOCUMENTS = 20_000
MIN_WORDS = 4

_ENTRY = re.compile(r"(?m)^(\S[^\\\n]*?) \\[^\\]+\\, (n\.|a\.|v\. t\.|v\. i\.|adv\.)(.*)$")
_FIRST_SENSE = re.compile(r"(?s)\A(.*?)^ +\[(.+?)\]", re.MULTILINE)
_REMARK = re.compile(r'(?s)\[.*?\]|\([A-Z][^)]*\)|".*?"|--.*|\b(?:See|Called also) .*')
_WEBSTER = "1913 Webster"


class Synset(NamedTuple):
    """A synset: its id, its gloss without examples, and its words."""

    id: str
    gloss: str
    words: tuple[str, ...]


def synsets(wordnet: Path) -> Iterator[Synset]:
    """All synsets, from the folder of WordNet's data files."""
    for part in sorted(set(PARTS.values())):
        for line in (wordnet / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue  # of the license
            fields, gloss = line.split("|", 1)
            number, _, _, count, *rest = fields.split()
            named = rest[: 2 * int(count, 16) : 2]
            words = (word.split("(")[0].replace("_", " ") for word in named)
            definition = gloss.split('; "')[0].strip()
            yield Synset(f"{part}-{number}", " ".join(definition.split()), tuple(words))


def definitions(gcide: Path) -> Iterator[tuple[str, str, str]]:
    """Word, part of speech and definition of the words of GCIDE that have one entry and sense."""
    text = gzip.decompress(gcide.read_bytes()).decode("utf-8", "replace")
    places = list(_ENTRY.finditer(text))
    entries: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for here, there in zip(places, [*places[1:], None], strict=True):
        end = len(text) if there is None else there.start()
        body = text[here.end() : end].removeprefix("\n")
        entries[here[1].lower()].append((PARTS[here[2]], f"{here[3]}\n{body}"))
    for word, found in entries.items():
        if len(found) == 1 and (definition := _definition(found[0][1])):
            yield word, found[0][0], definition


def _definition(body: str) -> str:
    """The only sense of an entry that Webster's gives; empty if there is no such thing."""
    head, _, rest = body.partition("\n")
    while head.count("[") > head.count("]") and rest:  # the origin of the word has several lines
        line, _, rest = rest.partition("\n")
        head += line
    found = _FIRST_SENSE.match(rest)
    if found is None or found[2] != _WEBSTER or re.search(r"(?m)^ +\d+\. |^\S", rest):
        return ""
    text = _REMARK.sub(" ", found[1]).translate(str.maketrans("", "", "{}"))
    return " ".join(text.split()).strip(" ;:,")


def write(folder: Path, wordnet: Path, gcide: Path, *, queries: int, documents: int) -> None:
    """Writes the collection in BEIR's form."""
    every = list(synsets(wordnet))
    by_word: dict[str, list[Synset]] = defaultdict(list)
    for one in every:
        for word in {word.lower() for word in one.words}:
            by_word[word].append(one)
    pairs = [
        (definition, by_word[word][0])
        for word, part, definition in definitions(gcide)
        if len(by_word[word]) == 1
        and by_word[word][0].id.startswith(part)
        and len(definition.split()) >= MIN_WORDS
        and word[: max(4, len(word) - 3)] not in definition.lower()
        and definition != by_word[word][0].gloss
    ]
    chosen = random.Random(0).sample(sorted(dict(pairs).items()), queries)
    relevant = {one.id: one for _, one in chosen}
    others = [one for one in every if one.id not in relevant]
    corpus = [*relevant.values(), *random.Random(0).sample(others, documents - len(relevant))]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "corpus.jsonl", ({"_id": one.id, "text": one.gloss} for one in corpus))
    numbered = [{"_id": f"q{number}", "text": text} for number, (text, _) in enumerate(chosen)]
    _write_lines(folder / "queries.jsonl", iter(numbered))
    judged = (f"q{number}\t{one.id}\t1\n" for number, (_, one) in enumerate(chosen))
    qrels = "".join(["query-id\tcorpus-id\tscore\n", *judged])
    (folder / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")


def _write_lines(path: Path, rows: Iterator[dict[str, str]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
