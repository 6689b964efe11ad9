"""The names of the package: the one list of them, from which they are loaded on first use."""

# ruff: noqa: I001 - which would give each name a statement of its own

from .build import (
    BuildOptions as BuildOptions,
)
from .changes import (
    change_documents as change_documents,
    compact_index as compact_index,
    delete_documents as delete_documents,
)
from .default_path import (
    default_index_path as default_index_path,
)
from .dump import (
    dump_index as dump_index,
)
from .filters.known_fields import (
    FieldInfo as FieldInfo,
)
from .fusion import (
    Fusion as Fusion,
)
from .inspection import (
    index_fields as index_fields,
    index_info as index_info,
    verify_index as verify_index,
)
from .repair import (
    repair_index as repair_index,
)
from .results import (
    Changes as Changes,
    Hit as Hit,
    IndexInfo as IndexInfo,
    LexicalInfo as LexicalInfo,
    Passage as Passage,
    Problem as Problem,
    Repair as Repair,
    Stage as Stage,
)
from .search_index import (
    SearchIndex as SearchIndex,
)
from .upgrade import (
    upgrade_index as upgrade_index,
)
