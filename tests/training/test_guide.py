"""A guide masks what it finds nearer than the positive: against the library, counts, runs."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from test_train_pairs import WORDS, pairs, write
from training_cases import QUICK, interrupted_run, quick_runs, rows, weight_bytes, write_nli

from sbertkit import Contrastive, Encoder, InputError, TrainConfig, train_nli, train_pairs
from sbertkit.data.nli import NliPair
from sbertkit.training.data_forms import NLI, PAIRS, TrainingData
from sbertkit.training.examples import NO_TEXT, Examples, TextTable
from sbertkit.training.guide import Guide, guide_fingerprint
from sbertkit.training.run.siamese import Siamese

TRIPLETS = [
    (f"where is the {one}", f"{one} in the {two}", f"no {two} for a {one}")
    for one, two in itertools.pairwise((*WORDS, "end"))
]
NO_HEAD = torch.nn.Identity()


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    """Runs without curves; each test loads its own guide."""
    guide_fingerprint.cache_clear()
    with quick_runs():
        yield


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, of another family and without unit length."""
    folder = tiny_models.mpnet(tmp_path_factory.mktemp("guide") / "guide")
    return tiny_models.declare(folder)


def data_of(triplets: Any = TRIPLETS) -> TrainingData:
    return pairs(
        *((anchor, positive, 1.0) for anchor, positive, *_ in triplets),
        *((anchor, negative, 0.0) for anchor, _, *negatives in triplets for negative in negatives),
    )


def batch_of(objective: Contrastive, encoder: Encoder, triplets: Any = TRIPLETS) -> dict[str, Any]:
    """One batch of all examples, in which the vector of each text has its number."""
    table = TextTable(encoder)
    examples = objective.examples(data_of(triplets), table)
    every = list(range(len(examples)))
    texts = np.arange(len(table._numbers))
    made = objective.collate(examples, every, examples.texts, texts)
    strings = table.texts(texts.tolist())
    return {"columns": torch.from_numpy(examples.texts), "texts": strings, **made}


# --- masks


@pytest.mark.parametrize("triplets", [TRIPLETS, [one[:2] for one in TRIPLETS]], ids=["3", "2"])
def test_masks_and_loss_are_those_of_sentence_transformers(
    base: Path, guide: Path, plain: Any, triplets: Any
) -> None:
    """Ours is the mean of both directions, of which the library computes one."""
    from sentence_transformers.sentence_transformer.losses import GISTEmbedLoss

    encoder = Encoder.load(base, device="cpu", pooling="mean")
    objective = Contrastive(guide=str(guide))
    batch = batch_of(objective, encoder, triplets)
    vectors = torch.from_numpy(encoder.encode(batch["texts"])).requires_grad_()
    found = objective.loss(vectors, batch, NO_HEAD)

    sides = [[row[place] for row in triplets] for place in range(len(triplets[0]))]
    model = plain(base).eval()
    loss = GISTEmbedLoss(
        model,
        plain(guide),
        temperature=objective.temperature,
        contrast_anchors=False,
        contrast_positives=False,
    )

    def expected(*columns: list[str]) -> float:
        given = [model.preprocess(texts) for texts in columns]
        return float(loss(given, torch.zeros(0)).item())

    there, back = expected(*sides), expected(sides[1], sides[0])
    assert found.item() == pytest.approx((there + back) / 2, rel=1e-4)
    unguided = Contrastive()
    plain_batch = batch_of(unguided, encoder, triplets)
    assert unguided.loss(vectors, plain_batch, NO_HEAD).item() > found.item() + 0.01


def test_masks_are_those_of_the_formula(base: Path, guide: Path) -> None:
    encoder, own = Encoder.load(base, device="cpu"), Encoder.load(guide, device="cpu")
    batch = batch_of(Contrastive(guide=str(guide)), encoder)
    unit = own.encode(batch["texts"])
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    left_out = 0
    for row, (anchor, positive, _) in enumerate(batch["columns"].tolist()):
        near = unit[anchor] @ unit[positive]
        for place, text in enumerate(batch["candidates"].tolist()):
            kept = text == positive or unit[anchor] @ unit[text] <= near
            assert bool(batch["allowed"][row, place]) == kept
            left_out += not kept
        for place, text in enumerate(batch["anchors"].tolist()):
            kept = text == anchor or unit[text] @ unit[positive] <= near
            assert bool(batch["anchors_allowed"][row, place]) == kept
            left_out += not kept
    assert 0 < left_out < batch["allowed"].numel() + batch["anchors_allowed"].numel()


