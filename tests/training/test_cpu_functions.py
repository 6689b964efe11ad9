"""Dropout, attention and embeddings of training steps on a CPU, beside torch's own."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sbertkit.training.run import cpu_functions
from sbertkit.training.run.cpu_functions import CpuFunctions

TOKENS = [[5, 2, 0, 0], [2, 2, 7, 5]]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def gradients(functions: CpuFunctions | None, steps: int) -> list[Tensor]:
    """The gradients of an embedding in several steps of two passes each."""
    torch.manual_seed(1)
    embedding = nn.Embedding(50, 6, padding_idx=0)
    weights = torch.randn(steps, 2, *torch.tensor(TOKENS).shape, 6)
    found = []
    for step in range(steps):
        tokens = torch.tensor(TOKENS)
        tokens[tokens > 0] += step
        for passed in range(2):
            if functions is None:
                (embedding(tokens) * weights[step, passed]).sum().backward()
                continue
            with functions:
                (embedding(tokens) * weights[step, passed]).sum().backward()
        assert embedding.weight.grad is not None
        found.append(embedding.weight.grad.clone())
        embedding.zero_grad()
    return found


def test_embeddings_have_the_gradient_of_autograd_in_every_step() -> None:
    ours, autograd = gradients(CpuFunctions(embeddings=True), 3), gradients(None, 3)
    for one, other in zip(ours, autograd, strict=True):
        assert torch.equal(one, other)
        assert one[0].abs().sum() == 0  # padding
        assert one.abs().sum() > 0


def test_the_gradient_of_an_embedding_stays_in_memory() -> None:
    embedding, functions = nn.Embedding(50, 6), CpuFunctions(embeddings=True)
    places = set()
    for _ in range(3):
        with functions:
            embedding(torch.tensor(TOKENS)).sum().backward()
        assert embedding.weight.grad is not None
        places.add(embedding.weight.grad.data_ptr())
        embedding.zero_grad()
    assert len(places) == 1


@pytest.mark.parametrize("max_norm", [1e-3, 1e3])
def test_clipping_is_that_of_torch(max_norm: float) -> None:
    functions, embedding, layer = (
        CpuFunctions(embeddings=True),
        nn.Embedding(50, 6),
        nn.Linear(6, 6),
    )
    parameters = [*embedding.parameters(), *layer.parameters(), nn.Parameter(torch.ones(3))]
    for step in range(3):
        for passed in range(2):
            with functions:
                layer(embedding(torch.tensor(TOKENS) + step + passed)).pow(2).sum().backward()
        copies = [nn.Parameter(one.detach().clone()) for one in parameters]
        for copy, one in zip(copies, parameters, strict=True):
            copy.grad = None if one.grad is None else one.grad.clone()
        norm = functions.clip(parameters, max_norm)
        assert torch.allclose(norm, nn.utils.clip_grad_norm_(copies, max_norm))
        for copy, one in zip(copies, parameters, strict=True):
            assert (one.grad is None) == (copy.grad is None)
            if one.grad is not None and copy.grad is not None:
                assert torch.allclose(one.grad, copy.grad, rtol=1e-5)
                one.grad = None


def test_a_gradient_that_is_not_finite_is_found_by_clipping() -> None:
    functions, embedding = CpuFunctions(embeddings=True), nn.Embedding(50, 6)
    with functions:
        (embedding(torch.tensor(TOKENS)) * float("nan")).sum().backward()
    assert not functions.clip(embedding.parameters(), 1.0).isfinite()


@pytest.mark.parametrize("case", ["frozen", "left to autograd", "renormalized"])
def test_other_embeddings_are_those_of_torch(case: str) -> None:
    embedding = nn.Embedding(50, 6, max_norm=1.0 if case == "renormalized" else None)
    embedding.weight.requires_grad_(case != "frozen")
    with CpuFunctions(embeddings=case != "left to autograd"):
        vectors = embedding(torch.tensor(TOKENS))
    name = "NoneType" if case == "frozen" else "EmbeddingBackward0"
    assert type(vectors.grad_fn).__name__ == name


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_dropout_drops_its_share_and_keeps_the_mean(kind: torch.dtype) -> None:
    ones = torch.ones(1_000, 1_003, dtype=kind, requires_grad=True)
    with CpuFunctions(embeddings=False):
        dropped = nn.Dropout(0.1)(ones)
        dropped.sum().backward()
    share = (dropped == 0).double().mean().item()
    assert share == pytest.approx(0.1, abs=0.0015)  # five standard deviations
    assert dropped.double().mean().item() == pytest.approx(1.0, abs=0.005)
    assert ones.grad is not None
    assert torch.equal(ones.grad == 0, dropped == 0)
    rows, columns = ((dropped == 0).double().mean(dim=dim) for dim in (0, 1))
    for part in (rows, columns):
        assert 0.05 < part.min() < part.max() < 0.15


def test_dropout_follows_the_generator_of_torch() -> None:
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        with CpuFunctions(embeddings=False):
            found.append(functional.dropout(torch.ones(100), 0.5))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize("p", [0.0, 1e-9, 1.0])
def test_dropout_of_none_and_of_all_is_that_of_torch(p: float) -> None:
    with CpuFunctions(embeddings=False):
        dropped = functional.dropout(torch.ones(100), p)
        kept = functional.dropout(torch.ones(100), 0.5, training=False)
    assert dropped.tolist() == [float(p < 1)] * 100
    assert kept.tolist() == [1.0] * 100


@pytest.mark.parametrize("mask", ["none", "boolean", "numbers"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_is_that_of_torch(
    mask: str, scale: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_functions, "_dropout", lambda weights, _: weights)
    query, key, value = torch.randn(3, 2, 4, 5, 8)
    seen = torch.rand(2, 1, 5, 5) > 0.3
    seen[..., 0] = True
    given = {"none": None, "boolean": seen, "numbers": torch.where(seen, 0.0, -1e9)}[mask]
    torch_own = functional.scaled_dot_product_attention(query, key, value, given, scale=scale)
    with CpuFunctions(embeddings=False):
        ours = functional.scaled_dot_product_attention(
            query, key, value, given, dropout_p=0.1, scale=scale
        )
    assert torch.allclose(ours, torch_own, atol=1e-6)


def test_attention_drops_weights() -> None:
    query, key = torch.randn(2, 2, 4, 5, 8)
    with CpuFunctions(embeddings=False):
        found = [
            functional.scaled_dot_product_attention(query, key, key, dropout_p=0.5)
            for _ in range(2)
        ]
    assert not torch.allclose(found[0], found[1])
