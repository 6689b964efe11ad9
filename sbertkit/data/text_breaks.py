"""Where a text may be broken in two, and how good each place is.

A break lies at the end of the content before it: the white space that follows belongs to neither
side. Its rank depends on the lines around it alone, so an edit changes the ranks near it and no
others; only the fences of Markdown code are read from the beginning of the text.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int32]
Ranks = npt.NDArray[np.uint8]


class Rank(IntEnum):
    """How good a break is; the higher the better."""

    NONE = 0
    """Inside a character: no break."""
    CLUSTER = 1
    """Between a character and its combining marks, or in an emoji of several characters."""
    LEAD_IN = 2
    """After a heading or a line that ends with a colon, which introduces what follows."""
    TOKEN = 3
    WORD = 4
    CLAUSE = 5
    LINE = 6
    """End of a line of a log or a poem, not of wrapped prose."""
    SENTENCE = 7
    ITEM = 8
    """End of an item of a list, or of a line of a table or of code."""
    GAP = 9
    """Blank line in a list or in code."""
    PARAGRAPH = 10
    SUBHEADING = 11
    HEADING = 12


class Breaks(NamedTuple):
    """Breaks of a text; of several at one place, or between two tokens, the last one counts.

    Attributes:
        places: The character that each comes before, (n,).
        ranks: `Rank` of each, (n,).
    """

    places: Places
    ranks: Ranks


_CLOSING = r"[\"'”’»›)\]}」』】》〉）］｝*_`]*+"
_WORD = re.compile(r"[\s\u200b]+")
_CLAUSE = re.compile(rf"[,;:،؛]{_CLOSING}(?=\s)|[，、；：]{_CLOSING}")
_SENTENCE = re.compile(
    rf"""(?mx)
    (?:  # what is no end is found first
        ^[ \t]* \d{{1,3}}\. (?=\s)
        | \*\*[^*\n]{{1,80}}\*\*
        | \b(?:Mrs?|Ms|Dr|Prof|St|Fig|No|vs|cf)\.
    )
    | (?P<spaced> (?<![\s.!?…‽]) (?<!\b[^\W\d_]) [.!?…‽]++ {_CLOSING} ) (?=\s+(?P<next>\S)|\s*\Z)
    | (?P<full> [。！？｡．।॥؟۔։።፧។៕။།]+ {_CLOSING} )
    """
)
_END = r"\r\n\f\v\x85\u2028\u2029"
_LINE = re.compile(rf"(?<![^\S{_END}])([^\S{_END}]*+)(\S[^{_END}]*)")
_BLANK = re.compile(r"\n\s*\n|\r\s*\r|[\f\u2029]")
_KIND = re.compile(
    r"""(?x)
    (?P<heading> \#{1,6} (?=\s) )
    | (?P<open> `{3,} | ~{3,} )
    | (?P<rule> (?:-[ \t]*){3,}$ | (?:\*[ \t]*){3,}$ | (?:_[ \t]*){3,}$ )
    | (?P<item> [-*+•] (?=\s) | (?:\d{1,9}|[A-Za-z])[.)] (?=\s) )
    | (?P<ruler> \|[|:\- \t]*$ )
    | (?P<row> [|>] )
    """
)
_UNDERLINE = re.compile(r"(={2,}|-{2,}|~{3,}|\^{3,})$")
_LEVEL = {"=": 1, "-": 2, "~": 3, "^": 3}
_DEEPEST = 7
_LAID_OUT = ("item", "row", "code")
_HEAD_CHARS = 256
"""What is read of a line to know its kind."""


class _Line(NamedTuple):
    """A line with content.

    Attributes:
        start: Its first character that is no white space.
        end: What follows its last.
        kind: Of `_KIND`, or ``text``, ``heading``, ``code`` and ``close`` of a fence.
        level: Of a heading, 1 for the highest.
        indented: By two columns or more.
        lead_in: Whether it introduces what follows.
    """

    start: int
    end: int
    kind: str
    level: int
    indented: bool
    lead_in: bool


def text_breaks(text: str) -> Breaks:
    """The breaks of a text: words, clauses, lines, sentences, then what lines decide."""
    sentences = _places(sentence_ends(text))
    lines, ranks = _structure(text)
    decided = ranks > Rank.NONE
    found = [
        (_places(match.start() for match in _WORD.finditer(text)), Rank.WORD),
        (_places(match.end() for match in _CLAUSE.finditer(text)), Rank.CLAUSE),
        (lines[~decided & ~_in_prose(text, lines, sentences)], Rank.LINE),
        (sentences, Rank.SENTENCE),
    ]
    return Breaks(
        np.concatenate([*(places for places, _ in found), lines[decided]]),
        np.concatenate(
            [*(np.full(len(places), rank, np.uint8) for places, rank in found), ranks[decided]]
        ),
    )


def _places(found: Iterator[int]) -> Places:
    return np.fromiter(found, np.int32)


def sentence_ends(text: str) -> Iterator[int]:
    """The place after each sentence, in order."""
    for match in _SENTENCE.finditer(text):
        following = match["next"]
        if match["full"] or (match["spaced"] and not (following and following.islower())):
            yield match.end()


def _structure(text: str) -> tuple[Places, Ranks]:
    """The end of each line with content but the last, and the rank that the lines decide."""
    ends: list[int] = []
    ranks: list[int] = []
    before = None
    for line in _lines(text):
        if before is not None:
            blank = _BLANK.search(text, before.end, line.start) is not None
            ends.append(before.end)
            ranks.append(_rank(before, line, blank=blank))
        before = line
    return np.array(ends, np.int32), np.array(ranks, np.uint8)


def _in_prose(text: str, lines: Places, sentences: Places) -> npt.NDArray[np.bool_]:
    """Whether a sentence ends within two lines of the end of a line."""
    near = np.concatenate([[0, 0], lines, [len(text)] * 2]).astype(np.int32)
    after = np.searchsorted(sentences, near[:-4], "right")
    return np.searchsorted(sentences, near[4:]) > after


def _lines(text: str) -> Iterator[_Line]:
    """The lines with content, in order; one that is underlined is a heading, and so is the rule."""
    before = None
    for line in _read(text):
        if before is not None:
            under = line.kind == "underline"
            yield before._replace(kind="heading", level=line.level) if under else before
        before = line._replace(kind="heading", level=_DEEPEST) if line.kind == "underline" else line
    if before is not None:
        yield before


def _read(text: str) -> Iterator[_Line]:
    """The lines with content, each by itself but for fenced code and underlines."""
    fence, end, kind = "", 0, ""
    for match in _LINE.finditer(text):
        content = match[2].rstrip()
        head = content[:_HEAD_CHARS]
        start, level = match.start(2), 0
        below_text = kind == "text" and _BLANK.search(text, end, start) is None
        if fence:
            kind = "code"
            if content.startswith(fence) and not content.strip(fence[0]):
                kind, fence = "close", ""
        elif below_text and _UNDERLINE.match(head):
            kind, level = "underline", _LEVEL[head[0]]
        else:
            found = _KIND.match(head)
            kind, mark = (found.lastgroup or "", found[0]) if found else ("text", "")
            level = len(mark)
            fence = mark if kind == "open" else ""
        end = start + len(content)
        indented = len(match[1].expandtabs(4)) >= 2
        yield _Line(start, end, kind, level, indented, content.endswith((":", "：")))


def _rank(before: _Line, line: _Line, *, blank: bool) -> Rank:
    """The rank of the break between two lines; `Rank.NONE` where they do not decide."""
    heading = line.kind == "heading"
    if before.kind == "heading":
        if not heading or line.level > before.level:
            return Rank.LEAD_IN
        if not blank:
            return Rank.LINE
    if heading:
        return Rank.HEADING if line.level <= 2 else Rank.SUBHEADING
    if before.lead_in or before.kind in ("open", "ruler") or line.kind in ("close", "ruler"):
        return Rank.LEAD_IN
    if line.kind in ("open", "rule") or before.kind in ("close", "rule"):
        return Rank.PARAGRAPH
    if not blank:
        return Rank.ITEM if line.kind in _LAID_OUT else Rank.NONE
    items = [one.kind in _LAID_OUT or one.indented for one in (before, line)]
    return Rank.GAP if all(items) else Rank.PARAGRAPH
