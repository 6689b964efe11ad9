"""Distillation: objectives against formulas and the library, students, teachers, resuming."""

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tiny_models
import torch
from command_line import Run
from training_cases import QUICK, interrupted_run, weight_bytes, weights, write_dev

from sbertkit import (
    Encoder,
    InputError,
    TeacherScores,
    TeacherVectors,
    TrainConfig,
    TrainResult,
    distill,
)
from sbertkit.encoder.encoding import EncodingRun
from sbertkit.training.data_forms import PARALLEL, TEXT_PAIRS, TEXTS, TrainingData
from sbertkit.training.examples import Examples
from sbertkit.training.projection import Projection
from sbertkit.training.run import teaching

NO_HEAD = torch.nn.Identity()
NO_MODEL: Any = None
WORDS = [
    f"{who} {does} {where}"
    for who in ("a heron", "two bakers", "the fox", "my aunt")
    for does in ("eats", "runs", "sings")
    for where in ("at home", "in a bar", "by the sea")
]


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny sentence encoder of four layers."""
    root = tmp_path_factory.mktemp("teacher")
    deep = tiny_models.bert(root / "plain", num_hidden_layers=4)
    Encoder.load(deep, pooling="mean", device="cpu").save(root / "teacher")
    return root / "teacher"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another tiny encoder, with smaller vectors and no dropout."""
    return tiny_models.bert(
        tmp_path_factory.mktemp("small") / "small",
        hidden_size=16,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in [*WORDS, WORDS[0], ""]), encoding="utf-8")
    return path


@pytest.fixture
def parallel(tmp_path: Path) -> Path:
    path = tmp_path / "parallel.tsv"
    path.write_text("".join(f"{text}\t{text[::-1]}\n" for text in WORDS), encoding="utf-8")
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    made = [{"sentence1": a, "sentence2": b} for a, b in zip(WORDS, WORDS[5:], strict=False)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in made), encoding="utf-8")
    return path


def config(**more: Any) -> TrainConfig:
    own = {"learning_rate": 1e-3, "max_steps": 6, "guard": False, "checkpoint_steps": 2}
    return TrainConfig(**{**QUICK, **own, **more})


def distance(folder: Path, teacher: Path, texts: list[str] | None = None) -> float:
    """The mean squared distance of an encoder's vectors from those of the teacher."""
    one, two = (
        Encoder.load(path, device="cpu").encode(texts or WORDS) for path in (folder, teacher)
    )
    return float(np.square(one - two).sum(axis=1).mean())


# --- the formulas


def batch_of(vectors: np.ndarray[Any, Any], columns: list[list[int]]) -> dict[str, torch.Tensor]:
    return {"columns": torch.tensor(columns), "targets": torch.from_numpy(vectors)}


@pytest.mark.parametrize("name", ["mse", "cosine"])
@pytest.mark.parametrize("columns", [[[0], [1], [2]], [[0, 3], [1, 4], [2, 2]]])
def test_the_loss_of_vectors_is_that_of_the_formula(name: str, columns: list[list[int]]) -> None:
    random = np.random.default_rng(4)
    student = torch.from_numpy(random.normal(size=(5, 6))).requires_grad_()
    wanted = random.normal(size=(3, 6))
    objective = TeacherVectors(distance=name)
    found = objective.loss(student, batch_of(wanted, columns), NO_HEAD)
    losses = []
    for row, target in zip(columns, wanted, strict=True):
        for place in row:
            one = student[place].detach().numpy()
            cosine = one @ target / math.sqrt((one @ one) * (target @ target))
            losses.append(1 - cosine if name == "cosine" else ((one - target) ** 2).sum())
    assert found.item() == pytest.approx(math.fsum(losses) / len(losses))
    assert torch.autograd.gradcheck(
        lambda one: objective.loss(one, batch_of(wanted, columns), NO_HEAD), (student,)
    )


