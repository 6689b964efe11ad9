"""Objectives against formulas written out by hand, and against sentence-transformers."""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sbertkit.data.nli import NliPair
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.batches import Collator
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import NLI, TrainingData
from sbertkit.training.examples import NO_TEXT, TextTable
from sbertkit.training.objectives import (
    OBJECTIVES,
    Contrastive,
    Objective,
    Several,
    Softmax,
    find_objective,
    objectives_of,
)
from sbertkit.training.objectives.softmax import FEATURES
from sbertkit.training.run.siamese import Siamese

ENTAILMENT, NEUTRAL, CONTRADICTION = range(3)
DIM = 5
NLI_OBJECTIVES = objectives_of(NLI)
NO_HEAD = torch.nn.Identity()
Float64 = npt.NDArray[np.float64]
Labeled = tuple[str, str, int]
Triplet = tuple[str, str, str | None]


def nli(*pairs: Labeled) -> TrainingData:
    return TrainingData(NLI, tuple(NliPair(*pair) for pair in pairs))


class Words:
    """A table of texts, and what number each got."""

    def __init__(self) -> None:
        self.table = TextTable(None)  # type: ignore[arg-type]  # nothing is tokenized

    def of(self, number: int) -> str | None:
        names: list[Any] = list(self.table._numbers)
        return None if number == NO_TEXT else names[number]


def triplets(*pairs: Labeled) -> list[Triplet]:
    words = Words()
    examples = Contrastive(0.05).examples(nli(*pairs), words.table)
    return [tuple(words.of(text) for text in row) for row in examples.texts]  # type: ignore[misc]


# --- softmax


def softmax_by_hand(
    weight: Float64, bias: Float64, u: Float64, v: Float64, features: Sequence[str]
) -> Float64:
    """Log-probabilities of the classes, pair by pair."""
    rows = []
    for left, right in zip(u, v, strict=True):
        seen: list[float] = []
        for name in features:
            for a, b in zip(left, right, strict=True):
                seen.append({"u": a, "v": b, "abs_diff": abs(a - b), "product": a * b}[name])
        scores = [math.fsum(w * x for w, x in zip(line, seen, strict=True)) for line in weight]
        scores = [score + b for score, b in zip(scores, bias, strict=True)]
        total = math.log(math.fsum(math.exp(score) for score in scores))
        rows.append([score - total for score in scores])
    return np.array(rows)


ORDERS = [order for size in range(1, 5) for order in itertools.permutations(FEATURES, size)]


@pytest.mark.parametrize("features", ORDERS, ids=",".join)
def test_softmax_is_its_formula_for_every_choice_and_order_of_features(
    features: tuple[str, ...],
) -> None:
    torch.manual_seed(4)
    objective = Softmax(features)
    head = objective.make_head(DIM)
    vectors = torch.randn(6, DIM)
    columns = torch.tensor([[0, 1], [2, 1], [0, 0], [5, 3], [4, 0]])
    targets = torch.tensor([0, 2, 1, 1, 0])
    loss = objective.loss(vectors, {"columns": columns, "targets": targets}, head)
    numbers = vectors.double().numpy()
    expected = softmax_by_hand(
        head.weight.detach().double().numpy(),
        head.bias.detach().double().numpy(),
        numbers[columns[:, 0]],
        numbers[columns[:, 1]],
        features,
    )
    assert loss.item() == pytest.approx(-expected[np.arange(5), targets].mean(), rel=1e-5)
    logits = objective.logits(vectors[columns[:, 0]], vectors[columns[:, 1]], head)
    np.testing.assert_allclose(logits.log_softmax(1).detach(), expected, atol=1e-5)


