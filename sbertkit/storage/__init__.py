"""Durable writing: outputs that replace old ones atomically, and one-line disk errors."""

from sbertkit.storage.disk_errors import (
    caller_errors,
    caller_items,
    storage_errors,
    writer_errors,
)
from sbertkit.storage.handle_locks import is_at, release_handle, try_lock
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
    "caller_errors",
    "caller_items",
    "clear_folder",
    "clear_leftovers",
    "copy_tree",
    "follow_modes",
    "is_at",
    "is_fixed",
    "made_parents",
    "owned_folder",
    "publish_file",
    "release_handle",
    "replace_file",
    "sha256_file",
    "side_pattern",
    "staged_file",
    "staged_folder",
    "storage_errors",
    "sync_file",
    "sync_folder",
    "sync_tree",
    "try_lock",
    "writer_errors",
]
