"""Replaced-token detection: its generator, samples, losses and heads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from docs_files import sentences
from torch.nn import functional

from sbertkit import Encoder, ReplacedTokens
from sbertkit.training.pretraining.draws import Draws
from sbertkit.training.pretraining.generator import Generator, detector, sampled
from sbertkit.training.pretraining.tasks.rtd import DETECTOR, GENERATOR

DRAWS = Draws(7, 0)


@pytest.fixture
def encoder(tmp_path: Path) -> Encoder:
    folder = tiny_models.bert(tmp_path / "model", initializer_range=0.05)
    return Encoder.load(folder, pooling="mean", device="cpu")


def ready(encoder: Encoder, count: int = 60) -> tuple[ReplacedTokens, Any, dict[str, torch.Tensor]]:
    """The task, its pieces and a batch of all of them."""
    pieces = ReplacedTokens().pieces(encoder, pack=False)
    numbers = pieces.read(sentences()[:count])
    prepared: Any = ReplacedTokens().prepared(encoder, pieces)
    return prepared, pieces, prepared.batch(pieces, numbers, DRAWS)


def test_samples_follow_the_distribution_of_the_scores() -> None:
    torch.manual_seed(1)
    scores = torch.tensor([[0.0, 1.0, 2.0, -3.0]]).expand(40_000, 4)
    shares = np.bincount(sampled(scores).numpy(), minlength=4) / len(scores)
    weights = np.exp([0.0, 1.0, 2.0, -3.0])
    assert shares == pytest.approx(weights / weights.sum(), abs=0.01)


def test_of_the_chosen_tokens_the_generator_reads_85_percent_as_the_mask(encoder: Encoder) -> None:
    task, pieces, _ = ready(encoder, 192)
    total = chosen = masked = kept = 0
    for epoch in range(30):
        batch = task.batch(pieces, np.arange(len(pieces.tokens)), Draws(7, epoch))
        read = batch["input_ids"].flatten()[batch["places"]]
        assert task.vocabulary is not None
        chosen += len(read)
        masked += int((read == task.vocabulary.mask).sum())
        kept += int((read == batch["targets"]).sum())
        total += int(batch["mask"].sum()) - 2 * len(batch["mask"])
    assert total > 80_000
    assert chosen / total == pytest.approx(0.15, abs=0.002)
    assert masked / chosen == pytest.approx(0.85, abs=0.005)
    assert masked + kept == chosen


def test_the_loss_is_that_of_the_formula(encoder: Encoder) -> None:
    task, _, batch = ready(encoder)
    torch.manual_seed(2)
    head: Any = task.task_head(encoder).eval()
    network = encoder.torch.network.eval()
    torch.manual_seed(5)
    found = task.token_loss(network, batch, head)
    embedding = network.transformer.get_input_embeddings().weight  # type: ignore[operator]
    with torch.no_grad():
        scores = head[GENERATOR](batch["input_ids"], batch["mask"], batch["places"], embedding)
        generated = functional.cross_entropy(scores, batch["targets"])
        torch.manual_seed(5)
        tokens = sampled(scores)
        read, labels = batch["input_ids"].clone(), torch.zeros(batch["mask"].shape)
        width = read.shape[1]
        for place, token, own in zip(batch["places"], tokens, batch["targets"], strict=True):
            read[place // width, place % width] = token
            labels[place // width, place % width] = float(token != own)
        states = network.transformer(read, attention_mask=batch["mask"])[0]  # type: ignore[operator]
        detected = head[DETECTOR](states).double().numpy()
    real = batch["mask"].bool().numpy()
    p = 1 / (1 + np.exp(-detected[real]))
    y = labels.numpy()[real]
    assert 0 < y.mean() < 0.16
    detection = -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()
    assert float(found.loss.detach()) == pytest.approx(float(generated) + 50 * detection, rel=1e-4)
    assert [part.name for part in found.parts] == ["detector", "generator"]
    assert found.total == real.sum()
    assert int(found.correct) == ((p > 0.5) == (y > 0)).sum()


def test_a_sample_that_is_the_token_itself_is_not_replaced(encoder: Encoder) -> None:
    task, _, batch = ready(encoder)
    head: Any = task.task_head(encoder)
    with torch.no_grad():  # a generator that is sure of one token, which is then every target
        head[GENERATOR].head.bias[17] = 1e4
        head[DETECTOR].classifier.weight.zero_()
        head[DETECTOR].classifier.bias.fill_(-1.0)
    batch["targets"] = torch.full_like(batch["targets"], 17)
    found = task.token_loss(encoder.torch.network.eval(), batch, head)
    assert int(found.correct) == found.total


def test_the_generator_is_a_quarter_or_a_third_and_shares_the_embeddings(tmp_path: Path) -> None:
    sizes = {"hidden_size": 96, "num_attention_heads": 12}
    folder = tiny_models.bert(tmp_path / "model", **sizes)
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    for divisor, hidden in ((4, 24), (3, 32)):
        made = Generator(encoder, divisor)
        assert made.transformer.config.hidden_size == hidden
        assert made.transformer.config.num_hidden_layers == 2
    vocabulary = len(encoder.spec.tokenizer)
    tables = [name for name, one in made.named_parameters() if one.shape[:1] == (vocabulary,)]
    assert tables == ["head.bias"]


def test_both_losses_move_the_shared_embeddings_and_none_goes_through_the_sample(
    encoder: Encoder,
) -> None:
    task, _, batch = ready(encoder)
    head, network = task.task_head(encoder), encoder.torch.network
    encoder.torch.make_trainable()
    embedding: Any = network.transformer.get_input_embeddings().weight  # type: ignore[operator]
    parts = {part.name: part.loss for part in task.token_loss(network, batch, head).parts}
    for name, own, other in ((DETECTOR, DETECTOR, GENERATOR), (GENERATOR, GENERATOR, DETECTOR)):
        tensors = [embedding, *head[own].parameters(), *head[other].parameters()]
        found = torch.autograd.grad(parts[name], tensors, allow_unused=True, retain_graph=True)
        assert found[0].abs().sum() > 0
        count = len(list(head[own].parameters()))
        assert any(one is not None and one.abs().sum() > 0 for one in found[1 : 1 + count])
        assert all(one is None for one in found[1 + count :])


def test_the_discriminator_of_an_electra_gives_the_scores_of_the_library(tmp_path: Path) -> None:
    folder = tiny_models.ARCHITECTURES["electra"](tmp_path / "model")
    whole = transformers.ElectraForPreTraining.from_pretrained(folder).eval()
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        expected = whole(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        states = whole.electra(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
        found = detector(encoder)(states)
    assert torch.allclose(found, expected, atol=1e-5)
