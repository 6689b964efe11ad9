"""Pairs of segments: halves without false negatives, the tokenizer's own form, joint masking."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from sbertkit import Encoder, InputError, MaskedSpans, MaskedTokens, MaskedWords, ReadOptions
from sbertkit.training.data_forms import UNLABELED
from sbertkit.training.pretraining.draws import HELD_OUT, Draws
from sbertkit.training.pretraining.pair_head import pair_head
from sbertkit.training.pretraining.pieces import Example
from sbertkit.training.pretraining.segments import SegmentPairs
from sbertkit.training.pretraining.tasks import JointTask, NextSegment, SegmentOrder
from sbertkit.training.pretraining.tasks.masking import MaskingTask
from sbertkit.training.pretraining.tasks.segments import FALSE, TRUE, SegmentTask
from sbertkit.training.pretraining.vocabulary import Vocabulary
from sbertkit.training.texts import read_texts

TASKS: list[SegmentTask] = [NextSegment(), SegmentOrder()]
SEED = 11
EPOCHS = 6
_WORDS = ("salt", "fox", "heron", "bread", "sea", "owl", "tea", "judge", "aunt", "roof")


def documents(count: int = 400) -> list[list[str]]:
    """Documents of 1 to 14 lines of a few words; many lines are in several documents."""
    random = np.random.default_rng(3)
    pool = [" ".join(random.choice(_WORDS, random.integers(1, 5))) + "." for _ in range(300)]
    made = [
        [pool[line] for line in random.integers(len(pool), size=random.integers(1, 15))]
        for _ in range(count)
    ]
    return [*made, *made[:20]]  # some of them twice


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    folder = tiny_models.bert(tmp_path_factory.mktemp("pairs") / "model")
    return Encoder.load(folder, pooling="mean", device="cpu")


def pairs_of(task: SegmentTask, encoder: Encoder, texts: Sequence[Sequence[str]]) -> SegmentPairs:
    pairs = task.pieces(encoder, pack=False)
    pairs.read("\n".join(lines) for lines in texts)
    return cast("SegmentPairs", pairs)


def lines_of(ids: Any, encoder: Encoder) -> tuple[str, ...]:
    """The lines of a segment, each of which ends with a full stop."""
    text = encoder.spec.tokenizer.hf.decode(ids).replace(" .", ".")
    return tuple(f"{line.strip()}." for line in text.split(".") if line.strip())


def segments(example: Example, encoder: Encoder) -> list[tuple[str, ...]]:
    """The lines of both segments of ``[CLS] first [SEP] second [SEP]``."""
    ends = np.flatnonzero(example.ids == encoder.spec.tokenizer.hf.sep_token_id)
    assert len(ends) == 2
    first, second = example.ids[1 : ends[0]], example.ids[ends[0] + 1 : ends[1]]
    return [lines_of(one.tolist(), encoder) for one in (first, second)]


def is_run(lines: Sequence[str], document: Sequence[str]) -> bool:
    size = len(lines)
    return any(tuple(document[at : at + size]) == lines for at in range(len(document) - size + 1))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_half_of_the_pairs_are_true_and_no_negative_is(task: SegmentTask, encoder: Encoder) -> None:
    texts = documents()
    pairs = pairs_of(task, encoder, texts)
    follows = {pair for lines in texts for pair in itertools.pairwise(lines)}
    labels: list[int] = []
    for epoch in (*range(EPOCHS), HELD_OUT):
        for number in range(len(pairs.tokens)):
            example = pairs.example(number, Draws(SEED, epoch))
            labels.append(example.label)
            if epoch not in (0, HELD_OUT):
                continue
            first, second = segments(example, encoder)
            assert first
            assert second
            if example.label == TRUE:
                assert any(is_run(first + second, lines) for lines in texts)
            elif task.name == "sop":
                assert any(is_run(second + first, lines) for lines in texts)
                assert first + second != second + first
            else:
                assert (first[-1], second[0]) not in follows
    assert len(labels) > 2_000
    assert np.mean(labels) == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_pairs_differ_from_epoch_to_epoch_and_are_the_same_again(
    task: SegmentTask, encoder: Encoder
) -> None:
    pairs = pairs_of(task, encoder, documents(60))

    def drawn(epoch: int) -> list[tuple[Any, ...]]:
        found = [pairs.example(n, Draws(SEED, epoch)) for n in range(len(pairs.tokens))]
        return [(one.ids.tolist(), one.label) for one in found]

    made = [drawn(epoch) for epoch in range(4)]
    assert all(made[a] != made[b] for a in range(4) for b in range(a))
    assert made[2] == drawn(2)
    flips = [sum(a[1] != b[1] for a, b in zip(made[0], later, strict=True)) for later in made[1:]]
    assert max(flips) > len(made[0]) // 10, "the class of a run is not always the same"


def test_runs_are_as_long_as_the_model_reads_and_some_are_shorter(encoder: Encoder) -> None:
    long = [[f"{'salt ' * (1 + row % 3)}{row % 10}." for row in range(400)]]
    pairs = pairs_of(SegmentOrder(), encoder, long)
    lengths = pairs.lengths
    assert lengths.max() <= (encoder.max_tokens or 0)
    assert (lengths > lengths.max() - 20).mean() > 0.7
    assert (lengths < lengths.max() - 20).sum() >= 2
    sizes = [len(pairs.example(n, Draws(SEED, 0)).ids) for n in range(len(lengths))]
    assert sizes == lengths.tolist()


def test_a_sentence_that_is_longer_than_half_of_the_model_is_divided(encoder: Encoder) -> None:
    text = " ".join(["heron"] * 200)
    pairs = pairs_of(SegmentOrder(), encoder, [[text]])
    assert len(pairs.tokens) > 10
    for number in range(len(pairs.tokens)):
        example = pairs.example(number, Draws(SEED, 0))
        assert len(example.ids) <= (encoder.max_tokens or 0)
        counts = np.bincount(example.words[example.words >= 0])
        assert (counts == 4).all(), "words are not divided"


def test_sentences_of_a_line_are_segments_too(encoder: Encoder) -> None:
    pairs = pairs_of(SegmentOrder(), encoder, [["A heron eats. Two bakers run."]])
    found = {
        (segments(one, encoder)[0], one.label)
        for epoch in range(20)
        for one in [pairs.example(0, Draws(SEED, epoch))]
    }
    assert found == {(("a heron eats.",), TRUE), (("two bakers run.",), FALSE)}


def test_documents_of_one_segment_are_left_out_and_counted(encoder: Encoder) -> None:
    pairs = pairs_of(NextSegment(), encoder, [["a b."], ["a b.", "c d."], ["x."]])
    assert len(pairs.tokens) == 1
    assert pairs.left_out == {"since they have a single segment": 2}


def test_no_length_tells_true_pairs_from_others(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path / "model")
    encoder = Encoder.load(folder, pooling="mean", device="cpu", max_tokens=60)
    random = np.random.default_rng(8)
    texts = [
        [" ".join(random.choice(_WORDS, random.integers(1, 9))) + "." for _ in range(size)]
        for size in random.integers(5, 60, 80)
    ]
    pairs = pairs_of(NextSegment(), encoder, texts)
    made = [
        pairs.example(n, Draws(SEED, epoch)) for n in range(len(pairs.tokens)) for epoch in (1, 2)
    ]
    lengths = np.array([len(one.ids) for one in made])
    labels = np.array([one.label for one in made])
    assert lengths.max() <= 60
    accuracies = [np.mean((lengths < limit) == (labels == FALSE)) for limit in range(20, 61)]
    assert max(max(accuracies), 1 - min(accuracies)) < 0.55


def test_a_pair_without_a_negative_keeps_its_own_second_segment(encoder: Encoder) -> None:
    none = pairs_of(NextSegment(), encoder, [["a.", "b."], ["c.", "b."]])
    assert not any(none.example(0, Draws(SEED, epoch)).label for epoch in range(30))
    some = pairs_of(NextSegment(), encoder, [["a.", "b."], ["a.", "d.", "c.", "d."]])
    found = {
        (segments(one, encoder)[1], one.label)
        for epoch in range(30)
        for one in [some.example(0, Draws(SEED, epoch))]
    }
    assert found == {(("b.",), TRUE), (("c.", "d."), FALSE)}


FAMILIES = [
    *("bert", "roberta", "distilbert", "mpnet", "albert", "electra", "deberta_v2"),
    *("xlm_roberta", "modernbert", "big_bird"),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_and_types_are_those_of_the_tokenizer(family: str, tmp_path: Path) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    task = SegmentOrder()
    pairs = pairs_of(task, encoder, [["two bakers eat", "a heron sings"]])
    truths = [pairs.example(0, Draws(SEED, epoch)) for epoch in range(20)]
    example = next(one for one in truths if one.label == TRUE)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    expected = tokenizer("two bakers eat", "a heron sings", return_token_type_ids=True)
    assert example.ids.tolist() == expected["input_ids"]
    special = tokenizer.get_special_tokens_mask(expected["input_ids"], already_has_special_tokens=1)
    assert (example.words < 0).astype(int).tolist() == special
    batch = task.tensors_of([example], pairs.padder, Draws(SEED, 0))
    if "types" in batch:
        kinds = encoder.torch.transformer.model.config.type_vocab_size or 2
        expected_types = np.minimum(expected["token_type_ids"], kinds - 1)
        assert batch["types"][0].tolist() == expected_types.tolist()


@pytest.mark.parametrize("kind", [MaskedTokens, MaskedWords, MaskedSpans])
def test_the_share_of_masked_tokens_of_pairs_is_exact(kind: Any, encoder: Encoder) -> None:
    masking: MaskingTask = kind(vocabulary=Vocabulary.of(encoder))
    task = JointTask(masking, NextSegment())
    pairs = task.pieces(encoder, pack=False)
    pairs.read("\n".join(lines) for lines in documents())
    total = chosen = masked = 0
    special = np.array(encoder.spec.tokenizer.hf.all_special_ids)
    for epoch in range(EPOCHS):
        numbers = np.arange(len(pairs.tokens))
        for part in np.array_split(numbers, len(numbers) // 32):
            batch = task.batch(pairs, part, Draws(SEED, epoch))
            assert not np.isin(batch["targets"].numpy(), special).any()
            assert set(batch["labels"].tolist()) <= {TRUE, FALSE}
            replaced = batch["input_ids"].flatten()[batch["places"]]
            chosen += len(replaced)
            masked += int((replaced == masking.vocabulary.mask).sum())  # type: ignore[union-attr]
            total += int(batch["mask"].sum()) - 3 * len(part)
    assert total > 80_000
    assert chosen / total == pytest.approx(0.15, abs=0.002)
    assert masked / chosen == pytest.approx(0.8, abs=0.01)


def test_repeated_masks_are_those_of_the_same_pairs(encoder: Encoder) -> None:
    masking = MaskedTokens(static=2, vocabulary=Vocabulary.of(encoder))
    task = JointTask(masking, NextSegment())
    pairs = task.pieces(encoder, pack=False)
    pairs.read("\n".join(lines) for lines in documents(60))
    numbers = np.arange(len(pairs.tokens))
    batches = [task.batch(pairs, numbers, Draws(SEED, epoch)) for epoch in range(4)]
    for name in ("input_ids", "labels", "places"):
        assert torch.equal(batches[0][name], batches[2][name])
        assert torch.equal(batches[1][name], batches[3][name])
    assert not torch.equal(batches[0]["labels"], batches[1]["labels"])


# --- heads


@pytest.mark.parametrize(
    ("family", "model", "name", "scores"),
    [
        ("bert", "BertForPreTraining", "next-segment", "seq_relationship_logits"),
        ("ernie", "ErnieForPreTraining", "next-segment", "seq_relationship_logits"),
        ("big_bird", "BigBirdForPreTraining", "next-segment", "seq_relationship_logits"),
        ("albert", "AlbertForPreTraining", "segment-order", "sop_logits"),
    ],
)
def test_the_head_of_a_checkpoint_gives_the_scores_of_the_library(
    family: str, model: str, name: str, scores: str, tmp_path: Path
) -> None:
    folder = tiny_models.ARCHITECTURES[family](tmp_path / "model")
    torch.manual_seed(3)
    settings = transformers.AutoConfig.from_pretrained(folder)
    whole = getattr(transformers, model)(settings).eval()
    for parameter in whole.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    whole.save_pretrained(folder)
    encoder = Encoder.load(folder, pooling="mean", device="cpu")
    ids = torch.arange(5, 25)[None]
    with torch.no_grad():
        expected = whole(input_ids=ids, attention_mask=torch.ones_like(ids))
        states = whole.base_model(input_ids=ids, attention_mask=torch.ones_like(ids))[0]
        found = pair_head(encoder, name)(states[:, 0])
    assert torch.allclose(found, getattr(expected, scores), atol=1e-4)


def test_the_loss_is_the_cross_entropy_of_the_first_real_token() -> None:
    states = torch.randn(2 * 4, 3, generator=torch.Generator().manual_seed(4))
    classifier = torch.nn.Linear(3, 2)
    head = torch.nn.ModuleDict({"segment-order": classifier})
    mask = torch.tensor([[1, 1, 1, 0], [0, 0, 1, 1]])  # padded on the right, and on the left
    batch = {"mask": mask, "labels": torch.tensor([1, 0])}
    found = SegmentOrder().states_loss(states, torch.nn.Identity(), batch, head)
    scores = classifier(states[[0, 6]]).detach().double().numpy()
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert float(found.loss.detach()) == pytest.approx(-(logs[0, 1] + logs[1, 0]) / 2, rel=1e-5)
    assert int(found.correct) == int(scores[0, 1] > scores[0, 0]) + int(scores[1, 0] > scores[1, 1])


# --- documents


def test_blank_lines_divide_the_documents_of_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "books.txt"
    path.write_text("\n\na one\na two\n \t\nb one\n\n\nc one\nc two\n", encoding="utf-8")
    data = read_texts(UNLABELED, [str(path)], ReadOptions(), documents=True)
    assert data.rows == [("a one\na two",), ("b one",), ("c one\nc two",)]
    assert data.sources[0].rows == 3
    single = read_texts(UNLABELED, [str(path)], ReadOptions())
    assert len(single.rows) == 5


def test_records_are_documents(tmp_path: Path) -> None:
    path = tmp_path / "books.jsonl"
    path.write_text('{"text": "a one\\n\\na two"}\n{"text": "b"}\n', encoding="utf-8")
    data = read_texts(UNLABELED, [str(path)], ReadOptions(), documents=True)
    assert data.rows == [("a one\n\na two",), ("b",)]


def test_packing_pairs_is_refused(encoder: Encoder) -> None:
    with pytest.raises(InputError, match=r"pack.*not for the task sop"):
        SegmentOrder().pieces(encoder, pack=True)


def test_a_limit_without_room_for_two_segments_is_refused(tmp_path: Path) -> None:
    folder = tiny_models.bert(tmp_path / "model")
    small = Encoder.load(folder, pooling="mean", device="cpu", max_tokens=4)
    with pytest.raises(InputError, match="room for two segments"):
        NextSegment().pieces(small, pack=False)