def test_the_gradient_of_softmax_is_that_of_finite_differences() -> None:
    torch.manual_seed(4)
    objective = Softmax(FEATURES)
    head = objective.make_head(3).double()
    vectors = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    batch = {"columns": torch.tensor([[0, 1], [2, 1], [0, 3]]), "targets": torch.tensor([0, 2, 1])}
    assert torch.autograd.gradcheck(lambda given: objective.loss(given, batch, head), (vectors,))
    objective.loss(vectors, batch, head).backward()
    for parameter in head.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_softmax_has_a_row_for_each_pair_repeats_and_equal_sides_too() -> None:
    words = Words()
    pairs = [("a", "b", 2), ("a", "b", 2), ("a", "b", 0), ("c", "a", 1), ("c", "c", 0)]
    examples = Softmax(("u",)).examples(nli(*pairs), words.table)
    assert [[words.of(text) for text in row] for row in examples.texts] == [
        [premise, hypothesis] for premise, hypothesis, _ in pairs
    ]
    assert examples.targets.tolist() == [2, 2, 0, 1, 0]
    assert examples.anchors.tolist() == examples.texts[:, 0].tolist()


def test_softmax_gives_a_batch_the_labels_of_its_rows() -> None:
    objective = Softmax(("u",))
    examples = objective.examples(nli(("a", "b", 2), ("c", "d", 0), ("a", "d", 1)), Words().table)
    batch = objective.collate(examples, [2, 0], examples.texts[[2, 0]], np.arange(4))
    assert batch["targets"].tolist() == [1, 2]
    assert batch["targets"].dtype == torch.int64


@pytest.mark.parametrize("name", NLI_OBJECTIVES)
def test_data_without_a_pair_is_refused(name: str) -> None:
    objective = find_objective(name, NLI)
    with pytest.raises(InputError, match="found none"):
        objective.examples(nli(), Words().table)


# --- contrastive: which examples


def test_a_premise_with_entailment_and_contradiction_is_a_triplet() -> None:
    assert triplets(("a", "b", 0), ("a", "c", 2), ("a", "n", 1)) == [("a", "b", "c")]


def test_contradictions_are_dealt_out_in_turn() -> None:
    pairs = [("a", f"p{place}", 0) for place in range(5)] + [("a", "n0", 2), ("a", "n1", 2)]
    negatives = ["n0", "n1", "n0", "n1", "n0"]
    assert triplets(*pairs) == [("a", f"p{n}", negative) for n, negative in enumerate(negatives)]


def test_an_entailment_without_contradiction_has_no_hard_negative() -> None:
    pairs = [("a", "b", 0), ("c", "d", 0), ("c", "e", 2), ("a", "x", 1)]
    assert triplets(*pairs) == [("a", "b", None), ("c", "d", "e")]


def test_repeats_come_once() -> None:
    pairs = [("a", "b", 0), ("a", "b", 0), ("a", "c", 2), ("a", "c", 2), ("a", "d", 2)]
    assert triplets(*pairs, ("a", "e", 0)) == [("a", "b", "c"), ("a", "e", "d")]


def test_a_hypothesis_equal_to_its_premise_is_no_example() -> None:
    assert triplets(("a", "a", 0), ("a", "b", 0), ("a", "a", 2), ("a", "c", 2)) == [("a", "b", "c")]


def test_a_pair_with_both_labels_is_an_entailment_and_no_hard_negative() -> None:
    pairs = [("a", "b", 2), ("a", "b", 0), ("a", "c", 2), ("d", "e", 0), ("d", "e", 2)]
    assert triplets(*pairs) == [("a", "b", "c"), ("d", "e", None)]


texts = st.sampled_from("abcdefgh")
labeled = st.lists(st.tuples(texts, texts, st.integers(0, 2)), min_size=1, max_size=40)


