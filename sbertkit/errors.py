"""Every exception that sbertkit raises on purpose.

::

    SbertkitError
    ├── InputError (also ValueError)         a refused argument, record, file or index
    │   ├── MissingFile (also FileNotFoundError)
    │   ├── UnknownId
    │   ├── BadFilter
    │   ├── ModelMismatch
    │   ├── DamagedIndex
    │   ├── NewerFormat
    │   └── OlderFormat
    ├── InputTypeError (also TypeError)      a wrong type
    ├── StorageError (also OSError)          disk full, permission, lock held
    ├── TrainingStopped (also RuntimeError)  the guard ended a run that had gone wrong
    └── MissingDependency (also ImportError) names the pip command

A message is one line: what was expected, what was found, where, and what to do. That of `BadFilter`
has two more: the filter, and a caret below the place in it.
"""

import re

_OPTION = re.compile(r"(?P<argument>[\w=]+) \((?P<option>--[a-z-]+)\)")
"""How messages name an argument: in Python's words and in the shell's."""


class SbertkitError(Exception):
    """Base of all errors that sbertkit raises on purpose.

    Where a message names an argument, it has both its names, ``resume (--resume)``; a text made of
    the error with `str` has the one of Python, `in_shell` that of the command line.
    """

    def __str__(self) -> str:
        return _OPTION.sub(r"\g<argument>", super().__str__())

    def __format__(self, spec: str) -> str:
        """The message with both names, for that of another error."""
        return format(super().__str__(), spec)

    @property
    def in_shell(self) -> str:
        """The message in the words of the command line."""
        return shell_words(super().__str__())


def shell_words(message: str) -> str:
    """A message that names arguments in both ways, in the words of the command line."""
    return _OPTION.sub(r"\g<option>", message)


class InputError(SbertkitError, ValueError):
    """An argument, a record, a file or an index was refused."""


class MissingFile(InputError, FileNotFoundError):
    """A named file or folder does not exist."""


class UnknownId(InputError):
    """A document id is not in the index."""


class BadFilter(InputError):
    """A filter cannot be read, or names no field; the lines below the message show the place."""


class ModelMismatch(InputError):
    """An index was opened with another encoder than the one that built it."""


class DamagedIndex(InputError):
    """A file of an index is missing, truncated or changed."""


class NewerFormat(InputError):
    """A folder was written by a newer version of sbertkit than this one."""


class OlderFormat(InputError):
    """A folder was written in an older format, and has to be upgraded first."""


class InputTypeError(SbertkitError, TypeError):
    """A value has a type that is not accepted."""


class StorageError(SbertkitError, OSError):
    """The disk is full, a permission is missing or a lock is held."""


class TrainingStopped(SbertkitError, RuntimeError):
    """The guard ended a training run; the message says why, and what usually cures it."""


class MissingDependency(SbertkitError, ImportError):
    """An optional package is not installed; the message names the pip command."""
