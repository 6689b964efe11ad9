"""The search index: an encoder, vector segments and documents in one durable folder.

The names are listed in ``__init__.pyi`` and loaded on first use: the modes of a search need none of
what it needs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
