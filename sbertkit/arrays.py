"""Types of arrays that the whole package shares."""

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""Embeddings of shape (n, dim), one row for each text."""
