"""Post-processing that is fitted on vectors, against NumPy written out and plain libraries."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from sbertkit.encoder.whitening import (
    FITTERS,
    center,
    layer_normalize,
    post_processed,
    remove_top,
    standardize,
    whiten,
)
from sbertkit.errors import InputError

pytestmark = pytest.mark.usefixtures("empty_cache")

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

Float64 = npt.NDArray[np.float64]
TEXTS = [
    f"{who} {does} {where}"
    for who in ("the baker", "a goat", "two trains", "the old kettle", "rain")
    for does in ("waits", "sings", "climbs up", "is late", "falls")
    for where in ("at noon", "by the harbour", "on the roof of the house")
]


@pytest.fixture
def rows() -> Float64:
    """Vectors of 6 dimensions that are correlated and not centred."""
    random = np.random.default_rng(0)
    return random.normal(size=(500, 6)) @ random.normal(size=(6, 6)) + random.normal(size=6) * 3


def apply(module: nn.Module, rows: npt.ArrayLike) -> Float64:
    with torch.inference_mode():
        result = module(torch.from_numpy(np.asarray(rows, dtype=np.float32))).numpy()
    return np.asarray(result, dtype=np.float64)


def test_centring_takes_the_mean_away(rows: Float64) -> None:
    np.testing.assert_allclose(apply(center(rows), rows), rows - rows.mean(0), atol=1e-4)


def test_whitened_vectors_have_the_identity_as_covariance(rows: Float64) -> None:
    out = apply(whiten(rows), rows)
    np.testing.assert_allclose(np.cov(out, rowvar=False, bias=True), np.eye(6), atol=1e-3)
    np.testing.assert_allclose(out.mean(0), 0, atol=1e-3)


def test_shrinkage_draws_the_covariance_towards_a_sphere(rows: Float64) -> None:
    a = 0.3
    covariance = np.cov(rows, rowvar=False, bias=True)
    shrunk = (1 - a) * covariance + a * np.trace(covariance) / 6 * np.eye(6)
    values, directions = np.linalg.eigh(shrunk)
    expected = (rows - rows.mean(0)) @ directions / np.sqrt(values)
    out = apply(whiten(rows, shrinkage=a), rows)
    # Up to the order and the signs of directions: inner products are the same.
    np.testing.assert_allclose(out @ out.T, expected @ expected.T, atol=1e-2)
    whole = apply(whiten(rows, shrinkage=1.0), rows)
    scale = np.sqrt(np.trace(covariance) / 6)
    centred = (rows - rows.mean(0)) / scale
    np.testing.assert_allclose(whole @ whole.T, centred @ centred.T, atol=1e-2)


def test_k_directions_are_those_of_the_most_variance(rows: Float64) -> None:
    out = apply(whiten(rows, k=2), rows)
    assert out.shape == (500, 2)
    values, directions = np.linalg.eigh(np.cov(rows, rowvar=False, bias=True))
    expected = (rows - rows.mean(0)) @ directions[:, -2:] / np.sqrt(values[-2:])
    np.testing.assert_allclose(out @ out.T, expected @ expected.T, atol=1e-2)


def test_the_top_components_are_taken_away(rows: Float64) -> None:
    centred = rows - rows.mean(0)
    top = np.linalg.svd(centred, full_matrices=False)[2][:2]
    expected = centred - centred @ top.T @ top
    out = apply(remove_top(rows, 2), rows)
    np.testing.assert_allclose(out, expected, atol=1e-3)
    np.testing.assert_allclose(out @ top.T, 0, atol=1e-3)


def test_standardized_dimensions_have_mean_0_and_deviation_1(rows: Float64) -> None:
    rows[:, 3] = 7.0
    out = apply(standardize(rows), rows)
    np.testing.assert_allclose(out.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(out.std(0), [1, 1, 1, 0, 1, 1], atol=1e-3)


def test_layer_normalized_vectors_have_mean_0_and_deviation_1(rows: Float64) -> None:
    out = apply(layer_normalize(rows), rows)
    np.testing.assert_allclose(out.mean(1), 0, atol=1e-4)
    np.testing.assert_allclose(out.std(1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("fit", "reason"),
    [
        (lambda rows: whiten(rows, k=0), "k must be from 1 to 6"),
        (lambda rows: whiten(rows, k=7), "k must be from 1 to 6"),
        (lambda rows: whiten(rows, shrinkage=-0.1), "shrinkage must be from 0 to 1"),
        (lambda rows: whiten(rows, shrinkage=1.1), "shrinkage must be from 0 to 1"),
        (lambda rows: whiten(rows[:4]), "span 3 directions, 6 are asked for"),
        (lambda rows: whiten(np.ones((9, 6))), "span 0 directions"),
        (lambda rows: remove_top(rows, 0), "components must be from 1 to 5"),
        (lambda rows: remove_top(rows, 6), "components must be from 1 to 5"),
        (lambda rows: center(rows[:1]), "at least 2 vectors"),
        (lambda rows: center(rows[0]), "shape"),
        (lambda rows: standardize(rows * np.nan), "finite"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    rows: Float64, fit: Callable[[Float64], nn.Module], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        fit(rows)


def test_few_texts_can_be_whitened_with_shrinkage(rows: Float64) -> None:
    assert np.isfinite(apply(whiten(rows[:3], shrinkage=0.1), rows)).all()


# --- on an encoder


@pytest.mark.parametrize("method", FITTERS)
@pytest.mark.parametrize("normalize", [True, False])
def test_plain_sentence_transformers_gives_the_same_vectors(
    tiny_bert: Path,
    tmp_path: Path,
    plain: Callable[[Path], Any],
    method: str,
    normalize: bool,
) -> None:
    from sbertkit.encoder import Encoder

    encoder = Encoder.load(tiny_bert, pooling="mean", normalize=normalize, device="cpu")
    changed = post_processed(encoder, method, TEXTS)
    assert changed.normalizes == normalize
    assert len(changed.torch.postprocessors) == 1 + normalize
    vectors = changed.encode(TEXTS)
    changed.save(tmp_path / "model")
    np.testing.assert_allclose(plain(tmp_path / "model").encode(TEXTS), vectors, atol=2e-5)
    again = Encoder.load(tmp_path / "model", device="cpu")
    assert again.fingerprint == changed.fingerprint
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)


def test_the_encoder_itself_stays_as_it_was(tiny_bert: Path) -> None:
    from sbertkit.encoder import Encoder

    encoder = Encoder.load(tiny_bert, pooling="mean", backend="torch")
    before, vectors = encoder.fingerprint, encoder.encode(TEXTS[:3])
    changed = post_processed(encoder, "center", TEXTS)
    assert changed.fingerprint != before
    encoder.torch.weights_changed()  # so that the fingerprint is computed again
    assert encoder.fingerprint == before
    np.testing.assert_array_equal(encoder.encode(TEXTS[:3]), vectors)


def test_the_step_is_fitted_on_vectors_before_their_normalization(tiny_encoder: "Encoder") -> None:
    plain_vectors = tiny_encoder.variant(tiny_encoder.torch.network.pooling, []).encode(TEXTS)
    expected = plain_vectors - plain_vectors.mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = post_processed(tiny_encoder, "center", TEXTS).encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_repeated_texts_count_once(tiny_encoder: "Encoder") -> None:
    one = post_processed(tiny_encoder, "center", TEXTS)
    assert (
        one.fingerprint == post_processed(tiny_encoder, "center", [*TEXTS, *TEXTS[:40]]).fingerprint
    )


def test_an_unknown_method_is_refused_with_the_known_ones(tiny_encoder: "Encoder") -> None:
    with pytest.raises(InputError, match="must be one of center, whiten"):
        post_processed(tiny_encoder, "bleach", TEXTS)


def test_a_variant_shares_weights_and_differs_in_what_was_asked_for(
    tiny_encoder: "Encoder",
) -> None:
    from sbertkit.encoder.pooling import Pooling

    other = tiny_encoder.variant(Pooling("cls"), [])
    assert (other.pooling, other.normalizes, tiny_encoder.pooling) == ("cls", False, "mean")
    assert other.torch.network.transformer is tiny_encoder.torch.network.transformer
    assert other.fingerprint != tiny_encoder.fingerprint


def test_a_grid_gives_the_vectors_of_each_pooling_and_layer(tiny_encoder: "Encoder") -> None:
    from sbertkit.encoder.multi_pooling import encode_poolings
    from sbertkit.encoder.pooling import Pooling

    count = tiny_encoder.torch.transformer.layer_count
    poolings = [
        *(Pooling(name) for name in ("cls", "mean", "max", "eos", "weighted_mean")),
        Pooling.named("first_last", count),
        Pooling("mean", (1,)),
        Pooling("cls", (0, count)),
    ]
    grid = encode_poolings(tiny_encoder, TEXTS, poolings)
    assert list(grid) == poolings
    for pooling, vectors in grid.items():
        alone = tiny_encoder.variant(pooling, []).encode(TEXTS)
        np.testing.assert_allclose(vectors, alone, atol=1e-5)


def test_a_variant_of_one_layer_is_saved_and_loaded(
    tiny_encoder: "Encoder", tmp_path: Path, plain: Callable[[Path], Any]
) -> None:
    from sbertkit.encoder import Encoder
    from sbertkit.encoder.pooling import Pooling
    from sbertkit.encoder.postprocessors import Normalize

    encoder = tiny_encoder.variant(Pooling("mean", (1,)), [Normalize()])
    encoder.save(tmp_path / "model")
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(
        Encoder.load(tmp_path / "model", device="cpu").encode(TEXTS), vectors, atol=1e-5
    )
    np.testing.assert_allclose(plain(tmp_path / "model").encode(TEXTS), vectors, atol=1e-5)