@settings(max_examples=100)
@given(labeled)
def test_triplets_are_the_entailments_with_contradictions_of_their_premise(
    pairs: list[Labeled],
) -> None:
    entailed = {(a, b) for a, b, label in pairs if label == ENTAILMENT and a != b}
    usable = {(a, b) for a, b, label in pairs if label == CONTRADICTION and a != b} - entailed
    premises = {premise for premise, _ in entailed}
    if not premises:
        with pytest.raises(InputError, match="found none"):
            triplets(*pairs)
        return
    found = triplets(*pairs)
    assert len(found) == len(entailed)
    assert {(anchor, positive) for anchor, positive, _ in found} == entailed
    for premise in {anchor for anchor, _, _ in found}:
        given_negatives = [negative for anchor, _, negative in found if anchor == premise]
        own = {b for a, b in usable if a == premise}
        if not own:
            assert given_negatives == [None] * len(given_negatives)
            continue
        assert set(given_negatives) <= own
        uses = [given_negatives.count(negative) for negative in own]
        assert max(uses) - min(uses) <= 1


@pytest.mark.parametrize(
    "pairs",
    [[("a", "b", 1), ("a", "c", 2)], [("a", "a", 0)], [("a", "b", 2)]],
)
def test_data_without_an_entailment_is_refused(pairs: list[Labeled]) -> None:
    with pytest.raises(InputError, match=r"needs pairs labeled entailment .* found none"):
        triplets(*pairs)


def batches_checked(pairs: Sequence[Labeled], *batches: Sequence[int]) -> None:
    """Checks batches of the rows of those pairs; by default one of all rows."""
    objective = Contrastive(0.1)
    examples = objective.examples(nli(*pairs), Words().table)
    objective.check_batches(examples, batches or [range(len(examples))])


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b", 0)],
        [("a", "b", 0), ("a", "b", 0), ("a", "b", 2), ("a", "c", 1), ("d", "e", 2)],
        [("a", "b", 0), ("a", "c", 0)],  # of one premise: neither is told from the other
        [("a", "p", 0), ("b", "p", 0), ("c", "p", 0)],  # one hypothesis follows from all
        [("a", "b", 0), ("b", "a", 0)],
        [(premise, hypothesis, 0) for premise in "abc" for hypothesis in "xyz"],
    ],
)
def test_data_with_nothing_to_tell_an_entailment_from_is_refused(pairs: list[Labeled]) -> None:
    with pytest.raises(InputError, match=r"no negative in any of 1 batches .*batch_size"):
        batches_checked(pairs)


def test_batches_of_one_example_need_contradictions(caplog: pytest.LogCaptureFixture) -> None:
    pairs = [("a", "b", 0), ("c", "d", 0), ("e", "f", 0)]
    with pytest.raises(InputError, match="no negative in any of 3 batches"):
        batches_checked(pairs, [0], [1], [2])
    caplog.clear()
    batches_checked([*pairs, *((anchor, "n", 2) for anchor in "ace")], [0], [1], [2])
    assert not caplog.messages


def test_batches_without_a_negative_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    pairs = [("a", "p", 0), ("b", "p", 0), ("c", "q", 0), ("d", "r", 0), ("d", "s", 2)]
    batches_checked(pairs, [0, 1], [2], [3], [1, 2])
    (warning,) = caplog.messages
    assert warning.startswith("2 of 4 batches have no negative, and nothing is learned from them")


@settings(max_examples=100)
@given(labeled, st.integers(1, 6))
def test_a_batch_has_a_negative_where_its_loss_moves_with_the_vectors(
    pairs: list[Labeled], size: int
) -> None:
    objective, words = Contrastive(0.5), Words()
    try:
        examples = objective.examples(nli(*pairs), words.table)
    except InputError:
        return
    chosen = list(range(len(examples)))[:size]
    texts = examples.texts[chosen]
    distinct = np.unique(texts[texts != NO_TEXT])
    columns = np.where(texts == NO_TEXT, NO_TEXT, np.searchsorted(distinct, texts))
    batch = {
        "columns": torch.from_numpy(columns),
        **objective.collate(examples, chosen, columns, distinct),
    }
    vectors = torch.randn(len(distinct), DIM, dtype=torch.float64)
    moves = objective.loss(vectors, batch, NO_HEAD).item() > 0
    try:
        objective.check_batches(examples, [chosen])
    except InputError:
        assert not moves
    else:
        assert moves


