"""What libraries raise on a model's files, as one error of our own."""

from collections.abc import Iterator
from contextlib import contextmanager

from sbertkit.errors import InputError, SbertkitError

_MAX_REASON = 300


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """Turns whatever a library raises inside the block into one InputError; our own errors pass.

    Libraries raise nearly everything on files that are damaged or made to do harm: a bare Exception
    (tokenizers), AssertionError and ZeroDivisionError (torch), AttributeError (transformers),
    RecursionError, MemoryError.

    Args:
        what: The beginning of the message, such as "the model in x cannot be loaded".

    Raises:
        InputError: A library raised an error.
    """
    try:
        yield
    except SbertkitError:
        raise
    except Exception as error:
        raise InputError(f"{what}: {_reason(error)}") from error
    except BaseException as error:
        # A panic in Rust is no Exception, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:_MAX_REASON]
    name = type(error).__name__
    return f"{text} ({name})" if text else name
