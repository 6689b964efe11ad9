"""Durable writing: outputs that replace old ones in one step, and plain words for disk errors."""

from sbertkit.storage.disk_errors import (
    foreign_errors,
    foreign_items,
    storage_errors,
    writer_errors,
)
from sbertkit.storage.handle_locks import is_at, let_go, try_hold
from sbertkit.storage.modes import copy_tree, follow_modes
from sbertkit.storage.publishing import (
    is_fixed,
    made_parents,
    publish_file,
    replace_file,
    staged_file,
    staged_folder,
)
from sbertkit.storage.side_names import (
    clear_folder,
    clear_leftovers,
    owned_folder,
    side_pattern,
)
from sbertkit.storage.syncing import sha256_file, sync_file, sync_folder, sync_tree

__all__ = [
    "clear_folder",
    "clear_leftovers",
    "copy_tree",
    "follow_modes",
    "foreign_errors",
    "foreign_items",
    "is_at",
    "is_fixed",
    "let_go",
    "made_parents",
    "owned_folder",
    "publish_file",
    "replace_file",
    "sha256_file",
    "side_pattern",
    "staged_file",
    "staged_folder",
    "storage_errors",
    "sync_file",
    "sync_folder",
    "sync_tree",
    "try_hold",
    "writer_errors",
]
