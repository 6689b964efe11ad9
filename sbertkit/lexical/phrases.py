"""Phrases: documents in which terms are at places next to each other."""

import numpy as np

from sbertkit.lexical.postings_file import PostingsFile, Rows
from sbertkit.lexical.query import Phrase


def documents_having(file: PostingsFile, phrase: Phrase) -> Rows:
    """The documents that have a phrase, ascending."""
    found = {token.term: file.postings(token.term) for token in phrase}
    if any(postings is None for postings in found.values()):
        return np.empty(0, np.int64)
    known = {term: postings for term, postings in found.items() if postings is not None}
    rarest = sorted(known.values(), key=lambda postings: len(postings.rows))
    documents = rarest[0].rows
    for postings in rarest[1:]:
        documents = documents[np.isin(documents, postings.rows, assume_unique=True)]
    documents = documents.astype(np.int64)
    if len(phrase) == 1 or not len(documents):
        return documents
    begins: Rows | None = None
    for term, offset in sorted(
        {(token.term, token.offset) for token in phrase},
        key=lambda one: len(known[one[0]].rows),
    ):
        postings = known[term]
        chosen = np.searchsorted(postings.rows, documents.astype(postings.rows.dtype))
        which, places = file.places(postings, chosen)
        # Where the phrase would begin; in a text it has no place before the first.
        keys = (which << 32) + (places - offset)
        keys = keys[places >= offset]
        begins = keys if begins is None else begins[np.isin(begins, keys, assume_unique=True)]
    assert begins is not None  # noqa: S101  # a phrase has a term
    return documents[np.unique(begins >> 32)]
