"""What is imported when it is first needed."""

from importlib import import_module
from typing import Any


class LazyFunction:
    """As an attribute of a class, a function of a module that is imported when it is asked for.

    Args:
        module: The name of the module.
        name: The name of the function.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The function itself."""
        return getattr(import_module(self._module), self._name)
