"""sbertkit: sentence embeddings, durable semantic search and numbers that can be trusted.

The public names are listed in ``__init__.pyi`` and loaded on first use, so that ``import sbertkit``
stays light.
"""

import lazy_loader

from sbertkit.telemetry import switch_off_telemetry

switch_off_telemetry()

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
