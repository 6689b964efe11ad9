"""What every backend provides."""

from contextlib import AbstractContextManager
from typing import Protocol

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.first_use import FirstUse
from sbertkit.encoder.backends.streams import Streams
from sbertkit.encoder.batching import Batch


class Backend(Protocol):
    """Turns padded batches into vectors."""

    batch_tokens: int
    """Tokens per batch, padding included, that suit this device well."""
    first_use: FirstUse
    """Whether it has run a batch in this process."""

    def streams(self, batches: int) -> AbstractContextManager[Streams]:
        """How to run so many batches side by side, inside the block."""
        ...

    def embed(self, batch: Batch) -> Vectors:
        """The vectors of a batch, (B, dim); called from several threads at once."""
        ...
