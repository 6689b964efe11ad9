"""Evaluation of encoders and indexes.

The names are listed in ``__init__.pyi`` and loaded on first use: some need torch, most do not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
