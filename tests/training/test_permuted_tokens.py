"""XLNet's objective: what is predicted, what sees what, and the loss of the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from docs_files import sentences

from sbertkit import Encoder, PermutedTokens
from sbertkit.training.pretraining.draws import Draws
from sbertkit.training.pretraining.heads import tied_head


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_models.xlnet(tmp_path / "model")


def batch_of(folder: Path, task: PermutedTokens, texts: list[str], epoch: int = 0) -> Any:
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    pieces = task.pieces(encoder, pack=False)
    return task.batch(pieces, pieces.read(texts), Draws(7, epoch))


def test_one_token_in_six_is_predicted_and_no_special_one(folder: Path) -> None:
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    task = PermutedTokens()
    pieces = task.pieces(encoder, pack=False)
    numbers = pieces.read(sentences())
    special = np.array(encoder.spec.tokenizer.hf.all_special_ids)
    total = chosen = 0
    for epoch in range(30):
        batch = task.batch(pieces, numbers, Draws(7, epoch))
        places = batch["mapping"].argmax(dim=2).flatten()[batch["predictions"]]
        rows = batch["predictions"] // batch["mapping"].shape[1]
        assert torch.equal(batch["input_ids"][rows, places], batch["targets"])
        assert not np.isin(batch["targets"].numpy(), special).any()
        chosen += len(batch["targets"])
        total += int(batch["mask"].sum()) - 2 * len(numbers)
    assert total > 80_000
    assert chosen / total == pytest.approx(1 / 6, abs=0.002)


def test_a_prediction_sees_what_precedes_it_in_the_order_and_nothing_else(folder: Path) -> None:
    task = PermutedTokens(one_in=3)
    batch = batch_of(folder, task, [sentences()[0], sentences()[100] + " and more"])
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def states(ids: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            found = model(
                input_ids=ids,
                attention_mask=batch["mask"],
                token_type_ids=batch.get("types"),
                perm_mask=batch["hidden"],
                target_mapping=batch["mapping"],
            )
        return found.last_hidden_state  # type: ignore[no-any-return]

    before = states(batch["input_ids"])
    for row in range(2):
        count = int(batch["mapping"][row].sum())
        order = batch["mapping"][row, :count].argmax(dim=1).tolist()
        assert count >= 4
        for place in batch["mask"][row].nonzero().flatten().tolist():
            ids = batch["input_ids"].clone()
            ids[row, place] = 40 if ids[row, place] != 40 else 41
            moved = (states(ids) - before)[row, :count].abs().amax(dim=1) > 1e-7
            visible = [place not in order or order.index(place) < rank for rank in range(count)]
            assert moved.tolist() == visible


def test_orders_differ_from_epoch_to_epoch(folder: Path) -> None:
    one, two, again = (
        batch_of(folder, PermutedTokens(), sentences()[:20], epoch) for epoch in (0, 1, 0)
    )
    assert torch.equal(one["hidden"], again["hidden"])
    assert not torch.equal(one["hidden"], two["hidden"])


def test_the_loss_is_that_of_the_library(folder: Path) -> None:
    torch.manual_seed(3)
    whole = transformers.XLNetLMHeadModel(transformers.AutoConfig.from_pretrained(folder)).eval()
    whole.lm_loss.bias.data.normal_()
    whole.save_pretrained(folder)
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    task = PermutedTokens()
    texts = ["two bakers eat bread", sentences()[7]]
    batch = batch_of(folder, task, texts)
    head = torch.nn.ModuleDict({"permutation-lm": tied_head(encoder)})
    found = task.token_loss(encoder.torch.network.eval(), batch, head)
    rows, most = batch["mapping"].shape[:2]
    labels = torch.full((rows * most,), -100)
    labels[batch["predictions"]] = batch["targets"]
    with torch.no_grad():
        expected = whole(
            input_ids=batch["input_ids"],
            attention_mask=batch["mask"],
            token_type_ids=batch.get("types"),
            perm_mask=batch["hidden"],
            target_mapping=batch["mapping"],
            labels=labels.view(rows, most),
        ).loss
    assert float(found.loss.detach()) == pytest.approx(float(expected), rel=1e-5)


def test_what_stands_for_a_query_is_trained(folder: Path) -> None:
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    task = PermutedTokens()
    pieces = task.pieces(encoder, pack=False)
    numbers = pieces.read(sentences()[:8])
    task.prepared(encoder, pieces)
    batch = task.batch(pieces, numbers, Draws(1, 0))
    found = task.token_loss(encoder.torch.network, batch, task.task_head(encoder))
    found.loss.backward()  # type: ignore[no-untyped-call]
    assert encoder.torch.transformer.model.mask_emb.grad.abs().sum() > 0
