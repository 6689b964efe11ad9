"""The package as others get it: public names, wheel, examples."""

import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest

import sbertkit

ROOT = Path(__file__).resolve().parents[1]
_CARDS = ("model_card", "merged_card", "use")


def test_every_public_name_can_be_loaded_and_explains_itself() -> None:
    assert {"Encoder", "SearchIndex", "train_nli", "InputError"} <= set(sbertkit.__all__)
    for name in sbertkit.__all__:
        assert getattr(sbertkit, name).__doc__, name
    with pytest.raises(AttributeError, match="nonsense"):
        _ = sbertkit.nonsense  # type: ignore[attr-defined]


def test_the_version_is_the_same_everywhere() -> None:
    found = re.search(r'version="([^"]+)"', (ROOT / "setup.py").read_text(encoding="utf-8"))
    assert found is not None
    assert found[1] == sbertkit.__version__
    assert f"## {found[1]}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[str]]:
    """Names of the files in a wheel that is built from a clean copy."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    leave_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "indexes")
    shutil.copytree(ROOT, copy, ignore=leave_out)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(copy)], check=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        yield set(archive.namelist())


def test_the_wheel_holds_every_module_and_the_package_data(wheel_names: set[str]) -> None:
    expected = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sbertkit").rglob("*.py")}
    expected |= {
        "sbertkit/py.typed",
        "sbertkit/__init__.pyi",
        "sbertkit/data/__init__.pyi",
        "sbertkit/evaluation/__init__.pyi",
        "sbertkit/pipeline/__init__.pyi",
        "sbertkit/retrieval/__init__.pyi",
        "sbertkit/data/wordnet/glosses.jsonl.gz",
        "sbertkit/data/wordnet/LICENSE.txt",
        "sbertkit/evaluation/report/templates/page.html",
        *(f"sbertkit/training/report/templates/{name}.md" for name in _CARDS),
    }
    expected |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "sbertkit").rglob("*.toml")}
    packed = {name for name in wheel_names if name.startswith("sbertkit/")}
    assert packed == expected
    folders = {Path(name).parts[0] for name in wheel_names}
    assert len(folders) == 2  # the package and its metadata: no tests, no eval


def test_every_folder_with_modules_is_a_package() -> None:
    for module in (ROOT / "sbertkit").rglob("*.py"):
        assert (module.parent / "__init__.py").is_file(), module


def test_a_requirement_is_pinned_in_the_constraints() -> None:
    pinned = set()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            assert version
            pinned.add(name.lower().replace("_", "-"))
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    required = set(re.findall(r'"([a-z0-9_-]+)(?:\[[a-z]+\])?>=', setup)) - {"faiss-gpu"}
    assert len(required) > 15
    assert {name.replace("_", "-") for name in required} <= pinned
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def run_example(name: str, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


@pytest.mark.usefixtures("bundled_encoder")
class TestExamples:
    def test_every_example_is_run_here(self) -> None:
        names = {path.stem for path in (ROOT / "examples").glob("*.py")}
        assert names == {
            "semantic_search",
            "reverse_dictionary",
            "encode_to_parquet",
            "train_on_nli",
        }

    def test_semantic_search(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_example("semantic_search.py", monkeypatch=monkeypatch)
        lines = capsys.readouterr().out.splitlines()
        assert "food:" in lines[1]
        assert "monkey:" in lines[4]

    def test_train_on_nli(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_example("train_on_nli.py", monkeypatch=monkeypatch)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("5 steps; random pairs of texts have the cosine 0.")
        assert lines[1].split()[0] in ("entailment", "neutral", "contradiction")

    def test_reverse_dictionary(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run_example(
            "reverse_dictionary.py", "a living being", "--words", "50", monkeypatch=monkeypatch
        )
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 5
        assert any("organism" in line for line in lines)

    def test_encode_to_parquet(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        tmp_path: Path,
    ) -> None:
        corpus, output = tmp_path / "c.txt", tmp_path / "v.parquet"
        corpus.write_text("one\ntwo\n")
        run_example("encode_to_parquet.py", str(corpus), str(output), monkeypatch=monkeypatch)
        assert "vectors (2, 384)" in capsys.readouterr().out
        assert pyarrow.parquet.read_table(output).num_rows == 2
