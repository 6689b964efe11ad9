"""The formats of corpora: each is a module here and an entry of `FORMATS`."""

from sbertkit.data.formats.base import CorpusFormat
from sbertkit.data.formats.beir import BEIR
from sbertkit.data.formats.dataset import DATASET
from sbertkit.data.formats.folder import FILE, FOLDER
from sbertkit.data.formats.lines import TSV, TXT
from sbertkit.data.formats.tables import ARROW, CSV, JSONL, PARQUET

__all__ = ["FORMATS", "CorpusFormat"]

FORMATS: dict[str, CorpusFormat] = {
    one.name: one for one in (TXT, JSONL, TSV, CSV, PARQUET, ARROW, BEIR, DATASET, FOLDER, FILE)
}
"""By name, in the order in which users are shown them."""
