"""The corpus of BEIR's collections: JSON Lines in a folder, every document with an id."""

from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.formats.tables import JSONL

BEIR = CorpusFormat("beir", JSONL.read, has_columns=True, needs_id=True)
