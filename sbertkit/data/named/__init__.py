"""Public data sets by name: what is known of them, where they are, and how to get them."""

from sbertkit.data.named.hub import fetch_named
from sbertkit.data.named.paths import DATA_FOLDER, find_local, local_path, named_data
from sbertkit.data.named.sets import NAMED_SETS, HubSource, NamedSet, find_named

__all__ = [
    "DATA_FOLDER",
    "NAMED_SETS",
    "HubSource",
    "NamedSet",
    "fetch_named",
    "find_local",
    "find_named",
    "local_path",
    "named_data",
]
