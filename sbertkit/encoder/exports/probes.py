"""Texts of many kinds and lengths that a faster way of computing is compared on."""

from collections.abc import Sequence

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends.base import Backend
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.encoder.spec import EncoderSpec
from sbertkit.errors import InputError
from sbertkit.metrics.cosine import unit_rows

_PARTS = (
    "A man is eating food.",
    "The kettle on the stove began to sing while nobody was listening",
    "rain",
    "Interest rates were left unchanged at 4.25 % on Thursday, said the central bank.",
    "How do I undo the last commit in git?",
    "def mean(values): return sum(values) / len(values)",
    "Ein Hund läuft über die Wiese und bellt.",
    "一个男人正在吃东西。",
    "Il pleut sur la ville comme il pleure dans mon cœur",
    "любой текст на другом языке",
    "I am not sure whether this is what she meant!!!",
    "12 + 30 = 42",
    "protein kinase inhibitors reduce tumour growth in mice",
    "The plaintiff shall bear the costs of the proceedings.",
    "LOL that was so funny 😀",
    "https://example.org/a/b?c=d",
)

PROBES: tuple[str, ...] = (
    " ".join(_PARTS * 2),  # the longest and the shortest first: few probes pad, too
    "a",
    *_PARTS,
    *(" ".join(pair) for pair in zip(_PARTS, _PARTS[3:], strict=False)),
    *(" ".join(_PARTS[start : start + 6]) for start in range(0, len(_PARTS), 3)),
    "",
)

FEW_PROBES = PROBES[:2]
"""Enough to tell one encoder from another, or a runtime that computes something else."""

TRACED_PROBES = PROBES[1:4]
"""What a model is traced with: padded, and shorter than others that its export is compared on."""

OPENING_PROBES = PROBES[1:3]
"""Short ones, which an export encodes whenever it is opened."""


MAX_DIFFERENCE = 1e-4
"""To torch in float32, relative to the largest component."""
MIN_COSINE = {"fp32": 0.999, "bf16": 0.999, "int8": 0.9}
"""To torch in float32 on every probe text; less than that is not what the precision costs."""


def probe_vectors(spec: EncoderSpec, backend: Backend, texts: Sequence[str] = PROBES) -> Vectors:
    """Vectors (n, dim) of texts as an encoder's documents, by a backend of our choice.

    Of a model that scores pairs: the scores (n, 1) of each text with the one that follows.
    """
    run = EncodingRun(spec, lambda _: backend)
    return np.concatenate(list(run.vectors(spec.rows_of(texts), warn=False)))


def min_cosine(expected: Vectors, found: Vectors) -> float:
    """The lowest cosine of two vectors of the same text; both (n, dim).

    Scores (n, 1), which have no direction, are compared as one vector.
    """
    if expected.shape[1] == 1:
        expected, found = expected.T, found.T
    return float(np.einsum("ij,ij->i", unit_rows(expected), unit_rows(found)).min())


def check_equal(expected: Vectors, found: Vectors, precision: str, model: str) -> None:
    """Refuses vectors of the probe texts that are not those of torch in float32.

    Raises:
        InputError: They differ by more than the precision explains.
    """
    if expected.shape != found.shape:
        raise InputError(f"the export of {model} gives vectors of another size than the model")
    if precision == "fp32":
        difference = float(np.abs(expected - found).max() / np.abs(expected).max())
        equal = difference <= MAX_DIFFERENCE
        reason = f"largest difference {difference:.1e}, expected at most {MAX_DIFFERENCE:.0e}"
    else:
        cosine = min_cosine(expected, found)
        equal = cosine >= MIN_COSINE[precision]
        reason = f"lowest cosine {cosine:.4f}, expected at least {MIN_COSINE[precision]}"
    if not equal:
        remedy = "use backend torch" if precision != "int8" else "use precision bf16 or fp32"
        raise InputError(
            f"the export of {model} computes something else than torch ({reason}); {remedy}"
        )
