"""Post-processing that counters anisotropy, fitted on vectors of a corpus.

Each gives a module that plain sentence-transformers runs, to be put before a final `Normalize`.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.postprocessors import Dense, LayerNorm
from sbertkit.errors import InputError
from sbertkit.metrics.cosine import checked_vectors

Rows = npt.NDArray[np.float64]

_MIN_ROWS = 2


def center(vectors: npt.ArrayLike) -> Dense:
    """Subtracts the mean vector.

    Args:
        vectors: Of a corpus, (n, dim).

    Raises:
        InputError: Fewer than 2 rows, or not finite numbers of shape (n, dim).

    Source: Mu & Viswanath 2018, All-but-the-Top, section 2.1 (its first step).
    """
    rows = _checked(vectors)
    return _linear(np.eye(rows.shape[1]), rows.mean(axis=0))


def whiten(vectors: npt.ArrayLike, *, shrinkage: float = 0.0, k: int | None = None) -> Dense:
    """Makes the directions of the corpus uncorrelated and equally strong.

    The covariance S is first shrunk towards the sphere of its size, (1 - a) S + a (tr S / d) I,
    which keeps weak directions, mostly noise, from being blown up. Then
    ``x -> (x - mean) U D^(-1/2)`` with S = U D U^T, of which the `k` strongest directions are kept.

    Args:
        vectors: Of a corpus, (n, dim).
        shrinkage: a above, from 0 (full whitening) to 1 (centring and one common scale).
        k: Directions kept, at most dim; None for all in which the vectors differ.

    Raises:
        InputError: As `center`, an option out of its range, or rows that span fewer than `k`
            directions where nothing is shrunk.

    Source: Su et al. 2021, Whitening Sentence Representations, section 2.2 and algorithm 1;
        Ledoit & Wolf 2004 for the shrinkage target.
    """
    rows = _checked(vectors)
    dim = rows.shape[1]
    if k is not None and not 1 <= k <= dim:
        raise InputError(f"k must be from 1 to {dim}, the size of the vectors, not {k}")
    if not 0 <= shrinkage <= 1:
        raise InputError(f"shrinkage must be from 0 to 1, not {shrinkage}")
    mean = rows.mean(axis=0)
    covariance = np.cov(rows, rowvar=False, bias=True).reshape(dim, dim)
    covariance = (1 - shrinkage) * covariance + shrinkage * covariance.trace() / dim * np.eye(dim)
    strengths, directions = np.linalg.eigh(covariance)
    strengths, directions = strengths[::-1], directions[:, ::-1]
    spanned = int((strengths > dim * np.finfo(np.float64).eps * max(strengths[0], 0.0)).sum())
    # As many vectors as directions are all equally far apart once they are whitened.
    kept = spanned if k is None and len(rows) > dim else k or dim
    if not 0 < kept <= spanned:
        raise InputError(
            f"the {len(rows):,} vectors span {spanned} directions, {max(kept, 1)} are asked for; "
            "fit on more text, give k, or a shrinkage above 0"
        )
    strengths, directions = strengths[:kept], directions[:, :kept]
    return _linear((directions / np.sqrt(strengths)).T, mean)


def remove_top(vectors: npt.ArrayLike, components: int) -> Dense:
    """Subtracts the mean and the projections on the strongest directions (all-but-the-top).

    Args:
        vectors: Of a corpus, (n, dim).
        components: How many directions; the source takes about dim / 100.

    Raises:
        InputError: As `center`, or as many components as dimensions.

    Source: Mu & Viswanath 2018, All-but-the-Top, algorithm 1.
    """
    rows = _checked(vectors)
    dim = rows.shape[1]
    if not 1 <= components < dim:
        raise InputError(f"components must be from 1 to {dim - 1}, not {components}")
    mean = rows.mean(axis=0)
    _, directions = np.linalg.eigh(np.cov(rows, rowvar=False, bias=True).reshape(dim, dim))
    top = directions[:, ::-1][:, :components].T
    return _linear(np.eye(dim) - top.T @ top, mean)


def standardize(vectors: npt.ArrayLike) -> Dense:
    """Gives each dimension mean 0 and deviation 1; a dimension without any stays 0.

    Args:
        vectors: Of a corpus, (n, dim).

    Raises:
        InputError: As `center`.

    Source: Timkey & van Schijndel 2021, All Bark and No Bite, section 5.
    """
    rows = _checked(vectors)
    deviations = rows.std(axis=0)
    scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    return _linear(np.diag(scales), rows.mean(axis=0))


def layer_normalize(vectors: npt.ArrayLike) -> LayerNorm:
    """Gives each vector mean 0 and deviation 1 over its dimensions; nothing is fitted.

    Args:
        vectors: Of a corpus, (n, dim), for their size.

    Raises:
        InputError: As `center`.

    Source: Ba, Kiros & Hinton 2016, Layer Normalization, equation 3, without gain and bias.
    """
    return LayerNorm(_checked(vectors).shape[1])


FITTERS: dict[str, Callable[[npt.ArrayLike], nn.Module]] = {
    "center": center,
    "whiten": whiten,
    "whiten_shrunk": lambda vectors: whiten(vectors, shrinkage=0.1),
    "whiten_half": lambda vectors: whiten(vectors, k=max(1, np.shape(vectors)[1] // 2)),
    "remove_top_1": lambda vectors: remove_top(vectors, 1),
    "remove_top_3": lambda vectors: remove_top(vectors, 3),
    "standardize": standardize,
    "layer_norm": layer_normalize,
}
"""Functions that fit a post-processor on vectors (n, dim), by name."""


def post_processed(encoder: Encoder, method: str, texts: Iterable[str]) -> Encoder:
    """The encoder with one more post-processor, fitted on its vectors of some texts.

    It is put before a normalization at the end. Texts count once each.

    Args:
        encoder: What is to be changed; it stays as it is.
        method: A name of `FITTERS`.
        texts: Of the kind that will be encoded, some thousands.

    Raises:
        InputError: An unknown method, or texts that do not suit it.
    """
    if method not in FITTERS:
        raise InputError(f"post-processing must be one of {', '.join(FITTERS)}, not {method!r}")
    model = encoder.torch
    pooling, before = model.network.pooling, model.postprocessors_before_normalization
    plain = encoder.variant(pooling, before)
    fitted = FITTERS[method](plain.encode(list(dict.fromkeys(texts))))
    return encoder.variant(pooling, [*before, fitted, *model.postprocessors[len(before) :]])


def _checked(vectors: npt.ArrayLike) -> Rows:
    rows = checked_vectors(vectors).astype(np.float64)
    if len(rows) < _MIN_ROWS:
        raise InputError(f"expected at least {_MIN_ROWS} vectors to fit on, found {len(rows)}")
    return rows


def _linear(weight: Rows, mean: Rows) -> Dense:
    """The map ``x -> weight (x - mean)``."""
    dense = Dense(weight.shape[1], weight.shape[0], activation="Identity")
    with torch.no_grad():
        dense.linear.weight.copy_(torch.from_numpy(weight))
        dense.linear.bias.copy_(torch.from_numpy(-(weight @ mean)))
    return dense.requires_grad_(requires_grad=False)
