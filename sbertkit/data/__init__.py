"""Corpora and data sets: records, and their readers.

The names are listed in ``__init__.pyi`` and loaded on first use: a search needs no reader.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
