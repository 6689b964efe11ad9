"""When, with what and on what a result was measured."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sbertkit.encoder.backends import BACKENDS
from sbertkit.evaluation import environment as module
from sbertkit.evaluation.environment import environment, environment_facts

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder


def test_date_versions_and_machine_are_recorded(tiny_encoder: "Encoder") -> None:
    found = environment(tiny_encoder)
    assert json.loads(json.dumps(found)) == found
    age = datetime.now(UTC) - datetime.fromisoformat(found["date"])
    assert timedelta(0) <= age < timedelta(minutes=5)
    assert {"numpy", "torch", "transformers", "tokenizers"} <= found["libraries"].keys()
    assert found["machine"]["cores"] == os.cpu_count()
    assert found["machine"]["cpu"]
    assert (found["precision"], found["device"]) == ("fp32", "cpu")
    assert found["backend"] in BACKENDS
    assert {"precision", "backend", "device"}.isdisjoint(environment())


def test_an_export_names_the_library_that_runs_it(tiny_encoder: "Encoder", tmp_path: Path) -> None:
    from sbertkit.encoder import Encoder

    tiny_encoder.export(tmp_path / "export")
    exported = Encoder.load(str(tmp_path / "export"), backend="onnx")
    assert environment(exported)["backend"] == "onnx"


def test_the_processor_is_named_where_the_system_tells_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "_CPU_INFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A CPU @ 2 GHz\nflags : fpu\n")
    assert environment()["machine"]["cpu"] == "A CPU @ 2 GHz"
    (tmp_path / "cpuinfo").unlink()
    assert environment()["machine"]["cpu"]


def test_facts_are_what_is_known() -> None:
    assert environment_facts({}) == {}
    facts = environment_facts(environment())
    assert list(facts) == ["date", "machine", "versions"]
    assert str(facts["date"]).endswith(" UTC")