@pytest.mark.parametrize(
    ("pairs", "left_out"),
    [
        ([("a", "b", 0), ("a", "b", 0), ("a", "b", 0)], {"that repeat earlier ones": 2}),
        ([("a", "b", 0), ("a", "c", 2), ("a", "c", 2)], {"that repeat earlier ones": 1}),
        ([("a", "b", 0), ("c", "c", 0), ("d", "d", 2)], {"of a text with itself": 2}),
        (
            [("a", "b", 0), ("a", "b", 2), ("x", "y", 2)],
            {"labeled contradiction whose pair is labeled entailment too": 1},
        ),
        ([("a", "b", 0), ("a", "n", 1), ("a", "n", 1), ("n", "n", 1)], {}),
    ],
)
def test_rows_left_out_are_counted_by_their_reason(
    pairs: list[Labeled], left_out: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    examples = Contrastive(0.1).examples(nli(*pairs), Words().table)
    assert examples.left_out == left_out
    said = [text for text in caplog.messages if "leaves out" in text]
    expected = [f"{count} {reason}" for reason, count in left_out.items()]
    assert [text.split(": ")[1] for text in said] == expected
    assert Softmax(("u",)).examples(nli(*pairs), Words().table).left_out == {}


def test_one_entailment_with_a_contradiction_will_do() -> None:
    assert triplets(("a", "b", 0), ("a", "c", 2)) == [("a", "b", "c")]


def test_data_without_any_hard_negative_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert triplets(("a", "b", 0), ("c", "d", 0), ("e", "f", 2)) == [
        ("a", "b", None),
        ("c", "d", None),
    ]
    (warning,) = caplog.messages
    assert "in-batch negatives alone" in warning
    caplog.clear()
    triplets(("a", "b", 0), ("c", "d", 0), ("a", "f", 2))
    assert not caplog.messages


# --- contrastive: the loss


def cosine(a: Float64, b: Float64) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def contrastive_by_hand(
    pairs: Sequence[Labeled],
    rows: Sequence[Triplet],
    vectors: Mapping[str, Float64],
    temperature: float,
) -> float:
    """The docstring's formula in plain loops over texts."""
    entails = {(a, b) for a, b, label in pairs if label == ENTAILMENT}

    def term(a: str, b: str) -> float:
        return math.exp(cosine(vectors[a], vectors[b]) / temperature)

    candidates = {text for _, positive, negative in rows for text in (positive, negative) if text}
    anchors = {anchor for anchor, _, _ in rows}
    losses = []
    for anchor, positive, _ in rows:
        right = term(anchor, positive)
        total = right
        for text in candidates - {positive}:
            if text != anchor and (anchor, text) not in entails:
                total += term(anchor, text)
        losses.append(-math.log(right / total))
        total = right
        for text in anchors - {anchor}:
            if text != positive and (text, positive) not in entails:
                total += term(text, positive)
        losses.append(-math.log(right / total))
    return math.fsum(losses) / len(losses)


def contrastive_loss(
    pairs: Sequence[Labeled],
    pick: Sequence[int] | None,
    vectors: Mapping[str, Float64],
    temperature: float = 0.3,
) -> tuple[float, list[Triplet]]:
    """Our loss of some rows of the data, through `collate` as the collator calls it."""
    words = Words()
    objective = Contrastive(temperature)
    examples = objective.examples(nli(*pairs), words.table)
    rows = list(range(len(examples))) if pick is None else [row % len(examples) for row in pick]
    chosen = examples.texts[rows]
    distinct = np.unique(chosen[chosen != NO_TEXT])[::-1].copy()  # any order will do
    columns = np.array(
        [[NO_TEXT if t == NO_TEXT else distinct.tolist().index(t) for t in row] for row in chosen]
    )
    made = objective.collate(examples, rows, columns, distinct)
    matrix = np.array([vectors[str(words.of(text))] for text in distinct])
    batch = {"columns": torch.from_numpy(columns), **made}
    loss = objective.loss(torch.from_numpy(matrix).float(), batch, NO_HEAD)
    taken: list[Triplet] = [
        tuple(words.of(text) for text in row)  # type: ignore[misc]
        for row in chosen
    ]
    return loss.item(), taken


def random_vectors(names: str, seed: int = 0) -> dict[str, Float64]:
    drawn = np.random.default_rng(seed).normal(size=(len(names), DIM))
    return {name: 3 * row for name, row in zip(names, drawn, strict=True)}


@settings(max_examples=150)
@given(
    pairs=labeled,
    pick=st.lists(st.integers(0, 100), min_size=1, max_size=12),
    seed=st.integers(0, 100),
    temperature=st.sampled_from([0.05, 0.3, 2.0]),
)
def test_contrastive_is_its_formula_for_any_data_and_any_batch(
    pairs: list[Labeled], pick: list[int], seed: int, temperature: float
) -> None:
    vectors = random_vectors("abcdefgh", seed)
    try:
        loss, rows = contrastive_loss(pairs, pick, vectors, temperature)
    except InputError:
        assume(False)
    expected = contrastive_by_hand(pairs, rows, vectors, temperature)
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-5)


