"""The words of queries in the texts of hits."""

from collections.abc import Iterable, Sequence

from sbertkit.lexical.analyzer import Analyzer
from sbertkit.lexical.languages import NONE
from sbertkit.lexical.matcher import Matcher
from sbertkit.lexical.query import LexicalQuery, parse_query
from sbertkit.retrieval.manifest_entries import LexicalEntry
from sbertkit.retrieval.results import Hit


def matcher_of(lexical: LexicalEntry | None, query: str) -> Matcher:
    """Finds the words of a query as an index makes them; without a lexical index, none."""
    if lexical is None:
        return Matcher(LexicalQuery("", {}), Analyzer(NONE))
    analyzer = Analyzer(lexical.language)
    return Matcher(parse_query(query, analyzer), analyzer)


def note_matched(
    found: Iterable[Sequence[Hit]], queries: Iterable[object], lexical: LexicalEntry | None
) -> None:
    """Notes in each hit the words of its query that its text has; a vector has none."""
    for hits, query in zip(found, queries, strict=True):
        if isinstance(query, str):
            matcher = matcher_of(lexical, query)
            for hit in hits:
                hit.matched = matcher.words(hit.text)
