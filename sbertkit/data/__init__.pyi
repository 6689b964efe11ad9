"""The names of the package: the one list of them, from which they are loaded on first use."""

# ruff: noqa: I001 - which would give each name a statement of its own

from .corpora import (
    read_corpus as read_corpus,
)
from .document import (
    Document as Document,
    SourcedDocument as SourcedDocument,
)
from .documents import (
    IssueCount as IssueCount,
    ReadOptions as ReadOptions,
    ReadReport as ReadReport,
)
from .iterables import (
    documents_from as documents_from,
)
from .text import (
    has_surrogates as has_surrogates,
    is_blank as is_blank,
    repair_surrogates as repair_surrogates,
)
