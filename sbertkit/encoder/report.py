"""What encoding a list of texts met."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class EncodeReport:
    """What happened to the texts of one call; row numbers count from 0.

    Attributes:
        rows: Texts encoded.
        truncated: Rows that were cut at `max_tokens`.
        tokens_lost: Tokens cut off, over all rows.
        blank: Rows without a visible character; they have the vector of the empty text.
        repaired: Rows whose unpaired surrogates became U+FFFD.
        duplicates: Rows that took the vector of an equal text of the same pool of texts.
        seconds: Wall time of the call.
        tokens_per_second: Tokens that went through the model (padding not counted) over `seconds`.
    """

    rows: int
    truncated: tuple[int, ...]
    tokens_lost: int
    blank: tuple[int, ...]
    repaired: tuple[int, ...]
    duplicates: int
    seconds: float
    tokens_per_second: float


class Encoded(NamedTuple):
    """Vectors ``(n, dim)`` float32 in the order of the texts, and the report on them."""

    vectors: npt.NDArray[np.float32]
    report: EncodeReport
