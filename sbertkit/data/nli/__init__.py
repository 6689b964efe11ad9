"""Natural language inference: premises and hypotheses with one of three labels, and their files."""

from sbertkit.data.nli.labels import parse_label_map
from sbertkit.data.nli.nli_set import NliPair, NliSet, NliSource, check_pairs
from sbertkit.data.nli.reading import read_nli
from sbertkit.data.nli_labels import NLI_LABELS

__all__ = [
    "NLI_LABELS",
    "NliPair",
    "NliSet",
    "NliSource",
    "check_pairs",
    "parse_label_map",
    "read_nli",
]