CASES: dict[str, list[Labeled]] = {
    "distinct texts": [("a", "b", 0), ("a", "c", 2), ("d", "e", 0), ("d", "f", 2)],
    "several entailments of one anchor": [
        *(("a", positive, 0) for positive in "bcd"),
        *(("a", "e", 2), ("f", "g", 0)),
    ],
    "a hard negative that another anchor entails": [
        *(("a", "b", 0), ("a", "c", 2), ("d", "c", 0), ("d", "e", 2)),
    ],
    "an entailment elsewhere in the data that is a hard negative here": [
        *(("a", "b", 0), ("d", "e", 0), ("d", "c", 2), ("a", "c", 0), ("a", "g", 2)),
    ],
    "a hypothesis that is a premise": [
        *(("a", "b", 0), ("b", "c", 0), ("b", "a", 2), ("c", "d", 0), ("a", "c", 2)),
    ],
    "two premises that entail one text": [("a", "b", 0), ("c", "b", 0), ("a", "d", 2)],
    "a hard negative of two premises": [
        *(("a", "b", 0), ("a", "h", 2), ("c", "d", 0), ("c", "h", 2)),
    ],
    "both labels for a pair": [
        *(("a", "b", 0), ("a", "b", 2), ("a", "c", 2), ("d", "e", 0), ("d", "b", 2)),
    ],
    "no hard negative in some rows": [("a", "b", 0), ("c", "d", 0), ("c", "e", 2)],
    "no hard negative at all": [("a", "b", 0), ("c", "d", 0), ("e", "f", 0)],
}


@pytest.mark.parametrize("name", CASES)
def test_contrastive_is_its_formula_in_every_difficult_case(name: str) -> None:
    vectors = random_vectors("abcdefgh")
    loss, rows = contrastive_loss(CASES[name], None, vectors)
    assert loss == pytest.approx(contrastive_by_hand(CASES[name], rows, vectors, 0.3), rel=1e-5)


def test_a_batch_of_one_worked_out_by_hand() -> None:
    vectors = {
        name: np.array(xy) for name, xy in {"a": (2.0, 0), "b": (0.6, 0.8), "c": (0, 9.0)}.items()
    }
    loss, _ = contrastive_loss([("a", "b", 0), ("a", "c", 2)], None, vectors, 0.5)
    forth = -math.log(math.exp(0.6 / 0.5) / (math.exp(0.6 / 0.5) + math.exp(0 / 0.5)))
    assert loss == pytest.approx(forth / 2, rel=1e-6)  # the other way there is nothing to choose


