"""``export``, and encoding with what it writes."""

from pathlib import Path

import numpy as np
from command_line import Run

from sbertkit.encoder import Encoder


def test_an_export_is_written_compared_and_used(
    run: Run, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("5.0\ta boat\ta boat\n2.5\ta boat\ta goat\n0.0\ta boat\tmountain cheese\n")
    model = tiny_encoder.options.model
    options = ("--pooling", "mean", "-o", tmp_path / "export", "--pairs", pairs)
    ran = run("export", model, *options)
    assert ran.status == 0, ran.err
    assert "1.00000" in ran.out
    assert "->" in ran.out
    lines = tmp_path / "lines.txt"
    lines.write_text("a boat\nmountain cheese\n")
    ran = run("encode", lines, "-o", tmp_path / "v.npy", "--model", tmp_path / "export")
    assert ran.status == 0, ran.err
    expected = tiny_encoder.encode(["a boat", "mountain cheese"])
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)


def test_bad_input_is_one_line_and_nothing_is_written(
    run: Run, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    model = tiny_encoder.options.model
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "letter.txt").write_text("mine")
    for arguments in (
        (tmp_path / "nowhere", "-o", tmp_path / "out"),
        (model, "-o", taken),
        (model, "-o", tmp_path / "out", "--pairs", tmp_path / "nowhere.tsv"),
    ):
        ran = run("export", *arguments)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.splitlines()[-1].startswith("sbertkit: error:")
    assert not (tmp_path / "out").exists()
    assert [path.name for path in taken.iterdir()] == ["letter.txt"]
    ran = run("export", model, "-o", tmp_path / "out", "--calibrate", taken / "letter.txt")
    assert (ran.status, "calibrate is for precision int8" in ran.err) == (1, True)
    assert run("export", model, "-o", tmp_path / "out", "--precision", "fp16").status == 2
