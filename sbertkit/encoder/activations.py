"""What cross-encoders apply to their scores; in NumPy, as exports run without torch."""

from collections.abc import Callable

import numpy as np

from sbertkit.arrays import Vectors


def _sigmoid(scores: Vectors) -> Vectors:
    # Of the absolute value, whose exponential never overflows.
    small = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)


ACTIVATIONS: dict[str, Callable[[Vectors], Vectors]] = {
    "Sigmoid": _sigmoid,
    "Identity": lambda scores: scores,
    "Tanh": np.tanh,
}
"""By the name of their class in torch; each keeps the order of scores."""

DEFAULT_ACTIVATION = "Sigmoid"
"""Of a model that declares none, as in sentence-transformers."""
