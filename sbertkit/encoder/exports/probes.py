"""Texts of many kinds and lengths that a faster way of computing is compared on."""

from collections.abc import Sequence

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.backends import Backend
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.encoding import EncodingRun, RunSettings
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
    " ".join(_PARTS * 2),  # the longest and the shortest first: what is traced pads
    "a",
    *_PARTS,
    *(" ".join(pair) for pair in zip(_PARTS, _PARTS[3:], strict=False)),
    *(" ".join(_PARTS[start : start + 6]) for start in range(0, len(_PARTS), 3)),
    "",
)

FEW_PROBES = PROBES[:2]
"""Enough to tell one encoder from another, or a runtime that computes something else."""


def probe_vectors(encoder: Encoder, backend: Backend, texts: Sequence[str] = PROBES) -> Vectors:
    """Vectors (n, dim) of texts as an encoder's documents, by a backend of our choice."""
    settings = RunSettings(encoder.max_tokens, encoder.prompts.document, True, None)
    run = EncodingRun(
        encoder.tokenizer, encoder.padder, lambda _: backend, dim=encoder.dim, settings=settings
    )
    return np.concatenate(list(run.vectors(texts, warn=False)))


def least_cosine(expected: Vectors, found: Vectors) -> float:
    """The least cosine of two vectors of the same text; both (n, dim)."""
    return float(np.einsum("ij,ij->i", unit_rows(expected), unit_rows(found)).min())
