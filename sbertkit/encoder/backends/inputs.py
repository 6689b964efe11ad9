"""What a graph is given."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sbertkit.encoder.batching import Batch
from sbertkit.errors import InputError


def graph_inputs(batch: Batch, names: Iterable[str]) -> dict[str, npt.NDArray[np.int64]]:
    """The inputs of a graph for a batch, by name; each (B, T).

    Args:
        batch: The batch.
        names: The inputs that the graph has. Of a model with one token type for all, that input was
            lost when the graph was made.

    Raises:
        InputError: It has one that a batch does not.
    """
    given = {"input_ids": batch.input_ids, "attention_mask": batch.mask}
    if batch.types is not None:
        given["token_type_ids"] = batch.types
    try:
        return {name: given[name] for name in names}
    except KeyError as error:
        raise InputError(
            f"it has an input {error}; expected {', '.join(given)}, or some of them"
        ) from error