@pytest.mark.parametrize("name", ["mse", "cosine"])
def test_the_loss_of_parallel_sentences_is_that_of_sentence_transformers(name: Any) -> None:
    """Of mse up to the size of the vectors, by which the library divides."""
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(2)
    student = torch.randn(6, 4, dtype=torch.float64)
    wanted = torch.randn(3, 4, dtype=torch.float64)
    theirs = losses.EmbedDistillLoss(NO_MODEL, distance_metric=name)
    expected = theirs.compute_loss_from_embeddings([student[:3], student[3:]], [wanted] * 2)
    batch = {"columns": torch.tensor([[0, 3], [1, 4], [2, 5]]), "targets": wanted}
    found = TeacherVectors(distance=name).loss(student, batch, NO_HEAD)
    factor = 4 if name == "mse" else 1
    assert found.item() == pytest.approx(factor * expected.item(), rel=1e-6)


def test_the_loss_of_scores_is_that_of_the_formula() -> None:
    random = np.random.default_rng(4)
    student = torch.from_numpy(random.normal(size=(4, 6))).requires_grad_()
    columns, wanted = [[0, 1], [2, 3], [0, 3]], np.array([0.2, -0.4, 0.9])
    losses = []
    for (a, b), target in zip(columns, wanted, strict=True):
        u, v = student[a].detach().numpy(), student[b].detach().numpy()
        losses.append((u @ v / math.sqrt((u @ u) * (v @ v)) - target) ** 2)
    found = TeacherScores().loss(student, batch_of(wanted, columns), NO_HEAD)
    assert found.item() == pytest.approx(math.fsum(losses) / 3)