def test_entailments_of_one_anchor_do_not_push_each_other_away() -> None:
    pairs = [("a", "b", 0), ("a", "c", 0), ("d", "e", 0)]
    vectors = random_vectors("abcde")
    alone, _ = contrastive_loss(pairs, [0, 2], vectors)
    moved = {**vectors, "c": vectors["a"] - 2 * vectors["b"]}
    loss, rows = contrastive_loss(pairs, None, vectors)
    by_hand = contrastive_by_hand(pairs, rows, vectors, 0.3)
    assert loss == pytest.approx(by_hand, rel=1e-5)
    assert contrastive_loss(pairs, [0, 2], moved)[0] == pytest.approx(alone)
    words = Words()
    objective = Contrastive(0.3)
    examples = objective.examples(nli(*pairs), words.table)
    columns = np.array([[0, 1, NO_TEXT], [0, 2, NO_TEXT], [3, 4, NO_TEXT]])
    numbers = np.array(words.table.numbers("abcde"))
    made = objective.collate(examples, [0, 1, 2], columns, numbers)
    assert made["candidates"].tolist() == [1, 2, 4]
    assert made["allowed"].tolist() == [
        [True, False, True],
        [False, True, True],
        [True, True, True],
    ]
    assert made["right"].tolist() == [0, 1, 2]
    assert made["anchors"].tolist() == [0, 3]
    assert made["anchors_allowed"].tolist() == [[True, True], [True, True], [True, True]]
    assert made["right_anchors"].tolist() == [0, 0, 1]


def test_the_length_of_vectors_does_not_matter() -> None:
    vectors = random_vectors("abcdefgh")
    scaled = {name: (place + 0.1) * row for place, (name, row) in enumerate(vectors.items())}
    pairs = CASES["a hypothesis that is a premise"]
    loss = contrastive_loss(pairs, None, vectors)[0]
    assert contrastive_loss(pairs, None, scaled)[0] == pytest.approx(loss, rel=1e-5)


def test_a_zero_vector_has_cosine_zero_and_a_finite_gradient() -> None:
    objective = Contrastive(0.05)
    words = Words()
    examples = objective.examples(nli(*CASES["distinct texts"]), words.table)
    numbers = np.arange(6)
    made = objective.collate(examples, [0, 1], examples.texts, numbers)
    vectors = torch.randn(6, DIM)
    vectors[1] = 0
    vectors.requires_grad_()
    batch = {"columns": torch.from_numpy(examples.texts), **made}
    loss = objective.loss(vectors, batch, NO_HEAD)
    loss.backward()
    assert math.isfinite(loss.item())
    assert vectors.grad is not None
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("hard", [True, False])
def test_contrastive_equals_that_of_sentence_transformers(hard: bool) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    names = "abcdefghijkl"
    rows = [tuple(names[3 * n : 3 * n + 3]) for n in range(4)]
    pairs = [(a, p, ENTAILMENT) for a, p, _ in rows]
    pairs += [(a, n, CONTRADICTION) for a, _, n in rows if hard]
    vectors = random_vectors(names)
    loss, taken = contrastive_loss(pairs, None, vectors, 0.05)
    assert [row[:2] for row in taken] == [row[:2] for row in rows]
    columns = list(zip(*rows, strict=True))[: 3 if hard else 2]
    theirs = [torch.from_numpy(np.array([vectors[text] for text in col])) for col in columns]

    def published(*directions: Any) -> float:
        published_loss = MultipleNegativesRankingLoss(
            torch.nn.Identity(),  # type: ignore[arg-type]  # vectors are given
            scale=20.0,
            directions=directions,
            partition_mode="per_direction",
        )
        return float(published_loss.compute_loss_from_embeddings(theirs, torch.empty(0)))

    assert loss == pytest.approx(published("query_to_doc", "doc_to_query"), rel=1e-5)
    assert loss != pytest.approx(published("query_to_doc"), rel=1e-3)