def test_other_positives_stay_masked_and_equal_texts_too(base: Path, guide: Path) -> None:
    data = pairs(("a", "p", 1.0), ("a", "q", 1.0), ("b", "a", 1.0), ("b", "n", 0.0))
    objective, plain = Contrastive(guide=str(guide)), Contrastive()
    made = []
    for one in (objective, plain):
        table = TextTable(Encoder.load(base, device="cpu"))
        examples = one.examples(data, table)
        every = list(range(len(examples)))
        made.append(one.collate(examples, every, examples.texts, np.arange(9)))
    for name in ("allowed", "anchors_allowed"):
        assert not bool((made[0][name] & ~made[1][name]).any())


def by_hand(texts: list[list[int]], vectors: Any) -> Examples:
    """Examples whose guide gives those vectors to the texts."""
    numbers = np.array(texts)
    places = np.arange(len(vectors))
    made = Guide(np.array(vectors, np.float32), places, places)
    positives = {anchor: {anchor, positive} for anchor, positive, *_ in texts}
    return Examples(numbers, np.zeros(len(texts)), numbers[:, 0], positives, guide=made)


def test_a_guide_that_leaves_no_negative_at_all_is_refused() -> None:
    texts = [[0, 1, NO_TEXT], [2, 3, 4]]
    turned = [[1, 0], [0, 1], [0, 1], [1, 0], [1, 0]]  # each anchor's negatives are nearest
    opposite = [[1, 0], [-1, 0], [1, 0], [-1, 0], [1, 0]]
    apart = [[1, 0], [1, 0], [-1, 0], [-1, 0], [1, 0]]
    objective = Contrastive()
    with pytest.raises(InputError, match="no negative in any of 1 batches"):
        objective.check_batches(by_hand([[0, 1], [2, 3]], turned[:4]), [[0, 1]])
    objective.check_batches(by_hand(texts, apart), [[0, 1]])
    objective.check_batches(by_hand(texts, opposite), [[0, 1]])  # cosines that are equal stay


# --- what the guide is asked


def encoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Kind and text of all that any encoder encodes from now on."""
    asked: list[tuple[str, str]] = []
    encode = Encoder.encode

    def noted(self: Encoder, texts: Any, *, kind: Any = "document", **more: Any) -> Any:
        asked.extend((kind, text) for text in texts)
        return encode(self, texts, kind=kind, **more)

    monkeypatch.setattr(Encoder, "encode", noted)
    return asked


@pytest.mark.parametrize("form", [NLI, PAIRS])
def test_each_text_is_encoded_once_and_anchors_as_queries(
    base: Path, guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Any
) -> None:
    asking = tiny_models.declare(
        tiny_models.mpnet(tmp_path / "asking"), prompts={"query": "q: ", "document": "d: "}
    )
    if form is NLI:
        data = TrainingData(NLI, [NliPair("a", "p", 0), NliPair("p", "a", 0), NliPair("a", "n", 2)])
    else:
        data = pairs(("a", "p", 1.0), ("p", "a", 1.0), ("a", "n", 0.0))
    objective = Contrastive()
    texts = TextTable(Encoder.load(base, device="cpu"))
    numbers = objective.examples(data, texts).texts
    asked = encoded(monkeypatch)
    Guide.of(str(guide), numbers, texts, queries=form.queries)
    assert sorted(asked) == [("document", one) for one in ("a", "n", "p")]
    asked.clear()
    found = Guide.of(str(asking), numbers, texts, queries=form.queries)
    as_query = [("query", one) for one in ("a", "p")] if form.queries else []
    assert sorted(asked) == [("document", one) for one in ("a", "n", "p")] + as_query
    own = Encoder.load(asking, device="cpu", normalize=True)
    a, p, n = texts.numbers(["a", "p", "n"])
    kind: Any = "query" if form.queries else "document"
    expected = own.encode(["a", "p"], kind=kind) @ own.encode(["a", "p", "n"]).T
    np.testing.assert_allclose(
        found.cosines(*map(np.array, ([a, p], [a, p, n]))), expected, atol=1e-5
    )


def test_an_encoder_with_prompts_leaves_the_guide_its_own(
    guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = {"query": "cat ", "document": "dog "}
    base = tiny_models.declare(tiny_models.bert(tmp_path / "base"), "Normalize", prompts=prompts)
    asked = encoded(monkeypatch)
    batch_of(Contrastive(guide=str(guide)), Encoder.load(base, device="cpu"))
    assert {text for _, text in asked} == {text for row in TRIPLETS for text in row}


# --- runs


@pytest.mark.parametrize("mini_batch", [None, 3])
def test_a_run_is_resumed_to_the_same_weights_with_the_same_guide_alone(
    base: Path, guide: Path, tmp_path: Path, mini_batch: int | None
) -> None:
    data = write(tmp_path / "pairs.jsonl")

    def run(out: str, path: Path | None = guide, **more: Any) -> Any:
        settings = TrainConfig(
            **{**QUICK, "batch_size": 8},
            learning_rate=1e-3,
            max_steps=5,
            checkpoint_steps=1,
            mini_batch=mini_batch,
            guard=False,
            **more,
        )
        objective = Contrastive(guide=None if path is None else str(path))
        return train_pairs(base, data, tmp_path / out, objective=objective, config=settings)

    result = run("whole")
    run("without", None)
    assert weight_bytes(tmp_path / "without") != weight_bytes(tmp_path / "whole")
    with interrupted_run(3):
        run("other")
    with pytest.raises(InputError, match='guide was "guide", is null'):
        run("other", None, resume=True)
    with pytest.raises(InputError, match="guide_fingerprint was"):
        run("other", base, resume=True)
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")
    card = (result.folder / "README.md").read_text()
    assert "| `guide` | `guide` |" in card
    assert str(guide) not in card
    assert len(result.record["settings"]["guide_fingerprint"]) > 30


def test_nli_is_trained_with_a_guide(base: Path, guide: Path, tmp_path: Path) -> None:
    data = write_nli(tmp_path / "pairs.jsonl", rows(8))
    made = {}
    for name, objective in (("plain", Contrastive()), ("guided", Contrastive(guide=str(guide)))):
        settings = TrainConfig(**QUICK, max_steps=3, guard=False)
        train_nli(base, data, tmp_path / name, objective=objective, config=settings)
        made[name] = weight_bytes(tmp_path / name)
    assert made["plain"] != made["guided"]


def test_vectors_truncated_in_training_have_the_same_masks(base: Path, guide: Path) -> None:
    encoder = Encoder.load(base, device="cpu", pooling="mean")
    objective = Contrastive(guide=str(guide))
    batch = batch_of(objective, encoder)
    vectors = torch.from_numpy(encoder.encode(batch["texts"]))
    model = Siamese(encoder.torch.network, objective, NO_HEAD, sizes=(32, 8))
    whole = model._loss(vectors, batch)
    halves = sum(objective.loss(vectors[:, :size], batch, NO_HEAD) for size in (32, 8))
    assert float(whole) == pytest.approx(float(halves), rel=1e-5)


def test_what_is_no_model_is_refused_and_nothing_is_written(base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.jsonl")
    objective = Contrastive(guide=str(tmp_path / "missing"))
    with pytest.raises(InputError, match="missing"):
        train_pairs(base, data, tmp_path / "out", objective=objective, config=TrainConfig(**QUICK))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_the_commands_take_it(run: Run, base: Path, guide: Path, tmp_path: Path) -> None:
    files = {
        "train-pairs": write(tmp_path / "pairs.jsonl"),
        "train-nli": write_nli(tmp_path / "nli.jsonl", rows(6)),
    }
    for command, data in files.items():
        out = tmp_path / command
        options = (
            "--base",
            base,
            "-o",
            out,
            "--max-steps",
            2,
            "--device",
            "cpu",
            "--batch-size",
            8,
        )
        ran = run(command, data, *options, "--guide", guide)
        assert ran.status == 0, ran.err
        assert "| `guide` | `guide` |" in (out / "README.md").read_text()
    ran = run("train-pairs", "x", *options, "--guide", guide, "--objective", "triplet")
    assert (ran.status, "--guide needs --objective contrastive" in ran.err) == (2, True)
