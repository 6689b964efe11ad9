"""The dev set: which split is read, the score, and training pairs that are in it."""

import gzip
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from sbertkit.data.nli import NliPair
from sbertkit.data.sts import StsPair, StsSet
from sbertkit.encoder import Encoder
from sbertkit.encoder.saving import lineage_name
from sbertkit.errors import InputError, MissingFile
from sbertkit.evaluation import evaluate_sts
from sbertkit.training.dev_set import DevSet, Overlap

PAIRS = [
    (5.0, "Two bakers argue about salt", "Bakers argue"),
    (3.5, "A heron stands in the water", "A bird is in the water"),
    (2.0, "x", "Two bakers argue about salt"),
    (0.5, "numbers 1 2 3", "A heron stands in the water"),
    (4.0, "x y", "x z"),
    (1.0, "the quick fox", "a lazy dog, asleep"),
]


def write(path: Path, *splits: str) -> Path:
    """A file whose pairs are in those splits in turn, or in none."""
    header = "split\tscore\tsentence1\tsentence2" if splits else "score\tsentence1\tsentence2"
    lines = [header]
    for row, pair in enumerate(PAIRS):
        cells = [str(cell) for cell in pair]
        lines.append("\t".join([splits[row % len(splits)], *cells] if splits else cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def dev_of(*pairs: tuple[str, str]) -> DevSet:
    rows = tuple(StsPair(1.0, first, second) for first, second in pairs)
    return DevSet(StsSet(rows, None, (), ""), "")


@pytest.mark.parametrize(
    ("splits", "chosen", "rows"),
    [
        (("train", "dev", "test"), "dev", 2),
        (("test", "dev"), "dev", 3),
        (("validation", "test"), "validation", 3),
        (("train", "val"), "val", 3),
        (("val", "validation", "dev"), "dev", 2),
        (("test",), "test", 6),  # of one split there is nothing to choose
        ((), None, 6),
    ],
)
def test_the_dev_split_is_read_by_any_of_its_names(
    tmp_path: Path, splits: tuple[str, ...], chosen: str | None, rows: int
) -> None:
    dev = DevSet.read(write(tmp_path / "sts.tsv", *splits))
    assert dev.pairs.split == chosen
    assert len(dev.pairs.pairs) == rows
    if len(splits) > 1:
        first = splits.index(str(chosen))
        assert dev.pairs.pairs[0] == StsPair(*PAIRS[first])


def test_of_other_splits_none_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 splits and no 'dev'"):
        DevSet.read(write(tmp_path / "sts.tsv", "train", "test"))


def test_the_hash_is_that_of_the_file_as_it_lies_there(tmp_path: Path) -> None:
    path = tmp_path / "sts.tsv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("1\ta\tb\n2\tc\td\n")
    assert DevSet.read(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert DevSet.read(str(path)).pairs.source == str(path)


def test_a_folder_is_read_as_evaluation_reads_it(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        path = tmp_path / "set" / f"{split}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"1\t{split}\tb\n2\tc\td\n", encoding="utf-8")
    dev = DevSet.read(tmp_path / "set")
    assert (dev.pairs.split, dev.pairs.pairs[0].first) == ("validation", "validation")
    assert dev.pairs.source == str(tmp_path / "set")
    before = dev.sha256
    (tmp_path / "set" / "test.tsv").write_text("1\tx\ty\n", encoding="utf-8")
    assert DevSet.read(tmp_path / "set").sha256 == before
    (tmp_path / "set" / "validation.tsv").write_text("1\tx\tb\n2\tc\td\n", encoding="utf-8")
    assert DevSet.read(tmp_path / "set").sha256 != before


def test_a_data_set_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(InputError, match=r"stsb: no such file .* sbertkit data get stsb"):
        DevSet.read("stsb")
    (tmp_path / "data" / "sts").mkdir(parents=True)
    path = write(tmp_path / "data" / "sts" / "stsb.tsv", "train", "dev")
    dev = DevSet.read("stsb")
    assert (dev.pairs.split, len(dev.pairs.pairs), dev.pairs.source) == ("dev", 3, "stsb")
    assert dev.sha256 == DevSet.read(path).sha256
    assert lineage_name(dev.pairs.source) == "stsb"


def piped(content: str) -> DevSet:
    """The dev set of those bytes, which can be read once."""
    reading, writing = os.pipe()
    os.write(writing, content.encode())
    os.close(writing)
    try:
        return DevSet.read(f"/dev/fd/{reading}")
    finally:
        os.close(reading)


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no names of open files")
def test_a_pipe_is_read_once_and_its_hash_is_of_what_was_read() -> None:
    dev = piped("1\ta\tb\n2\tc\td\n")
    assert (len(dev.pairs.pairs), dev.pairs.source) == (2, "pipe")
    assert piped("1.0\ta\tb\n2\tc\td\n").sha256 == dev.sha256
    for other in ("1\ta\tb\n3\tc\td\n", "1\ta\tb\n2\tc\te\n", "2\tc\td\n1\ta\tb\n"):
        assert piped(other).sha256 != dev.sha256


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        DevSet.read(tmp_path / "none.tsv")


@pytest.mark.parametrize("splits", [("train", "dev"), ()])
def test_the_score_is_that_of_the_evaluation(
    tmp_path: Path, tiny_encoder: Encoder, splits: tuple[str, ...]
) -> None:
    dev = DevSet.read(write(tmp_path / "sts.tsv", *splits))
    expected = evaluate_sts(tiny_encoder, dev.pairs)
    assert dev.score(tiny_encoder).value == expected.spearman
    assert dev.score(tiny_encoder).interval is None
    assert dev.score(tiny_encoder, interval=True) == (expected.spearman, expected.interval)


def test_an_undefined_score_is_none_without_an_interval(tiny_encoder: Encoder) -> None:
    dev = dev_of(("a", "b"), ("a", "c"), ("d", "e"))  # all of the same gold score
    assert dev.score(tiny_encoder, interval=True) == (None, None)
    assert dev_of(("a", "b")).score(tiny_encoder, interval=True) == (None, None)


def test_scoring_switches_dropout_off(tmp_path: Path, tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    dev = DevSet.read(write(tmp_path / "sts.tsv"))
    expected = dev.score(encoder)
    for seed in (1, 2):
        torch.manual_seed(seed)
        encoder.torch.network.train()
        assert dev.score(encoder) == expected
        assert not encoder.torch.network.training


def test_vectors_that_are_not_finite_are_an_error_and_no_score(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    with torch.no_grad():
        next(encoder.torch.network.parameters()).fill_(np.nan)
    with pytest.raises(InputError, match="NaN or infinite"):
        dev_of(("a", "b"), ("c", "d")).score(encoder)


def test_a_score_is_plain_json(tmp_path: Path, tiny_encoder: Encoder) -> None:
    score = DevSet.read(write(tmp_path / "sts.tsv")).score(tiny_encoder, interval=True)
    assert score.interval is not None
    assert json.loads(json.dumps(score, allow_nan=False))[0] == score.value


# --- overlap


def overlap(dev: DevSet, *pairs: tuple[str, str]) -> Overlap:
    return dev.overlap([NliPair(*pair, row % 3) for row, pair in enumerate(pairs)])


def test_a_training_pair_that_is_a_dev_pair_is_found_by_its_row() -> None:
    dev = dev_of(("a b", "c"), ("d", "e"))
    found = overlap(dev, ("x", "y"), ("d", "e"), ("a b", "c"), ("d", "e"))
    assert found == Overlap((1, 2, 3), 0)


@pytest.mark.parametrize(
    "pair",
    [
        ("C", "A b"),
        ("a  b", " c "),
        ("\tA\u00a0B\n", "c"),
        ("c", "a b"),
    ],
)
def test_order_case_and_blanks_do_not_count(pair: tuple[str, str]) -> None:
    assert overlap(dev_of(("a b", "c")), pair) == Overlap((0,), 0)


def test_letters_are_folded_beyond_ascii() -> None:
    dev = dev_of(("Straße", "ÀÉ"), ("Σίσυφος", "x"))
    assert overlap(dev, ("STRASSE", "àé"), ("ΣΊΣΥΦΟΣ", "X")) == Overlap((0, 1), 0)


@pytest.mark.parametrize("pair", [("ab", "c"), ("a b.", "c"), ("a b", "a b"), ("c", "c")])
def test_pairs_that_differ_in_more_are_others(pair: tuple[str, str]) -> None:
    assert overlap(dev_of(("a b", "c")), pair).rows == ()


def test_pairs_that_share_one_sentence_are_counted_apart() -> None:
    dev = dev_of(("a", "b"), ("c", "d"))
    pairs = [("a", "x"), ("x", "B"), ("a", "c"), ("b", "a"), ("x", "y"), ("a", "a")]
    assert overlap(dev, *pairs) == Overlap((3,), 4)


def test_a_dev_pair_of_equal_sentences_is_one_too() -> None:
    dev = dev_of(("a", "a"))
    assert overlap(dev, ("A", "a"), ("a", "b")) == Overlap((0,), 1)


def test_without_anything_in_common_there_is_none() -> None:
    assert overlap(dev_of(("a", "b")), ("x", "y")) == Overlap((), 0)
    assert overlap(dev_of(("a", "b"))) == Overlap((), 0)