# --- on a network


@pytest.fixture
def saved(tiny_encoder: Encoder, tmp_path: Path) -> Path:
    tiny_encoder.save(tmp_path / "saved")
    return tmp_path / "saved"


PAIRS: list[Labeled] = [
    ("Two bakers argue about salt", "Bakers talk", 0),
    ("Two bakers argue about salt", "Two bakers sleep", 2),
    ("A heron stands in the shallow water.", "A bird is in the water", 0),
    ("A heron stands in the shallow water.", "The heron flies over the lake, far away", 2),
    ("x", "y", 1),
]


def siamese_of(encoder: Encoder, name: str) -> Siamese:
    encoder.torch.make_trainable()
    objective = find_objective(name, NLI)
    return Siamese(encoder.torch.network, objective, objective.make_head(encoder.dim))


def batch_of(encoder: Encoder, objective: Any) -> dict[str, Any]:
    table = TextTable(encoder)
    examples = objective.examples(nli(*PAIRS), table)
    table.tokenize()
    return Collator(examples, table, encoder.spec.collator, objective)(list(range(len(examples))))


def test_softmax_and_its_gradient_equal_those_of_sentence_transformers(
    saved: Path, plain: Callable[[Path], Any]
) -> None:
    from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

    encoder = Encoder.load(saved, device="cpu")
    objective = Softmax(("u", "v", "abs_diff"))
    head = objective.make_head(encoder.dim)
    model = plain(saved)
    published = SoftmaxLoss(model, encoder.dim, 3)
    published.classifier.load_state_dict(head.state_dict())
    features = [model.preprocess([pair[side] for pair in PAIRS]) for side in (0, 1)]
    model.eval()
    expected = published(features, torch.tensor([pair[2] for pair in PAIRS]))
    encoder.torch.make_trainable()
    loss = Siamese(encoder.torch.network.eval(), objective, head)(batch_of(encoder, objective))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    expected.backward()
    loss.backward()
    assert head.weight.grad is not None
    np.testing.assert_allclose(head.weight.grad, published.classifier.weight.grad, atol=1e-6)
    theirs = {name: p.grad for name, p in model[0].model.named_parameters() if p.grad is not None}
    ours = dict(encoder.torch.network.transformer.named_parameters())
    assert len(theirs) > 10
    for name, gradient in theirs.items():
        if not name.startswith("pooler"):
            np.testing.assert_allclose(ours[name].grad, gradient, atol=2e-5)


@pytest.mark.parametrize("name", NLI_OBJECTIVES)
def test_gradients_reach_all_that_decides_a_vector_and_nothing_else(saved: Path, name: str) -> None:
    encoder = Encoder.load(saved, device="cpu")
    model = siamese_of(encoder, name)
    model(batch_of(encoder, model.objective)).backward()
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    reached = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    words = "network.transformer.embeddings.word_embeddings.weight"
    # a bias of the keys moves all scores of a query alike, so that its gradient is only rounding
    assert {n for n in trained - reached if "key.bias" not in n} == set()
    assert words in reached
    assert not any("pooler" in n for n in trained)
    head = {n for n in trained if n.startswith("head")}
    assert len(head) == (2 if name == "softmax" else 0)


@pytest.mark.parametrize("name", NLI_OBJECTIVES)
def test_a_step_against_the_gradient_lowers_the_loss(saved: Path, name: str) -> None:
    encoder = Encoder.load(saved, device="cpu")
    torch.manual_seed(1)
    model = siamese_of(encoder, name).eval()
    batch = batch_of(encoder, model.objective)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    before = model(batch)
    before.backward()
    optimizer.step()
    with torch.inference_mode():
        assert model(batch) < before


