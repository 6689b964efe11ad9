"""From one's own text to a search: adapt, train, diagnose, index and evaluate, step by step.

The names are listed in ``__init__.pyi`` and loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
