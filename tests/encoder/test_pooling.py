"""Each pooling against numbers worked out by hand and against a plain loop in numpy."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from sbertkit.encoder.pooling import POOLINGS, Pooling, pooling_of_st
from sbertkit.errors import InputError

TOKENS = [[1.0, -5.0], [2.0, -3.0], [6.0, -1.0]]
BY_HAND = {
    "cls": [1.0, -5.0],
    "mean": [3.0, -3.0],
    "max": [6.0, -1.0],
    "eos": [6.0, -1.0],
    "mean_sqrt_len": [9 / math.sqrt(3), -9 / math.sqrt(3)],
    "weighted_mean": [(1 + 4 + 18) / 6, -(5 + 6 + 3) / 6],
}


def pool_one(name: str, states: list[np.ndarray]) -> Any:
    """The pooling of one text without padding, token by token, from its hidden states (T, dim)."""
    last = states[-1].astype(np.float64)
    count = len(last)
    if name == "cls":
        return last[0]
    if name == "eos":
        return last[count - 1]
    if name == "max":
        return np.array([max(token[i] for token in last) for i in range(last.shape[1])])
    if name == "mean_sqrt_len":
        return sum(last) / math.sqrt(count)
    if name == "weighted_mean":
        weighted = sum((place + 1) * token for place, token in enumerate(last))
        return weighted / (count * (count + 1) / 2)
    if name == "first_last":
        return sum((states[1].astype(np.float64) + last) / 2) / count
    return sum(last) / count


def padded(
    texts: list[np.ndarray], side: str, filler: float, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.full((len(texts), width, texts[0].shape[1]), filler)
    mask = torch.zeros((len(texts), width), dtype=torch.int64)
    for row, text in enumerate(texts):
        start = width - len(text) if side == "left" else 0
        tokens[row, start : start + len(text)] = torch.from_numpy(text)
        mask[row, start : start + len(text)] = 1
    return tokens, mask


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("side", ["left", "right"])
def test_each_pooling_gives_the_value_worked_out_by_hand(name: str, side: str) -> None:
    tokens, mask = padded([np.array(TOKENS, dtype=np.float32)], side, 99.0, 5)
    found = Pooling(name)(tokens, None, mask)
    assert found.numpy() == pytest.approx(np.array([BY_HAND[name]]), abs=1e-6)


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("filler", [1e6, -1e6, 0.0])
def test_padding_of_any_value_on_either_side_changes_nothing(
    name: str, side: str, filler: float
) -> None:
    draw = np.random.default_rng(7)
    layers = 3
    texts = [draw.normal(size=(layers, count, 4)).astype(np.float32) for count in (1, 2, 7, 3)]
    hidden = [padded([text[layer] for text in texts], side, filler, 9) for layer in range(layers)]
    mask = hidden[-1][1]
    pooling = Pooling.named(name, layers - 1)
    found = pooling(hidden[-1][0], [states for states, _ in hidden], mask).numpy()
    expected = np.array([pool_one(name, list(text)) for text in texts])
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", POOLINGS)
def test_one_token_is_its_own_pooling(name: str) -> None:
    token = torch.tensor([[[0.25, -2.0]]])
    states = [token, token, token]
    found = Pooling.named(name, 2)(token, states, torch.ones((1, 1), dtype=torch.int64))
    assert torch.equal(found, token[0])


def test_first_last_of_a_model_with_one_layer_is_its_mean() -> None:
    assert Pooling.named("first_last", 1).layers == (1,)
    assert Pooling.named("first_last", 12).layers == (1, 12)


def test_the_names_are_the_documented_ones() -> None:
    assert sorted(POOLINGS) == sorted(POOLINGS)


@pytest.mark.parametrize("name", ["", "CLS", "mean ", "lasttoken", "attention"])
def test_an_unknown_pooling_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(InputError, match=r"expected one of cls, eos, first_last, max, mean") as no:
        Pooling(name)
    assert repr(name) in str(no.value)


@pytest.mark.parametrize(
    ("mode", "layers", "expected"),
    [
        ("cls", (), "cls"),
        ("mean", (), "mean"),
        ("max", (), "max"),
        ("lasttoken", (), "eos"),
        ("mean_sqrt_len_tokens", (), "mean_sqrt_len"),
        ("weightedmean", (), "weighted_mean"),
        ("mean", (1, 6), "first_last"),
        ("mean", (5, 6), "mean"),
        ("cls", (1, 6), "cls"),
    ],
)
def test_published_modes_have_our_names(mode: str, layers: tuple[int, ...], expected: str) -> None:
    assert pooling_of_st(mode, layers, 6) == Pooling(expected, layers)


def test_an_unknown_published_mode_is_refused() -> None:
    with pytest.raises(InputError, match="unknown pooling mode 'attention'"):
        pooling_of_st("attention", (), 6)
