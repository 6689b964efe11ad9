"""Natural language inference: premises and hypotheses with one of three labels, and their files."""

from sbertkit.data.nli.labels import NLI_LABELS, parse_label_map
from sbertkit.data.nli.nli_set import NliPair, NliSet, NliSource, check_pairs
from sbertkit.data.nli.reading import read_nli

__all__ = [
    "NLI_LABELS",
    "NliPair",
    "NliSet",
    "NliSource",
    "check_pairs",
    "parse_label_map",
    "read_nli",
]
