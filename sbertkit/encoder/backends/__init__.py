"""Ways to run an encoder's network; each is one module that provides the `Backend` protocol."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sbertkit.arrays import Vectors
from sbertkit.encoder.batching import Batch


class Backend(Protocol):
    """Turns padded batches into vectors."""

    batch_tokens: int
    """Tokens a batch, padding included, that serve this device well."""

    def run(
        self,
        plan: Sequence[npt.NDArray[np.int64]],
        pad: Callable[[npt.NDArray[np.int64]], Batch],
        deliver: Callable[[npt.NDArray[np.int64], Vectors], None],
    ) -> None:
        """Runs all batches of a plan, in any order.

        Args:
            plan: Rows of each batch.
            pad: Builds the padded batch of some rows; may be called from several threads.
            deliver: Takes the rows and their vectors (B, dim); called from several threads, but
                never twice for a row.
        """
        ...
