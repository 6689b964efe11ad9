"""The inputs of an ONNX model."""

from collections.abc import Iterable

from sbertkit.encoder.batching import Batch, Int64
from sbertkit.errors import InputError


def onnx_inputs(batch: Batch, names: Iterable[str]) -> dict[str, Int64]:
    """The inputs of an ONNX model for a batch, by name; each (B, T).

    Args:
        batch: The batch.
        names: The inputs that the model has; one with a single token type for all texts has lost
            that input in its export.

    Raises:
        InputError: It has one that a batch does not.
    """
    given = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    if batch.token_type_ids is not None:
        given["token_type_ids"] = batch.token_type_ids
    try:
        return {name: given[name] for name in names}
    except KeyError as error:
        raise InputError(
            f"it has an input {error}; expected {', '.join(given)}, or some of them"
        ) from error
