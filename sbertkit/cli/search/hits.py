"""What a search prints: a table for people, JSON Lines and trec_eval's runs for programs."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sbertkit.arguments import did_you_mean
from sbertkit.cli.output import (
    Marked,
    print_json,
    print_line,
    print_table,
    shortened,
    table_width,
)
from sbertkit.errors import InputError
from sbertkit.terminal import visible_text

if TYPE_CHECKING:
    from sbertkit.cli.search.queries import Query
    from sbertkit.lexical.matcher import Matcher
    from sbertkit.retrieval import Hit

Found = Sequence["Hit"]

_RUN_NAME = "sbertkit"
_SNIPPET = 300
"""Characters of a text in a table."""
_CUT = "..."
_TEXT_WIDTH = 40
_FIELD_WIDTH = 24
"""Columns of the terminal that the text has at least, and a field at most."""


class Shown(NamedTuple):
    """What is shown of a hit beside rank, score, id and text.

    Attributes:
        fields: Names of metadata; ``None`` shows in a table those that fit, else all.
        width: Of a table, in characters; ``None`` for the terminal's.
        first: Rank of the first hit.
        matcher: Gives of a query what finds its words, which are marked in a table; `None` marks
            nothing.
    """

    fields: tuple[str, ...] | None = None
    width: int | None = None
    first: int = 1
    matcher: "Callable[[str], Matcher] | None" = None


def print_tables(queries: Sequence["Query"], hits: Sequence[Found], shown: Shown) -> None:
    """Prints a table per query, with a snippet of each text; explained hits have their words, too.

    Raises:
        InputError: No hit has a field that is to be shown.
    """
    _check_fields(hits, shown)
    for query, found in zip(queries, hits, strict=True):
        fields = _fitting_fields(found, shown) if shown.fields is None else shown.fields
        stages = _stages(found)
        explained = any(hit.stages for hit in found)
        matcher = None if shown.matcher is None else shown.matcher(query.text)
        rows = (
            (
                rank,
                f"{hit.score:.4f}",
                *(_stage_cell(hit, stage) for stage in stages),
                hit.id,
                *(_cell(hit.metadata.get(field)) for field in fields),
                *([shortened(", ".join(hit.matched))] if explained else ()),
                snippet(hit.passage.text, matcher),
            )
            for rank, hit in enumerate(found, shown.first)
        )
        words = ("matched",) if explained else ()
        columns = ("rank>", "score>", *(f"{one}>" for one in stages), "id", *fields, *words, "text")
        print_table(columns, rows, title=query.text, width=shown.width)


def print_jsonl(queries: Sequence["Query"], hits: Sequence[Found], shown: Shown) -> None:
    """Prints an object per hit; of a divided document it has the passage, with its start and end.

    An explained hit has the score and rank of each stage, and the words of the query in its text.

    Raises:
        InputError: No hit has a field that is to be shown.
    """
    _check_fields(hits, shown)
    for query, found in zip(queries, hits, strict=True):
        for rank, hit in enumerate(found, shown.first):
            fields = hit._asdict()
            if hit.passage.text != hit.text:
                fields |= hit.passage._asdict()
            if shown.fields is not None:
                fields["metadata"] = {
                    name: hit.metadata[name] for name in shown.fields if name in hit.metadata
                }
            if hit.stages:
                fields["stages"] = {name: one._asdict() for name, one in hit.stages.items()}
                fields["matched"] = hit.matched
            print_json({"query": query.text, "query_id": query.id, "rank": rank, **fields})


def print_trec(queries: Sequence["Query"], hits: Sequence[Found], shown: Shown) -> None:
    """Prints a run as trec_eval reads it: query, ``Q0``, document, rank, score, name.

    Raises:
        InputError: An id has white space.
    """
    ids = [*(str(query.id) for query in queries), *(hit.id for found in hits for hit in found)]
    for one in ids:
        if one.split() != [one] or visible_text(one) != one:
            raise InputError(
                f"id {one!r} holds white space or control codes, which the trec format cannot; "
                "use --format jsonl"
            )
    for query, found in zip(queries, hits, strict=True):
        for rank, hit in enumerate(found, shown.first):
            print_line(f"{query.id} Q0 {hit.id} {rank} {hit.score:.8f} {_RUN_NAME}")


PRINTERS = {"table": print_tables, "jsonl": print_jsonl, "trec": print_trec}


def snippet(text: str, matcher: "Matcher | None") -> Marked:
    """A text, or of a long one what is around the words of a query, with these words marked."""
    from sbertkit.lexical.snippet import best_window

    matches = [] if matcher is None else matcher.find(text)
    size = _SNIPPET if len(text) <= _SNIPPET else _SNIPPET - 2 * len(_CUT)
    start, end = best_window(text, matches, size)
    before, after = (_CUT if start else ""), (_CUT if end < len(text) else "")
    moved = len(before) - start
    spans = [
        (max(start, match.start) + moved, min(end, match.end) + moved)
        for match in matches
        if match.start < end and start < match.end
    ]
    return Marked(f"{before}{text[start:end]}{after}", spans)


def _stages(found: Found) -> tuple[str, ...]:
    """The stages that explained hits went through; none where there was one."""
    names = tuple(dict.fromkeys(name for hit in found for name in hit.stages))
    return names if len(names) > 1 else ()


def _stage_cell(hit: "Hit", name: str) -> str:
    stage = hit.stages.get(name)
    return "" if stage is None else f"{stage.score:.4f} ({stage.rank})"


def _cell(value: object) -> str:
    return "" if value is None else shortened(str(value))


def _check_fields(hits: Sequence[Found], shown: Shown) -> None:
    known = {name for found in hits for hit in found for name in hit.metadata}
    for name in shown.fields or ():
        if known and name not in known:
            there = visible_text(", ".join(sorted(known)))
            raise InputError(
                f"no hit has a field {name!r}{did_you_mean(name, known)}; found {there:.200}"
            )


def _fitting_fields(found: Found, shown: Shown) -> tuple[str, ...]:
    """The fields that fit beside the text, in the order of the first hits; none without a width.

    A field whose value begins the text, such as a title, is left out.
    """
    width = table_width(shown.width)
    if width is None:
        return ()
    left = width - _TEXT_WIDTH - 24 - max((len(hit.id) for hit in found), default=0)
    fitting = []
    for name in dict.fromkeys(name for hit in islice(found, 10) for name in hit.metadata):
        values = [str(hit.metadata.get(name, "")) for hit in found]
        begins = all(
            hit.passage.text.startswith(str(hit.metadata.get(name, "\0"))) for hit in found
        )
        need = 3 + max(map(len, (name, *values)))
        if need - 3 <= _FIELD_WIDTH and need <= left and not begins and any(values):
            fitting.append(name)
            left -= need
    return tuple(fitting)
