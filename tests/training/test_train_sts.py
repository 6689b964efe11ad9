"""Training on scored pairs: objectives against formulas and the library, runs, refusals."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tiny_models
import torch
from command_line import Run
from training_cases import QUICK, interrupted_run, weight_bytes

from sbertkit import (
    Angle,
    Cosent,
    Cosine,
    Encoder,
    InputError,
    InputTypeError,
    TrainConfig,
    TrainingStopped,
    train_sts,
)
from sbertkit.data.sts import StsPair, StsSet
from sbertkit.training.data_forms import SCORED, ScoredPair, TrainingData
from sbertkit.training.examples import TextTable, scored_examples
from sbertkit.training.objectives import Objective, objectives_of
from sbertkit.training.sts import sts_recipe

NAMES = tuple(objectives_of(SCORED))
SUBJECTS = ("cat", "dog", "child", "city")
OBJECTS = ("food", "music", "rain", "field")
PAIRS = [
    StsPair(5.0 * len({one, what} & {other, thing}) / 2, f"{one} {what}", f"{other} {thing}")
    for one, other in itertools.product(SUBJECTS, repeat=2)
    for what, thing in itertools.product(OBJECTS, repeat=2)
]
NO_HEAD = torch.nn.Identity()
NO_MODEL: Any = None
SCORES = torch.tensor([0.2, 1.0, 0.2, 0.0, 0.7])


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder."""
    return tiny_models.bert(tmp_path_factory.mktemp("base") / "base")


def config(**more: Any) -> TrainConfig:
    return TrainConfig(**{**QUICK, "learning_rate": 1e-3, "scale": (0, 5), **more})


def write(path: Path, pairs: list[StsPair] = PAIRS) -> Path:
    path.write_text("".join(f"{score}\t{one}\t{two}\n" for score, one, two in pairs))
    return path


# --- the formulas


