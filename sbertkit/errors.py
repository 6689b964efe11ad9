"""Every exception that sbertkit raises on purpose.

::

    SbertkitError
    ├── InputError (also ValueError)         a refused argument, record, file or index
    │   ├── MissingFile (also FileNotFoundError)
    │   ├── UnknownId
    │   ├── ModelMismatch
    │   ├── DamagedIndex
    │   └── NewerFormat
    ├── InputTypeError (also TypeError)      a wrong type
    ├── StorageError (also OSError)          disk full, permission, lock held
    ├── TrainingStopped (also RuntimeError)  the guard ended a run that had gone wrong
    └── MissingDependency (also ImportError) names the pip command

A message is one line: what was expected, what was found, where, and what to do.
"""


class SbertkitError(Exception):
    """Base of all errors that sbertkit raises on purpose."""


class InputError(SbertkitError, ValueError):
    """An argument, a record, a file or an index was refused."""


class MissingFile(InputError, FileNotFoundError):
    """A named file or folder does not exist."""


class UnknownId(InputError):
    """A document id is not in the index."""


class ModelMismatch(InputError):
    """An index was opened with another encoder than the one that built it."""


class DamagedIndex(InputError):
    """A file of an index is missing, truncated or changed."""


class NewerFormat(InputError):
    """A folder was written by a newer version of sbertkit than this one."""


class InputTypeError(SbertkitError, TypeError):
    """A value has a type that is not accepted."""


class StorageError(SbertkitError, OSError):
    """The disk is full, a permission is missing or a lock is held."""


class TrainingStopped(SbertkitError, RuntimeError):
    """The guard ended a training run; the message says why, and what usually cures it."""


class MissingDependency(SbertkitError, ImportError):
    """An optional package is not installed; the message names the pip command."""
