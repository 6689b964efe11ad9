"""Training on pairs and triplets: objectives against formulas and the library, data, mining."""

import itertools
import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_models
import torch
from command_line import Run
from tiny_rerankers import cross_encoder, write_collection
from training_cases import QUICK, interrupted_run, weight_bytes

from sbertkit import (
    Contrastive,
    Encoder,
    InputError,
    MarginMse,
    Mining,
    RankingPair,
    RankingSet,
    Reranker,
    SearchIndex,
    TrainConfig,
    Triplet,
    train_pairs,
)
from sbertkit.training.anchors import by_anchor
from sbertkit.training.batches import Collator
from sbertkit.training.data_forms import NLI, PAIRS, TrainingData
from sbertkit.training.examples import NO_TEXT, Examples, TextTable
from sbertkit.training.mining import mine_negatives
from sbertkit.training.objectives import Objective, objectives_of
from sbertkit.training.run.siamese import Siamese

NO_HEAD = torch.nn.Identity()
NO_MODEL: Any = None
WORDS = ("cat", "dog", "food", "music", "rain", "field", "child", "city")
ROWS = [
    {"anchor": f"where is the {one}", "positive": f"the {one} is here", "negative": f"a {other}"}
    for one, other in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)
]


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny re-ranker."""
    return cross_encoder(tmp_path_factory.mktemp("teacher") / "teacher")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "learning_rate": 1e-3, **more})


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows or ROWS))
    return path


def pairs(*found: tuple[str, str, float]) -> TrainingData:
    return TrainingData(PAIRS, [RankingPair.of(*one) for one in found])


class Spec:
    """As much of an encoder as a table of texts asks for."""

    def __init__(self, query: str = "", document: str = "") -> None:
        self.spec = self
        self.prompts = (query, document)


def table(query: str = "", document: str = "") -> TextTable:
    return TextTable(Spec(query, document))  # type: ignore[arg-type]


def shown(examples: Examples, texts: TextTable) -> list[list[str | None]]:
    names: list[Any] = [getattr(one, "text", one) for one in texts._numbers]
    return [[None if n == NO_TEXT else names[n] for n in row] for row in examples.texts]


# --- the formulas


def triplets_of(dim: int = 6) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    torch.manual_seed(3)
    vectors = torch.randn(7, dim, dtype=torch.float64, requires_grad=True)
    columns = torch.tensor([[0, 1, 2], [0, 1, 5], [3, 4, 6], [5, 6, 1]])
    targets = torch.tensor([0.3, -0.1, 0.0, 0.5], dtype=torch.float64)
    return vectors, {"columns": columns, "targets": targets}


def cosine(a: Any, b: Any) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def by_hand(objective: Objective, rows: Any, targets: Any) -> float:
    losses = []
    for (a, p, n), target in zip(rows, targets, strict=True):
        if isinstance(objective, MarginMse):
            losses.append((cosine(a, p) - cosine(a, n) - target) ** 2)
            continue
        assert isinstance(objective, Triplet)
        near, far = (
            1 - cosine(a, one) if objective.distance == "cosine" else math.dist(a, one)
            for one in (p, n)
        )
        losses.append(max(0.0, near - far + objective.margin))
    return math.fsum(losses) / len(losses)


KINDS: list[Objective] = [
    Triplet(),
    Triplet(margin=1.5),
    Triplet("euclidean", 1.0),
    Triplet("euclidean", 0),
    MarginMse(),
]


@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_losses_are_those_of_their_formulas(objective: Objective) -> None:
    vectors, batch = triplets_of()
    numbers = vectors.detach().numpy()[batch["columns"].numpy()]
    expected = by_hand(objective, numbers, batch["targets"].tolist())
    assert objective.loss(vectors, batch, NO_HEAD).item() == pytest.approx(expected, rel=1e-5)
    assert torch.autograd.gradcheck(
        lambda one: objective.loss(one, batch, NO_HEAD), (vectors,), atol=1e-4
    )


@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_losses_and_gradients_are_those_of_sentence_transformers(objective: Objective) -> None:
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.util import pairwise_cos_sim

    vectors, batch = triplets_of()
    sides = [vectors[column] for column in batch["columns"].T]
    theirs: Any
    if isinstance(objective, Triplet):
        metric = getattr(losses.TripletDistanceMetric, objective.distance.upper())
        theirs = losses.TripletLoss(NO_MODEL, metric, objective.margin)
    else:
        theirs = losses.MarginMSELoss(NO_MODEL, similarity_fct=pairwise_cos_sim)
    expected = theirs.compute_loss_from_embeddings(sides, batch["targets"])
    found = objective.loss(vectors, batch, NO_HEAD)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    (wanted,) = torch.autograd.grad(expected, vectors)
    (given,) = torch.autograd.grad(found, vectors)
    torch.testing.assert_close(given, wanted, atol=1e-6, rtol=1e-5)


def test_contrastive_over_hard_negatives_is_that_of_sentence_transformers() -> None:
    """Ours is the mean of both directions, of which the library computes one alone."""
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(5)
    vectors = torch.randn(8, 6, dtype=torch.float64)
    data = pairs(
        *(("a", "p", 1.0), ("a", "n", 0.0), ("a", "m", 0.0)),
        *(("b", "q", 1.0), ("b", "k", 0.0), ("b", "l", 0.0)),
    )
    texts = table()
    objective = Contrastive()
    examples = objective.examples(data, texts)
    batch = {
        "columns": torch.from_numpy(examples.texts),
        **objective.collate(examples, [0, 1], examples.texts, np.arange(8)),
    }
    sides = [vectors[column] for column in batch["columns"].T]
    one_way = losses.MultipleNegativesRankingLoss(NO_MODEL, scale=20.0)
    expected = one_way.compute_loss_from_embeddings(sides, NO_MODEL)
    unit = torch.nn.functional.normalize(vectors, dim=1)
    back = 20 * unit[batch["columns"][:, 1]] @ unit[batch["columns"][:, 0]].T
    backward = torch.nn.functional.cross_entropy(back, torch.arange(2))
    found = objective.loss(vectors, batch, NO_HEAD)
    assert found.item() == pytest.approx((expected + backward).item() / 2, rel=1e-5)


# --- examples


def test_the_negatives_of_an_anchor_go_to_its_positives_in_turn() -> None:
    data = pairs(
        *(("a", f"p{n}", 1.0) for n in range(2)),
        *(("a", f"n{n}", 0.0) for n in range(5)),
        *(("b", f"q{n}", 1.0) for n in range(3)),
        ("b", "m", 0.0),
        ("c", "r", 1.0),
        ("d", "x", 0.0),  # of no positive
    )
    texts = table()
    assert shown(Contrastive().examples(data, texts), texts) == [
        ["a", "p0", "n0", "n2", "n4"],
        ["a", "p1", "n1", "n3", None],
        *(["b", f"q{n}", "m", None, None] for n in range(3)),
        ["c", "r", None, None, None],
    ]
    few = Contrastive(hard_negatives=1).examples(data, table())
    assert few.texts.shape == (6, 3)


def test_triplets_have_each_positive_and_each_negative_once_or_in_turn() -> None:
    data = pairs(
        *(("a", f"p{n}", 1.0) for n in range(2)),
        *(("a", f"n{n}", 0.0) for n in range(3)),
        ("b", "q", 1.0),
    )
    texts = table()
    examples = Triplet().examples(data, texts)
    assert shown(examples, texts) == [["a", "p0", "n0"], ["a", "p1", "n1"], ["a", "p0", "n2"]]
    assert examples.left_out == {"of anchors without a negative": 1}
    for objective in (Triplet(), MarginMse(teacher="unused")):
        with pytest.raises(InputError, match=r"found none; add negatives .*--mine"):
            objective.examples(pairs(("a", "p", 1.0), ("b", "n", 0.0)), table())


def test_a_positive_is_never_a_negative_of_its_anchor() -> None:
    data = pairs(("a", "p", 1.0), ("a", "n", 0.0), ("a", "q", 1.0), ("a", "q", 0.0))
    found = by_anchor(data, texts := table())
    assert found.left_out == {"labeled negative whose pair is labeled positive too": 1}
    ((anchor, never),) = found.never.items()
    assert never == {*texts.numbers(["a", "p", "q"])}
    assert found.negatives[anchor] == texts.numbers(["n"])


def test_a_query_prompt_makes_an_anchor_another_text_than_the_document() -> None:
    data = pairs(("a", "p", 1.0), ("b", "a", 1.0), ("c", "c", 1.0))
    texts = table("query: ", "doc: ")
    found = by_anchor(data, texts)
    assert len(texts._numbers) == 6  # a, b, c as queries; p, a, c as documents
    assert found.left_out == {"of a text with itself": 1}
    (document,) = texts.numbers(["a"])
    (query,) = texts.queries(["a"])
    assert query != document
    assert document in found.never[query]  # itself, though with another prompt


def test_texts_are_encoded_with_the_prompt_of_their_side(base: Path, tmp_path: Path) -> None:
    made = tiny_models.declare(
        tiny_models.bert(tmp_path / "prompts"),
        "Normalize",
        prompts={"query": "cat ", "document": "dog "},
    )
    encoder = Encoder.load(made, device="cpu")
    texts = TextTable(encoder)
    numbers = [*texts.queries(["rain"]), *texts.numbers(["rain"])]
    texts.tokenize()
    tokens = [texts.tokens[number].ids for number in numbers]
    plain = Encoder.load(made, device="cpu", prompts={"query": "", "document": ""})
    expected = [one.ids for one in plain.spec.tokenize(["cat rain", "dog rain"])]
    assert list(map(list, tokens)) == list(map(list, expected))


def test_margins_are_those_of_the_teacher_or_of_the_data(teacher: Path) -> None:
    rows = [("a", "p", 1.0), ("a", "q", 1.0), ("a", "n", 0.0), ("b", "p", 1.0), ("b", "m", 0.0)]
    texts = table()
    examples = MarginMse(teacher=str(teacher)).examples(pairs(*rows), texts)
    assert shown(examples, texts) == [["a", "p", "n"], ["a", "q", "n"], ["b", "p", "m"]]
    score = Reranker.load(teacher).score([one[:2] for one in rows], activated=False)
    margins = [score[0] - score[2], score[1] - score[2], score[3] - score[4]]
    assert examples.targets.tolist() == pytest.approx([0.05 * one for one in margins], abs=1e-6)
    given = [RankingPair.of(*row, float(place)) for place, row in enumerate(rows)]
    examples = MarginMse(teacher_scale=2.0).examples(TrainingData(PAIRS, given), table())
    assert examples.targets.tolist() == [-4, -2, -2]
    given[2] = given[2]._replace(score=None)
    with pytest.raises(InputError, match="needs a teacher: 1 of 5 pairs have no score"):
        MarginMse().examples(TrainingData(PAIRS, given), table())


# --- runs


OBJECTIVES = tuple(objectives_of(PAIRS))


def objective_of(name: str, teacher: Path) -> Objective:
    return MarginMse(teacher=str(teacher)) if name == "margin-mse" else objectives_of(PAIRS)[name]()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_trained_encoder_has_positives_nearer(
    base: Path, teacher: Path, tmp_path: Path, name: str
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    result = train_pairs(
        base,
        data,
        tmp_path / "out",
        objective=objective_of(name, teacher),
        config=config(epochs=25, guard=False, seed=2),
    )
    losses = [row["loss"] for row in result.log if row.get("loss") is not None]
    assert np.mean(losses[-4:]) < 0.8 * np.mean(losses[:4])
    before, after = (side.label_cosines for side in (result.before, result.after))
    if name == "triplet":  # in the others hard negatives are only a part
        gaps = [side["positive"] - side["negative"] for side in (before, after)]
        assert gaps[1] > gaps[0]
    assert result.record["counts"] == {"positive": 8, "negative": 8}
    card = (result.folder / "README.md").read_text()
    assert f"with the objective `{name}`" in card
    assert "Mean cosine, `positive`" in card
    from sentence_transformers import SentenceTransformer

    texts = ["the cat is here", "a dog"]
    ours = Encoder.load(result.folder, device="cpu").encode(texts)
    theirs = SentenceTransformer(str(result.folder), device="cpu").encode(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_weight_that_is_used_has_a_gradient(base: Path, teacher: Path, name: str) -> None:
    encoder = Encoder.load(base, device="cpu")
    texts = TextTable(encoder)
    objective = objective_of(name, teacher)
    data = pairs(
        *((row["anchor"], row["positive"], 1.0) for row in ROWS),
        *((row["anchor"], row["negative"], 0.0) for row in ROWS),
    )
    examples = objective.examples(data, texts)
    texts.tokenize()
    batch = Collator(examples, texts, encoder.spec.collator, objective)(list(range(len(examples))))
    encoder.torch.make_trainable()
    model = Siamese(encoder.torch.network, objective, objective.make_head(encoder.dim))
    model(batch).backward()
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    reached = {n for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert {n for n in trained - reached if "key.bias" not in n} == set()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_interrupted_run_is_resumed_to_the_same_weights(
    base: Path, teacher: Path, tmp_path: Path, name: str
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    settings = {"max_steps": 8, "checkpoint_steps": 2, "guard": False}
    objective = objective_of(name, teacher)

    def run(out: str, **more: Any) -> None:
        made = config(**settings, **more)
        train_pairs(base, data, tmp_path / out, objective=objective, config=made)

    run("whole")
    with interrupted_run(5):
        run("other")
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


def test_hard_negatives_nearer_than_positives_are_no_fault(tmp_path: Path) -> None:
    Encoder.load("all-MiniLM-L6-v2", device="cpu").save(tmp_path / "base")
    near = [f"A man eats {what}." for what in ("rice", "soup", "fish", "bread", "cake", "meat")]
    far = [f"Ships sail to {where}." for where in ("Oslo", "Rome", "Lima", "Bonn", "Bern", "Kiel")]
    made = [
        RankingPair.of(one, text, label)
        for texts, label in ((far, 1.0), (near, 0.0))
        for one, text in itertools.product(near, texts)
        if one != text
    ]
    settings = config(max_steps=1, learning_rate=1e-6)
    result = train_pairs(
        tmp_path / "base", RankingSet(tuple(made)), tmp_path / "o", config=settings
    )
    cosines = result.before.label_cosines
    assert cosines["negative"] > cosines["positive"] + 0.3


# --- data


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"query": "q", "pos": ["p"], "neg": ["n", "m"]}, ["p", "-n", "-m"]),
        ({"anchor": "q", "positive": "p", "negative_1": "n", "negative_2": "m"}, ["p", "-n", "-m"]),
        ({"question": "q", "positives": ["p", "r"], "negatives": []}, ["p", "r"]),
        ({"query": "q", "positive": "p", "negative": "n", "negative_2": "m"}, ["p", "-n", "-m"]),
        ({"query": "q", "document": "p", "label": 1}, ["p"]),
    ],
)
def test_each_form_of_a_row_is_read(tmp_path: Path, row: Any, expected: list[str]) -> None:
    from sbertkit.data.ranking import read_ranking

    found = read_ranking(write(tmp_path / "a.jsonl", row), distinct=True)
    assert ["-" * pair.group + pair.document for pair in found.pairs] == expected


@pytest.mark.parametrize(
    ("row", "scores"),
    [
        (
            {"query": "q", "pos": ["p"], "neg": ["n"], "pos_scores": [7], "neg_scores": [-1.5]},
            [7, -1.5],
        ),
        (
            {"query": "q", "positive": "p", "negative": "n", "positive_score": "7.5"},
            [7.5, None],
        ),
        ({"query": "q", "document": "p", "label": 1, "teacher_score": 3}, [3]),
        ({"query": "q", "pos": ["p"], "neg": [], "pos_scores": None, "neg_scores": []}, [None]),
    ],
)
def test_a_teachers_scores_are_read(tmp_path: Path, row: Any, scores: list[float | None]) -> None:
    from sbertkit.data.ranking import read_ranking

    found = read_ranking(write(tmp_path / "a.jsonl", row))
    assert [pair.score for pair in found.pairs] == scores


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"anchor": "q", "positive": "q"}, r"2 \(a positive is the anchor itself\)"),
        ({"anchor": "q", "positive": "p", "negative": "p"}, r"2 \(a positive is a negative, too\)"),
        ({"anchor": "q", "pos": ["r", "p"], "neg": ["n", "p"]}, "a positive is a negative, too"),
        ({"anchor": "q", "positive": "p", "negative_3": "p"}, "a positive is a negative, too"),
        ({"anchor": "q", "document": "q", "label": 1}, "a positive is the anchor itself"),
        ({"anchor": "q"}, "neither document and label nor positive"),
        ({"anchor": "q", "positive": "p", "negative_1": 3}, "negative must be text, found int"),
        ({"anchor": "q", "pos": ["p"], "pos_scores": [1, 2]}, "2 scores for 1 positive texts"),
        ({"anchor": "q", "pos": ["p"], "pos_scores": ["high"]}, "a finite number, found high"),
        ({"anchor": "q", "pos": ["p"], "pos_scores": ["inf"]}, "a finite number, found"),
    ],
)
def test_bad_rows_are_refused_by_line(base: Path, tmp_path: Path, row: Any, reason: str) -> None:
    data = write(tmp_path / "pairs.jsonl", ROWS[0], row)
    with pytest.raises(InputError, match=reason):
        train_pairs(base, data, tmp_path / "out", config=config())
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_a_folder_in_the_layout_of_beir_and_a_data_set_folder_are_read(
    base: Path, tmp_path: Path
) -> None:
    corpus = {name: f"the {name} is here" for name in WORDS}
    queries = {name: f"where is the {name}" for name in WORDS}
    qrels = {name: {name: 1, "cat": 0} for name in WORDS[1:]}
    collection = write_collection(tmp_path / "collection", corpus, queries, qrels)
    settings = config(max_steps=1, split="test")
    result = train_pairs(base, collection, tmp_path / "beir", config=settings)
    assert result.record["counts"] == {"positive": 7, "negative": 7}
    folder = tmp_path / "set"
    folder.mkdir()
    for split, found in (("train", ROWS), ("test", ROWS[:1])):
        pq.write_table(pa.Table.from_pylist(found), folder / f"{split}-00000-of-00001.parquet")
    result = train_pairs(base, folder, tmp_path / "out", config=config(max_steps=1))
    assert result.record["counts"] == {"positive": 8, "negative": 8}


# --- mining


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """An index of the positives, of the anchors in other spelling, and of others."""
    texts = [row["positive"] for row in ROWS] + [
        f"nothing of {word} {n}" for word in WORDS for n in range(5)
    ]
    texts += [row["anchor"].upper() for row in ROWS]
    corpus = [(str(number), text) for number, text in enumerate(dict.fromkeys(texts))]
    return SearchIndex.build(corpus, tiny_encoder, tmp_path_factory.mktemp("index") / "index")


POSITIVES = [RankingPair.of(row["anchor"], row["positive"], 1.0) for row in ROWS]


def test_no_positive_and_no_anchor_is_mined_in_any_spelling(index: SearchIndex) -> None:
    shouted = [pair._replace(document=pair.document.upper()) for pair in POSITIVES]
    for known in (POSITIVES, shouted):
        found = mine_negatives(known, index, Mining(negatives=50, mine_depth=50), config())
        for pair in found[len(known) :]:
            own = {text.lower() for one in known if one.query == pair.query for text in one[:2]}
            assert pair.document.lower() not in own


def test_a_margin_leaves_likely_positives_out(index: SearchIndex) -> None:
    encoder = index.encoder
    kept: dict[float | None, int] = {}
    for margin in (None, 0.0, 0.001):
        mining = Mining(negatives=60, mine_depth=60, mine_margin=margin)
        found = mine_negatives(POSITIVES, index, mining, config())[len(POSITIVES) :]
        kept[margin] = len(found)
        for pair in found if margin is not None else ():
            (positive,) = (one.document for one in POSITIVES if one.query == pair.query)
            query = encoder.encode([pair.query], kind="query")
            cosines = encoder.encode([positive, pair.document]) @ query[0]
            assert cosines[1] <= cosines[0] - (margin or 0.0) + 1e-5
    assert kept[None] > kept[0.0] >= kept[0.001]


def test_a_cross_encoder_scores_in_place_of_the_cosine(
    index: SearchIndex, tmp_path: Path, base: Path
) -> None:
    model = cross_encoder(tmp_path / "reranker")
    reranker = Reranker.load(model)
    pairs = POSITIVES[:4]
    kept: dict[float | None, set[tuple[str, str]]] = {}
    for margin in (None, 0.0, 0.5):
        mining = Mining(negatives=60, mine_depth=60, mine_margin=margin, mine_reranker=str(model))
        found = mine_negatives(pairs, index, mining, config())[len(pairs) :]
        kept[margin] = {(pair.query, pair.document) for pair in found}
        for query, document in kept[margin]:
            (positive,) = (one.document for one in pairs if one.query == query)
            scores = reranker.score([(query, positive), (query, document)], activated=False)
            assert scores[1] <= scores[0] - (margin or 0.0) + 1e-5
    everything = mine_negatives(pairs, index, Mining(negatives=60, mine_depth=60), config())
    assert len(everything) - len(pairs) > len(kept[0.0]) > len(kept[0.5])
    assert kept[None] == kept[0.0]
    mining = Mining(mine_reranker=str(base))
    with pytest.raises(InputError, match="no cross-encoder"):
        mine_negatives(pairs, index, mining, config())


def test_a_margin_that_leaves_nothing_is_refused(index: SearchIndex) -> None:
    with pytest.raises(InputError, match=r"no negatives can be mined.*below the margin") as error:
        mine_negatives(POSITIVES, index, Mining(mine_margin=1.9), config())
    assert "--mine-margin" in error.value.in_shell


def test_mined_negatives_are_in_the_counts_and_a_resumed_run_has_the_same(
    base: Path, index: SearchIndex, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = RankingSet(tuple(POSITIVES))
    with pytest.raises(InputError, match=r"found none; add negatives .*--mine"):
        train_pairs(base, data, tmp_path / "out", objective="triplet", config=config(max_steps=2))
    with caplog.at_level(logging.WARNING):
        train_pairs(base, data, tmp_path / "plain", config=config(max_steps=2))
    assert "in-batch negatives alone" in caplog.text
    result = train_pairs(
        base,
        data,
        tmp_path / "out",
        objective="triplet",
        mine=index,
        mining=Mining(2),
        config=config(max_steps=2),
    )
    assert result.record["counts"] == {"positive": 8, "negative": 16}
    assert result.record["examples"] == 16


# --- refusals and the command


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"objective": "softmax"}, "objective must be one of contrastive, triplet, margin-mse"),
        ({"objective": "margin-mse"}, "needs a teacher"),
        ({"config": config(scale=(0, 5))}, "scale is not for pairs of anchor"),
        ({"config": config(labels={0: "neutral"})}, "labels is not for pairs of anchor"),
        ({"config": config(patience=1)}, "pass dev"),
        ({"data": []}, "an empty list"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    base: Path, tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    given = {"data": data, "config": config(), **more}
    with pytest.raises(InputError, match=reason):
        train_pairs(base, output=tmp_path / "out", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.jsonl"]


def test_nli_still_has_one_hard_negative_per_example() -> None:
    rows = [("a", "p", 0), ("a", "n", 2), ("a", "m", 2)]
    examples = Contrastive().examples(TrainingData(NLI, rows), table())
    assert examples.texts.shape == (1, 3)
    assert Contrastive(hard_negatives=2).examples(TrainingData(NLI, rows), table()).texts.shape == (
        1,
        4,
    )


def test_the_command_trains_mines_and_reports(
    run: Run, base: Path, index: SearchIndex, tmp_path: Path
) -> None:
    data = write(tmp_path / "pairs.jsonl")
    mined = ("--mine", index.path, "--negatives", 2, "--mine-depth", 10)
    options = ("--base", base, "--max-steps", 3, "--batch-size", 4, "--device", "cpu")
    ran = run("train-pairs", data, "-o", tmp_path / "out", *options, *mined)
    assert ran.status == 0, ran.err
    assert "positive" in ran.out
    ran = run("train-pairs", data, "-o", tmp_path / "two", *options, "--seeds", "1,2", *mined)
    assert ran.status == 0, ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--negatives", 2), "--negatives needs --mine"),
        (("--mine-margin", 0.1), "--mine-margin needs --mine"),
        (("--require-gain",), "--require-gain needs --dev"),
        (("--teacher", "x"), "--teacher needs --objective margin-mse"),
        (("--margin", 0.1), "--margin needs --objective triplet"),
        (("--objective", "triplet", "--distance", "manhattan"), "'manhattan' is not one of"),
        (("--hard-negatives", 2, "--objective", "triplet"), "needs --objective contrastive"),
    ],
)
def test_options_without_effect_are_refused(
    run: Run, options: tuple[object, ...], message: str
) -> None:
    ran = run("train-pairs", "pairs.jsonl", "--base", "b", "-o", "out", *options)
    assert ran.status == 2
    assert message in ran.err