def test_the_loss_is_computed_in_float32_under_autocast(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = Encoder.load(saved, device="cpu")
    model = siamese_of(encoder, "contrastive").eval()
    given_types = []
    loss = Contrastive.loss

    def noted(self: Contrastive, vectors: torch.Tensor, *more: Any) -> torch.Tensor:
        given_types.append(vectors.dtype)
        return loss(self, vectors, *more)

    monkeypatch.setattr(Contrastive, "loss", noted)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        found = model(batch_of(encoder, model.objective))
    assert [found.dtype, *given_types] == [torch.float32, torch.float32]


def test_an_unknown_objective_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match="objective must be one of contrastive, softmax, not 'mse'"
    ):
        find_objective("mse", NLI)


def test_an_objective_is_found_by_its_name_or_taken_as_it_is() -> None:
    assert find_objective("softmax", NLI) == Softmax()
    assert find_objective("contrastive", NLI) == Contrastive(temperature=0.05)
    mine = Softmax(features=("product", "u"))
    assert find_objective(mine, NLI) is mine
    assert mine.make_head(7).in_features == 14
    assert {name: kind.name for name, kind in OBJECTIVES.items()} == {n: n for n in OBJECTIVES}


@pytest.mark.parametrize("name", NLI_OBJECTIVES)
def test_the_options_of_an_objective_are_json_and_no_settings_of_a_run(name: str) -> None:
    options = find_objective(name, NLI).options
    assert NLI_OBJECTIVES[name](**json.loads(json.dumps(options))) == find_objective(name, NLI)
    assert not options.keys() & TrainConfig().identity().keys()


@pytest.mark.parametrize("kind", OBJECTIVES.values())
def test_the_card_has_formula_and_source_of_the_docstring(kind: type[Objective]) -> None:
    text = " ".join(str(kind.__doc__).split())
    assert f"``{kind.formula}``" in text
    assert f"Source: {kind.source}" in text


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != Several.name])
def test_the_docs_name_every_objective(name: str) -> None:
    folder = Path(__file__).resolve().parents[2] / "docs"
    text = "".join((folder / page).read_text() for page in ("training.md", "reranking.md"))
    assert f"`{name}`" in text or f"`--objective {name}" in text


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400])
def test_a_temperature_that_is_not_above_zero_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="temperature must be"):
        Contrastive(temperature=value)


@pytest.mark.parametrize("value", ["0.1", True, [0.1], None])
def test_a_temperature_that_is_no_number_is_a_wrong_type(value: Any) -> None:
    with pytest.raises(InputTypeError, match="temperature must be a number"):
        Contrastive(temperature=value)


@pytest.mark.parametrize(
    "value",
    [(), [], None, "u", "u,v", ("u", "w"), ("u", "u"), ("U",), ("u", ""), ("u", None), ("u", [])],
)
def test_features_other_than_some_distinct_ones_are_refused(value: Any) -> None:
    with pytest.raises((InputError, InputTypeError), match="features"):
        Softmax(features=value)


@pytest.mark.parametrize("value", [5, 1.5, True, object()])
def test_features_that_are_no_names_at_all_are_a_wrong_type(value: Any) -> None:
    with pytest.raises(InputTypeError, match="features"):
        Softmax(features=value)


def test_features_may_come_as_a_list() -> None:
    assert Softmax(features=["product", "u"]) == Softmax(("product", "u"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "normalize", "rate"), [("softmax", False, 2e-5), ("contrastive", True, 5e-5)]
)
def test_an_objective_decides_what_was_left_to_it(name: str, normalize: bool, rate: float) -> None:
    config = TrainConfig(seed=5)
    complete = find_objective(name, NLI).with_defaults(config)
    assert complete == replace(config, normalize=normalize, learning_rate=rate)


@pytest.mark.parametrize("name", NLI_OBJECTIVES)
@pytest.mark.parametrize("normalize", [False, True])
def test_an_objective_leaves_settings_as_they_were_given(name: str, normalize: bool) -> None:
    config = TrainConfig(normalize=normalize, learning_rate=3e-4)
    assert find_objective(name, NLI).with_defaults(config) == config