def pairs_of(dim: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    torch.manual_seed(3)
    vectors = torch.randn(7, dim, dtype=torch.float64, requires_grad=True)
    columns = torch.tensor([[0, 1], [2, 1], [3, 4], [5, 6], [0, 6]])
    return vectors, {"columns": columns, "targets": SCORES.double()}


def by_hand(objective: Objective, u: npt.NDArray[Any], v: npt.NDArray[Any]) -> float:
    """The loss of pairs of vectors, from the formulas of the papers."""
    cosines = [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in zip(u, v, strict=True)]
    scores = SCORES.tolist()
    if isinstance(objective, Cosine):
        errors = [(cosine - score) ** 2 for cosine, score in zip(cosines, scores, strict=True)]
        return math.fsum(errors) / len(errors)
    if isinstance(objective, Angle):  # with complex numbers
        half = -(-u.shape[1] // 2)
        cosines = []
        for a, b in zip(u, v, strict=True):
            pad = [0.0] * (2 * half - len(a))
            one, two = (
                np.array([complex(x, y) for x, y in zip(side[:half], side[half:], strict=True)])
                for side in ([*a, *pad], [*b, *pad])
            )
            quotient = one * two.conj() / (np.linalg.norm(one) * np.linalg.norm(two))
            cosines.append(abs(quotient.real.sum() + quotient.imag.sum()))
    assert isinstance(objective, Cosent | Angle)
    wrong = [
        math.exp((cosines[j] - cosines[i]) / objective.temperature)
        for i, j in itertools.product(range(len(scores)), repeat=2)
        if scores[i] > scores[j]
    ]
    return math.log(1 + math.fsum(wrong))


KINDS: list[Objective] = [Cosine(), Cosent(), Cosent(0.3), Angle(), Angle(0.5)]


@pytest.mark.parametrize("dim", [6, 7])
@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_losses_are_those_of_their_formulas(objective: Objective, dim: int) -> None:
    vectors, batch = pairs_of(dim)
    numbers = vectors.detach().numpy()
    first, second = batch["columns"].T.numpy()
    expected = by_hand(objective, numbers[first], numbers[second])
    assert objective.loss(vectors, batch, NO_HEAD).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dim", [6, 7])
@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_gradients_are_those_of_finite_differences(objective: Objective, dim: int) -> None:
    vectors, batch = pairs_of(dim)
    assert torch.autograd.gradcheck(lambda one: objective.loss(one, batch, NO_HEAD), (vectors,))


@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_losses_and_gradients_are_those_of_sentence_transformers(objective: Objective) -> None:
    from sentence_transformers.sentence_transformer import losses

    vectors, batch = pairs_of(8)
    first, second = batch["columns"].T
    sides: list[torch.Tensor] = [vectors[first], vectors[second]]
    theirs: Any
    if isinstance(objective, Cosine):
        theirs = losses.CosineSimilarityLoss(NO_MODEL)
    elif isinstance(objective, Angle):
        theirs = losses.AnglELoss(NO_MODEL, scale=1 / objective.temperature)
    else:
        assert isinstance(objective, Cosent)
        theirs = losses.CoSENTLoss(NO_MODEL, scale=1 / objective.temperature)
    expected = theirs.compute_loss_from_embeddings(sides, batch["targets"])
    found = objective.loss(vectors, batch, NO_HEAD)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    (wanted,) = torch.autograd.grad(expected, vectors)
    (given,) = torch.autograd.grad(found, vectors)
    torch.testing.assert_close(given, wanted, atol=1e-9, rtol=1e-6)


def test_equal_scores_are_no_order_and_a_right_order_costs_little() -> None:
    vectors = torch.eye(3)[[0, 0, 1, 2]]  # cosines 1 and 0
    batch = {"columns": torch.tensor([[0, 1], [2, 3]]), "targets": torch.tensor([0.5, 0.5])}
    assert Cosent().loss(vectors, batch, NO_HEAD).item() == 0
    batch["targets"] = torch.tensor([1.0, 0.0])
    assert Cosent().loss(vectors, batch, NO_HEAD).item() < 1e-8
    batch["targets"] = torch.tensor([0.0, 1.0])
    assert Cosent().loss(vectors, batch, NO_HEAD).item() == pytest.approx(20, abs=1e-5)


# --- examples


def scored(*pairs: tuple[str, str, float]) -> TrainingData:
    return TrainingData(SCORED, [ScoredPair(one, two, 0, score) for one, two, score in pairs])


def test_a_row_is_a_pair_with_its_score() -> None:
    table = TextTable(None)  # type: ignore[arg-type]  # nothing is tokenized
    found = scored_examples(scored(("a", "b", 0.5), ("c", "a", 0.25)), table, "cosent")
    assert found.texts.tolist() == [[0, 2], [1, 0]]
    assert found.targets.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("name", NAMES)
def test_scores_that_are_all_equal_teach_nothing(name: str) -> None:
    objective = objectives_of(SCORED)[name]()
    table = TextTable(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="found 2 with the same score"):
        objective.examples(scored(("a", "b", 0.5), ("c", "d", 0.5)), table)
    with pytest.raises(InputError, match="found none"):
        objective.examples(scored(), table)


@pytest.mark.parametrize("objective", [Cosent(), Angle()], ids=str)
def test_batches_without_an_order_are_refused(objective: Objective) -> None:
    table = TextTable(None)  # type: ignore[arg-type]
    found = objective.examples(scored(("a", "b", 0.5), ("c", "a", 0.25), ("d", "e", 0.5)), table)
    objective.check_batches(found, [[0, 2], [1, 2]])
    with pytest.raises(InputError, match=r"any of 2 batches; raise batch_size"):
        objective.check_batches(found, [[0, 2], [1]])


# --- runs


@pytest.mark.parametrize("objective", NAMES)
def test_a_trained_encoder_orders_pairs_as_their_scores(
    base: Path, tmp_path: Path, objective: str
) -> None:
    data = write(tmp_path / "pairs.tsv")
    settings = config(epochs=10, batch_size=32, guard=False)
    result = train_sts(base, data, tmp_path / "out", objective=objective, dev=data, config=settings)
    assert result.gain is not None
    assert result.gain > 0.05
    cosines = result.after.label_cosines
    assert cosines["score above the mean"] > cosines["other score"]
    assert result.record["form"] == "scored"
    assert list(result.record["settings"]["scale"]) == [0, 5]
    card = (result.folder / "README.md").read_text()
    assert f"with the objective `{objective}`: the " in card
    assert "Mean cosine, `score above the mean`" in card
    from sentence_transformers import SentenceTransformer

    texts = ["cat food", "dog rain"]
    ours = Encoder.load(result.folder, device="cpu").encode(texts)
    theirs = SentenceTransformer(str(result.folder), device="cpu").encode(texts)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("objective", NAMES)
def test_an_interrupted_run_is_resumed_to_the_same_weights(
    base: Path, tmp_path: Path, objective: str
) -> None:
    data = write(tmp_path / "pairs.tsv")
    settings = {"max_steps": 8, "checkpoint_steps": 2}

    def run(name: str, **more: Any) -> None:
        made = config(**settings, **more)
        train_sts(base, data, tmp_path / name, objective=objective, config=made)

    run("whole")
    with interrupted_run(5):
        run("other")
    with pytest.raises(InputError, match=r"scale 2 was 5\.0, is 6\.0"):
        run("other", resume=True, scale=(0, 6))
    run("other", resume=True)
    assert weight_bytes(tmp_path / "other") == weight_bytes(tmp_path / "whole")


def test_scores_become_numbers_from_0_to_1_and_halves(base: Path) -> None:
    pairs = (StsPair(1, "a", "b"), StsPair(5, "c", "d"), StsPair(2, "e", "f"))
    recipe = sts_recipe(
        base,
        StsSet(pairs, None, (), "made"),
        pooling="mean",
        objective=None,
        dev=None,
        config=config(scale=(1, 5)),
    )
    assert isinstance(recipe.objective, Cosent)
    rows = [ScoredPair(*row) for row in recipe.read(recipe.config).rows]
    assert [row.score for row in rows] == [0, 1, 0.25]
    assert [row.group for row in rows] == [1, 0, 1]


def test_the_train_split_is_read_and_several_files(base: Path, tmp_path: Path) -> None:
    lines = [f"{split}\t{n % 6}\ta {n}\tb {n}" for n, split in enumerate(("train", "dev") * 4)]
    one = tmp_path / "one.tsv"
    one.write_text("\n".join(["split\tscore\tsentence1\tsentence2", *lines]) + "\n")
    two = tmp_path / "two.jsonl"
    two.write_text(json.dumps({"sentence1": "x", "sentence2": "y", "score": 5}) + "\n")
    result = train_sts(base, [one, two], tmp_path / "out", config=config(max_steps=1))
    assert [source["rows"] for source in result.record["data"]] == [4, 1]
    assert result.record["examples"] == 5


def test_distances_in_place_of_scores_stop_a_run(tmp_path: Path) -> None:
    model = Encoder.load("all-MiniLM-L6-v2", device="cpu")
    model.save(tmp_path / "base")
    texts = [f"A man eats {what}." for what in ("rice", "soup", "fish", "bread", "cake")]
    other = [f"{who} is in the sea." for who in ("A whale", "A ship", "A shark", "A rock")]
    pairs = [StsPair(0.0, one, two) for one, two in itertools.permutations(texts, 2)]
    pairs += [StsPair(1.0, one, two) for one in texts for two in other]
    data = StsSet(tuple(pairs), None, (), "made")
    with pytest.raises(TrainingStopped, match="or scores are distances"):
        train_sts(tmp_path / "base", data, tmp_path / "out", config=config(scale=(0, 1)))


# --- refusals


@pytest.mark.parametrize("objective", NAMES)
@pytest.mark.parametrize(
    ("score", "reason"),
    [
        ("6.1", "score 6.1 outside 0 to 5"),
        ("-0.1", "outside 0 to 5"),
        ("N/A", "score 'N/A' is no number"),
        ("", "score '' is no number"),
        ("3,5", "score '3,5' is no number"),
        ("nan", "no finite number"),
        ("inf", "no finite number"),
        ("\N{FULLWIDTH DIGIT THREE}", "is no number"),
        ("1_0", "is no number"),
    ],
)
def test_bad_scores_are_refused_with_their_lines(
    base: Path, tmp_path: Path, score: str, reason: str, objective: str
) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text(f"4.2\ta\tb\n{score}\tc\td\n1\te\tf\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"1 bad line: 2 \(.*{reason}"):
        train_sts(base, data, tmp_path / "out", objective=objective, config=config())
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_good_scores_of_every_spelling_are_read(base: Path, tmp_path: Path) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("4.2\ta\tb\n3\tc\td\n 5.000 \te\tf\n0\tg\th\n1e0\ti\tj\n", encoding="utf-8")
    recipe = sts_recipe(base, data, pooling=None, objective=None, dev=None, config=config())
    scores = [row[3] for row in recipe.read(recipe.config).rows]
    np.testing.assert_allclose(scores, [0.84, 0.6, 1, 0, 0.2])
    assert train_sts(base, data, tmp_path / "out", config=config(max_steps=1)).steps == 1
    with pytest.raises(InputError, match=r"1 \(score 4\.2 outside 0 to 1.*the scale is 0 to 1"):
        train_sts(base, data, tmp_path / "other", config=config(scale=None))


@pytest.mark.parametrize("score", [5.1, -1.0, math.nan, math.inf])
def test_scores_of_a_caller_are_checked_too(base: Path, tmp_path: Path, score: float) -> None:
    data = StsSet((StsPair(1.0, "a", "b"), StsPair(score, "c", "d")), None, (), "made")
    with pytest.raises(InputError, match="pair 1: expected a score from 0 to 5"):
        train_sts(base, data, tmp_path / "out", config=config())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"objective": "softmax"}, "objective must be one of cosent, cosine, angle, not 'softmax'"),
        ({"config": config(labels={0: "neutral"})}, "labels is not for scored pairs"),
        ({"config": config(batch_size=1)}, "raise batch_size"),
        ({"data": []}, "found none"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    base: Path, tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    data = write(tmp_path / "pairs.tsv")
    given = {"data": data, "config": config(), **more}
    with pytest.raises(InputError, match=reason):
        train_sts(base, output=tmp_path / "out", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


@pytest.mark.parametrize(
    ("scale", "kind"),
    [
        ((5, 0), InputError),
        ((1, 1), InputError),
        ((0, math.nan), InputError),
        ((0, math.inf), InputError),
        (5, InputTypeError),
        ("0-5", InputTypeError),
        ((0,), InputTypeError),
        ((0, "5"), InputTypeError),
        ((False, 1), InputTypeError),
    ],
)
def test_a_scale_that_is_none_is_refused(scale: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="scale must be"):
        TrainConfig(scale=scale)


# --- the command


def test_the_command_trains_and_reports(run: Run, base: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "pairs.tsv")
    options = ("--max-steps", 3, "--device", "cpu", "--dev", data, "--scale", "0-5")
    out = tmp_path / "out"
    ran = run("train-sts", data, "--base", base, "-o", out, "--objective", "angle", *options)
    assert ran.status == 0, ran.err
    assert "dev Spearman" in ran.out
    assert "score above the mean" in ran.out
    several = ("--seeds", "1,2", "--objective", "cosine")
    ran = run("train-sts", data, "--base", base, "-o", tmp_path / "seeds", *options, *several)
    assert ran.status == 0, ran.err
    assert "mean dev Spearman" in ran.out
    refused = run("train-sts", data, "--base", base, "-o", tmp_path / "no", "--scale", "0-1")
    assert refused.status == 1
    assert "outside 0 to 1" in refused.err
    assert "the --scale is 0 to 1" in refused.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scale", "5"), "two numbers such as 0-5"),
        (("--scale", "5-0"), "the lower number first"),
        (("--scale", "0-5-6"), "two numbers such as 0-5"),
        (("--labels", "0=neutral"), "No such option"),
        (("--temperature", "0.1", "--objective", "cosine"), "--objective cosent or angle"),
        (("--objective", "softmax"), "'softmax' is not one of"),
        (("--require-gain",), "--require-gain needs --dev"),
    ],
)
def test_wrong_options_are_refused(run: Run, options: tuple[str, ...], message: str) -> None:
    ran = run("train-sts", "pairs.tsv", "--base", "b", "-o", "out", *options)
    assert ran.status == 2
    assert message in ran.err
