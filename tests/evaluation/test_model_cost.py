"""What encoders cost: measured in processes of their own, whose failures are reasons."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sbertkit.encoder import Encoder
from sbertkit.errors import InputTypeError, MissingFile
from sbertkit.evaluation import ModelCost, measure_models
from sbertkit.evaluation import model_cost as module

TEXTS = [f"a text of some words, number {number}" for number in range(20)]


def test_a_model_is_measured_beside_one_that_fails(tiny_encoder: Encoder, tmp_path: Path) -> None:
    tiny_encoder.save(tmp_path / "model")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "config.json").write_text('{"model_type": "bert"}')
    names = [str(tmp_path / "model"), str(bad), "no/such-model"]
    measured = measure_models(names, TEXTS)
    (cost,) = measured.costs
    assert (cost.model, cost.dim, cost.max_tokens) == (
        names[0],
        tiny_encoder.dim,
        tiny_encoder.max_tokens,
    )
    assert cost.parameters == sum(one.numel() for one in tiny_encoder.torch.network.parameters())
    assert cost.texts == len(TEXTS)
    assert cost.tokens == tiny_encoder.encode_with_report(TEXTS).report.tokens
    assert cost.texts_per_second > 0
    assert 0 < cost.load_seconds < 600
    # A process with torch has at least 100 MB; that of the tests has far more than this one.
    assert 1e8 < cost.memory < 5e9
    assert (cost.device, cost.device_memory, cost.precision) == ("cpu", 0, "fp32")
    json.dumps(cost.to_dict(), allow_nan=False)
    assert measured.failed.keys() == set(names[1:])
    assert "safetensors" in measured.failed[str(bad)]
    assert "was not found" in measured.failed["no/such-model"]


def _answered(monkeypatch: pytest.MonkeyPatch, **result: Any) -> None:
    done = subprocess.CompletedProcess(
        [], **{"returncode": 0, "stdout": "", "stderr": "", **result}
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_a_process_that_dies_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    _answered(monkeypatch, returncode=-9, stderr="something\nKilled\n")
    assert measure_models(["m"], TEXTS).failed == {"m": "its process ended with status -9: Killed"}
    _answered(monkeypatch, returncode=0, stdout="a library's words")
    assert measure_models(["m"], TEXTS).failed == {"m": "its process ended with status 0"}
    _answered(monkeypatch, stdout='{"cost": {"model": "m"}}\n')
    assert measure_models(["m"], TEXTS).failed == {"m": "its process ended with status 0"}


def test_a_process_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    monkeypatch.setattr(module, "_PROGRAM", "import time; time.sleep(60)")
    assert measure_models(["m"], TEXTS).failed == {"m": "no answer after 0 seconds"}


def test_what_a_library_prints_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = ModelCost("m", 4, 8, 100, 1.5, 20, 90, 0.5, 10**9, 0, "cpu", "fp32")
    line = module.answer_line(cost=cost)
    _answered(monkeypatch, stdout=f"{{}}\nnoise\n{line}\n")
    assert measure_models(["m", "m"], TEXTS).costs == (cost,)  # each model once
    assert cost.texts_per_second == 40


def test_the_working_folder_lends_no_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('mine')")
    (tmp_path / "torch.py").write_text("raise SystemExit('mine')")
    monkeypatch.chdir(tmp_path)
    failed = measure_models([str(tmp_path)], TEXTS).failed
    assert "mine" not in failed[str(tmp_path)]
    assert "config.json" in failed[str(tmp_path)] or "model folder" in failed[str(tmp_path)]


def test_a_corpus_that_is_missing_is_refused_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    with pytest.raises(MissingFile):
        measure_models(["m"], tmp_path / "nothing.txt")


def test_memory_is_that_of_the_process_and_not_of_its_parent() -> None:
    # A parent of 400 MB starts a process of a few: what getrusage says would be the parent's.
    program = (
        "import subprocess, sys\n"
        "big = bytearray(400_000_000)\n"
        "small = 'from sbertkit.evaluation.model_process import _memory; print(_memory())'\n"
        "print(subprocess.check_output([sys.executable, '-c', small], text=True))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True
    )
    assert 5_000_000 < int(ran.stdout) < 300_000_000


def test_one_model_instead_of_a_list_is_refused() -> None:
    with pytest.raises(InputTypeError, match="models must be a list of folders or names"):
        measure_models("ab", ["some text"])