class Table:
    """Numbers texts."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def numbers(self, texts: Any) -> list[int]:
        return [self.known.setdefault(text, len(self.known)) for text in texts]


def test_examples_have_each_text_once_and_the_vector_of_its_source() -> None:
    table: Any = Table()
    data = TrainingData(TEXTS, [("a",), ("b",), ("a",)])
    found = TeacherVectors().examples(data, table)
    assert found.texts.tolist() == [[0], [1]]
    assert found.targets.tolist() == [0, 1]
    assert found.left_out == {"that repeat earlier ones": 1}
    rows = [("a", "x", 0), ("b", "y", 0), ("a", "z", 0), ("a", "x", 0)]
    data = TrainingData(PARALLEL, rows)
    table = Table()
    objective = TeacherVectors()
    found = objective.examples(data, table)
    assert [[list(table.known)[n] for n in row] for row in found.texts] == [
        ["a", "x"], ["b", "y"], ["a", "z"],
    ]  # fmt: skip
    assert objective.teacher_texts(data) == ["a", "b"]
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    known = objective.taught(found, vectors)
    batch = objective.collate(known, [2, 1], known.texts, np.arange(5))
    np.testing.assert_array_equal(batch["targets"], vectors[[0, 1]])


def test_scores_are_the_teachers_cosines() -> None:
    table: Any = Table()
    objective = TeacherScores()
    data = TrainingData(TEXT_PAIRS, [("a", "b"), ("c", "a"), ("a", "b")])
    examples = objective.examples(data, table)
    assert objective.teacher_texts(data) == ["a", "b", "c"]
    vectors = np.array([[1, 0], [0, 2], [3, 3]], np.float32)
    known: Examples = objective.taught(examples, vectors)
    assert known.targets.tolist() == pytest.approx([0.0, math.sqrt(0.5)], abs=1e-6)


# --- students


@pytest.mark.parametrize("loss", ["mse", "cosine"])
def test_a_student_of_some_layers_comes_near_its_teacher(
    loss: str, teacher: Path, texts: Path, tmp_path: Path, plain: Callable[..., Any]
) -> None:
    objective = TeacherVectors(distance=loss)
    result = distill(
        teacher, texts, tmp_path / "out", layers=2, objective=objective,
        dev=write_dev(tmp_path / "dev.tsv"), config=config(max_steps=60, checkpoint_steps=60),
    )  # fmt: skip
    from sbertkit.encoder.layers import with_layers

    start = with_layers(Encoder.load(teacher, device="cpu"), [0, 3]).encode(WORDS)
    wanted = Encoder.load(teacher, device="cpu").encode(WORDS)
    before = float(np.square(start - wanted).sum(axis=1).mean())
    assert distance(result.folder, teacher) < before / 2
    record = result.record
    assert (record["layers"], record["examples"]) == ([0, 3], len(WORDS))
    assert record["settings"]["teacher"] == "teacher"
    assert record["settings"]["teacher_fingerprint"] == Encoder.load(teacher).fingerprint
    assert record["left_out"] == {"that repeat earlier ones": 1}
    assert result.before.spearman is not None
    card = (result.folder / "README.md").read_text()
    assert "Before training it had the layers 0, 3 of `teacher`, counted from 0" in card
    assert "the vector of a text learned to be that of a teacher" in card
    assert "| `teacher` | `teacher` |" in card
    found = Encoder.load(result.folder, device="cpu")
    np.testing.assert_allclose(plain(result.folder).encode(WORDS), found.encode(WORDS), atol=1e-5)
    assert found.torch.transformer.layer_count == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]


def test_a_smaller_student_gets_a_projection_that_every_runtime_has(
    teacher: Path, small: Path, texts: Path, tmp_path: Path, plain: Callable[..., Any]
) -> None:
    result = distill(
        teacher, texts, tmp_path / "out", student=small,
        config=config(max_steps=40, checkpoint_steps=40),
    )  # fmt: skip
    encoder = Encoder.load(result.folder, device="cpu", backend="torch")
    assert encoder.dim == 32
    vectors = encoder.encode(WORDS)
    np.testing.assert_allclose(plain(result.folder).encode(WORDS), vectors, atol=1e-5)
    encoder.export(tmp_path / "export")
    exported = Encoder.load(tmp_path / "export", device="cpu")
    np.testing.assert_allclose(exported.encode(WORDS), vectors, atol=1e-4)
    assert distance(result.folder, teacher) < 0.4
    with pytest.raises(InputError, match=r"merge_base .*is not for a student that gets a new"):
        distill(teacher, texts, tmp_path / "no", student=small, config=config(merge_base=0.5))
    with pytest.raises(InputError, match=r"teacher's vectors have 32 numbers, .*student 16; leave"):
        distill(
            teacher, texts, tmp_path / "no", student=small,
            objective=TeacherVectors(projection=False), config=config(),
        )  # fmt: skip


def test_a_projection_starts_as_the_least_squares_fit() -> None:
    random = np.random.default_rng(0)
    given = random.normal(size=(50, 3)).astype(np.float32)
    weight, bias = random.normal(size=(5, 3)), random.normal(size=5)
    projection = Projection(3, 5)
    padded = projection(torch.from_numpy(given)).detach().numpy()
    np.testing.assert_array_equal(padded[:, :3], given)  # a padding before
    projection.fit(given, given @ weight.T + bias)
    np.testing.assert_allclose(projection.linear.weight.detach(), weight, atol=1e-5)
    np.testing.assert_allclose(projection.linear.bias.detach(), bias, atol=1e-5)


def test_cosines_are_learned_whatever_the_sizes(
    teacher: Path, small: Path, pairs: Path, tmp_path: Path
) -> None:
    def error(folder: Path | str) -> float:
        sides = [Encoder.load(path, pooling="mean", device="cpu") for path in (folder, teacher)]
        rows = [json.loads(line) for line in pairs.read_text().splitlines()]
        scores = [
            (one.encode([row["sentence1"] for row in rows])
             * one.encode([row["sentence2"] for row in rows])).sum(axis=1)
            for one in sides
        ]  # fmt: skip
        return float(np.square(scores[0] - scores[1]).mean())

    result = distill(
        teacher, pairs, tmp_path / "out", student=small, objective="teacher-scores",
        config=config(max_steps=60, checkpoint_steps=60),
    )  # fmt: skip
    assert error(result.folder) < error(small) / 2
    assert Encoder.load(result.folder, device="cpu").dim == 16


def test_translations_come_to_where_the_teacher_has_the_sentence(
    teacher: Path, parallel: Path, tmp_path: Path
) -> None:
    result = distill(
        teacher, None, tmp_path / "out", layers=3, parallel=parallel,
        config=config(max_steps=80, checkpoint_steps=80, learning_rate=2e-3),
    )  # fmt: skip
    before, after = (side.label_cosines["translation"] for side in (result.before, result.after))
    assert after > before
    wanted = Encoder.load(teacher, device="cpu").encode(WORDS)
    turned = [text[::-1] for text in WORDS]
    found = Encoder.load(result.folder, device="cpu").encode(turned)
    start = Encoder.load(teacher, device="cpu").encode(turned)
    assert np.square(found - wanted).sum() < np.square(start - wanted).sum() / 2
    assert result.record["counts"] == {"translation": len(WORDS)}


def test_vectors_keep_the_length_that_the_teacher_gives_them(
    teacher: Path, texts: Path, tmp_path: Path
) -> None:
    long = tmp_path / "long"
    Encoder.load(teacher, normalize=False, device="cpu").save(long)
    for place, (model, normalize, wanted) in enumerate(
        [(teacher, None, True), (long, None, False), (long, True, True)]
    ):
        settings = config(max_steps=1, normalize=normalize)
        result = distill(model, texts, tmp_path / f"out{place}", layers=1, config=settings)
        assert Encoder.load(result.folder, device="cpu").normalizes is wanted


def test_the_average_with_the_base_is_one_with_the_first_layers(
    teacher: Path, texts: Path, tmp_path: Path
) -> None:
    plain = distill(teacher, texts, tmp_path / "plain", layers=2, config=config())
    both = distill(teacher, texts, tmp_path / "both", layers=2, config=config(merge_base=0.4))
    start, end, found = (weights(one) for one in (teacher, plain.folder, both.folder))
    for name, tensor in found.items():
        if "pooler" in name:
            continue
        first = start[name.replace("encoder.layer.1.", "encoder.layer.3.")]
        wanted = 0.4 * first.double() + 0.6 * end[name].double()
        np.testing.assert_allclose(tensor.double(), wanted, atol=1e-6, err_msg=name)


# --- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"the student would be the teacher itself; .*--layers.*--student"),
        ({"layers": 5}, r"asks for 5 layers, but .* has 4"),
        ({"layers": [0, 4]}, r"names layer 4, but .* has 4, numbered from 0 to 3"),
        ({"layers": [1, 1]}, r"must be distinct and ascending numbers, found 1,1"),
        ({"layers": 2, "objective": "contrastive"}, r"one of teacher-vectors, not 'contrastive'"),
        ({"layers": 2, "parallel": "x.tsv"}, r"data and parallel .*do not go together"),
        ({"layers": 2, "config": TrainConfig(split="train")}, r"split .*is not for texts"),
        ({"layers": 2, "config": TrainConfig(matryoshka=(8,))}, r"matryoshka is not for texts"),
        ({"layers": 2, "config": TrainConfig(scale=(0, 5))}, r"scale is not for texts"),
    ],
)
def test_what_cannot_be_a_student_is_refused(
    arguments: dict[str, Any], message: str, teacher: Path, texts: Path, tmp_path: Path
) -> None:
    given = {"config": config(), **arguments}
    with pytest.raises(InputError, match=message) as caught:
        distill(teacher, texts, tmp_path / "out", **given)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]


def test_no_texts_are_refused(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected texts to distill on"):
        distill(teacher, None, tmp_path / "out", layers=2)
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(InputError, match="expected texts, found none"):
        distill(teacher, tmp_path / "blank.txt", tmp_path / "out", layers=2)


def test_several_processes_are_refused(
    teacher: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "MASTER_PORT": 1}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    with pytest.raises(InputError, match="distillation is for one process, found 2"):
        distill(teacher, texts, tmp_path / "out", layers=2, config=config())


# --- the teacher's vectors are encoded once


def resumed(teacher: Path, data: Path | None, output: Path, **more: Any) -> TrainResult:
    settings = more.pop("settings", {})
    return distill(teacher, data, output, config=config(resume=True, **settings), **more)


def encoded_rows(monkeypatch: pytest.MonkeyPatch, dim: int = 0) -> list[int]:
    """Counts the rows that teachers encode from now on, chunk by chunk."""
    counted: list[int] = []
    encode = teaching._encode

    def noted(task: Any, objective: Any, texts: Any, path: Path, *, job: str) -> None:
        vectors = EncodingRun.vectors

        def count(self: EncodingRun, *given: Any, **named: Any) -> Any:
            for chunk in vectors(self, *given, **named):
                counted.append(len(chunk))
                yield chunk

        with mock.patch.object(EncodingRun, "vectors", count):
            encode(task, objective, texts, path, job=job)

    monkeypatch.setattr(teaching, "_encode", noted)
    return counted


@pytest.mark.parametrize("case", ["layers", "projection", "scores", "parallel"])
def test_a_resumed_run_encodes_nothing_again_and_comes_to_the_same_weights(
    case: str, teacher: Path, small: Path, texts: Path, pairs: Path, parallel: Path,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    more: dict[str, dict[str, Any]] = {
        "layers": {"layers": 2},
        "projection": {"student": small},
        "scores": {"layers": [0, 2], "objective": "teacher-scores"},
        "parallel": {"layers": 2, "parallel": parallel},
    }
    data = {"scores": pairs, "parallel": None}.get(case, texts)
    whole = distill(teacher, data, tmp_path / "whole", config=config(), **more[case])
    counted = encoded_rows(monkeypatch)
    with interrupted_run(3):
        distill(teacher, data, tmp_path / "half", config=config(), **more[case])
    assert sum(counted) == len(WORDS)
    kept = tmp_path / "half.run" / "checkpoints" / "teacher"
    assert sorted(path.name for path in kept.iterdir()) == ["vectors.json", "vectors.npy"]
    found = resumed(teacher, data, tmp_path / "half", **more[case])
    assert sum(counted) == len(WORDS)
    assert weight_bytes(found.folder) == weight_bytes(whole.folder)
    assert not (tmp_path / "half.run").exists()


def test_damaged_vectors_are_encoded_again(
    teacher: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    whole = distill(teacher, texts, tmp_path / "whole", layers=2, config=config())
    with interrupted_run(3):
        distill(teacher, texts, tmp_path / "half", layers=2, config=config())
    path = tmp_path / "half.run" / "checkpoints" / "teacher" / "vectors.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    counted = encoded_rows(monkeypatch)
    with caplog.at_level(logging.WARNING):
        found = resumed(teacher, texts, tmp_path / "half", layers=2)
    assert "vectors.npy: does not match its SHA-256" in caplog.text
    assert sum(counted) == len(WORDS)
    assert weight_bytes(found.folder) == weight_bytes(whole.folder)


def test_an_interrupted_encoding_is_continued(
    teacher: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sbertkit.encoder.encoding._CHUNK_TEXTS", 10)
    whole = distill(teacher, texts, tmp_path / "whole", layers=2, config=config())
    write = "sbertkit.data.vector_files.VectorWriter.write"
    from sbertkit.data.vector_files import VectorWriter

    done = VectorWriter.write

    def interrupted(self: VectorWriter, *given: Any) -> None:
        done(self, *given)
        if self.log.rows >= 20:
            raise KeyboardInterrupt

    with mock.patch(write, interrupted), pytest.raises(KeyboardInterrupt):
        distill(teacher, texts, tmp_path / "half", layers=2, config=config())
    counted = encoded_rows(monkeypatch)
    found = resumed(teacher, texts, tmp_path / "half", layers=2)
    assert sum(counted) == len(WORDS) - 20
    assert weight_bytes(found.folder) == weight_bytes(whole.folder)


def test_another_teacher_or_other_layers_are_no_resume(
    teacher: Path, texts: Path, tmp_path: Path, tiny_copy: Callable[..., Path]
) -> None:
    with interrupted_run(3):
        distill(teacher, texts, tmp_path / "half", layers=2, config=config())
    with pytest.raises(InputError, match="base was"):
        resumed(teacher, texts, tmp_path / "half", layers=3)
    with pytest.raises(InputError, match="teacher_fingerprint was"):
        resumed(tiny_copy(), texts, tmp_path / "half", student=teacher, layers=2)
    with pytest.raises(InputError, match='distance was "mse", is "cosine"'):
        resumed(
            teacher, texts, tmp_path / "half", layers=2,
            objective=TeacherVectors(distance="cosine"),
        )  # fmt: skip


# --- the command


def test_the_command_trains_and_says_so(
    run: Run, teacher: Path, texts: Path, pairs: Path, parallel: Path, tmp_path: Path
) -> None:
    common = ("--teacher", teacher, "--max-steps", 2, "--no-guard", "--quiet", "--device", "cpu")
    dev = write_dev(tmp_path / "dev.tsv")
    ran = run("distill", texts, *common, "--layers", 3, "-o", tmp_path / "a", "--dev", dev)
    assert ran.status == 0, ran.err
    assert "teacher-vectors, pooling mean" in ran.out
    assert "dev Spearman" in ran.out
    ran = run(
        "distill", texts, *common, "--layers", "0,3", "--loss", "cosine", "-o", tmp_path / "b"
    )
    assert ran.status == 0, ran.err
    lineage = json.loads((tmp_path / "b" / "sbertkit.json").read_text())["lineage"]
    assert (lineage["layers"], lineage["settings"]["distance"]) == ([0, 3], "cosine")
    scores = ("--objective", "teacher-scores", "--layers", 1, "-o", tmp_path / "c")
    assert run("distill", pairs, *common, *scores).status == 0
    ran = run("distill", *common, "--parallel", parallel, "--layers", 2, "-o", tmp_path / "d")
    assert ran.status == 0, ran.err
    assert "translation" in ran.out


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--layers", "9"), 1, "asks for 9 layers"),
        (("--layers", "x"), 2, "expected whole numbers"),
        ((), 1, "the student would be the teacher itself"),
        (("--layers", 2, "--require-gain"), 2, "--require-gain needs --dev"),
        (("--layers", 2, "--objective", "teacher-scores", "--loss", "mse"), 2, "needs --objective"),
    ],
)
def test_wrong_usage_is_one_line(
    options: tuple[Any, ...], status: int, message: str, run: Run, teacher: Path, texts: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    ran = run("distill", texts, "--teacher", teacher, "-o", tmp_path / "out", *options)
    assert ran.status == status
    assert message in ran.err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_different_lengths_of_parallel_files_are_named_by_line(
    run: Run, teacher: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.en").write_text("a house\ntwo cats\n")
    (tmp_path / "x.de").write_text("ein Haus\n")
    files = ("--parallel", tmp_path / "x.en", "--parallel", tmp_path / "x.de")
    ran = run("distill", "--teacher", teacher, "--layers", 1, "-o", tmp_path / "out", *files)
    assert ran.status == 1
    assert "x.en has more: line 2 has no translation" in ran.err
