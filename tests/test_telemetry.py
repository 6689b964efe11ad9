"""Nothing leaves the machine, and nothing is written outside outputs and the cache, unasked."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_STRACE = shutil.which("strace")
_CONNECTION = re.compile(r"\b(connect|sendto|sendmsg|sendmmsg)\(.*AF_INET6?")
_OPENED = re.compile(r'\b(?:openat|creat|mkdir|mkdirat)\((?:AT_FDCWD, )?"([^"]+)"(.*)')

_COMMANDS: dict[str, Sequence[str]] = {
    "index": ("index", "corpus.txt", "-o", "out/i", "--model", "tiny", "--pooling", "mean"),
    "search": ("search", "index", "a text"),
    "encode with OpenVINO": (
        *("encode", "corpus.txt", "-o", "out/x.npy", "--model", "tiny", "--pooling", "mean"),
        *("--backend", "openvino"),
    ),
    "train-nli": ("train-nli", "nli.jsonl", "--base", "tiny", "-o", "out/m", "--no-guard"),
    "eval sts": ("eval", "sts", "sts.tsv", "--model", "tiny", "--pooling", "mean",
                 "--report", "out/r.html"),
    "demo": ("demo", "-o", "out/demo"),
}  # fmt: skip

_SLOW = ("demo", "train-nli", "eval sts")


def _python(code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return ran.stdout.strip()


def test_libraries_that_report_are_switched_off_before_they_are_imported() -> None:
    names = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK")
    for name in names:
        assert _python(f"import os, sbertkit; print(os.environ['{name}'])") == "1"


def test_what_the_user_has_set_stays() -> None:
    code = "import os; os.environ['DO_NOT_TRACK'] = '0'; import sbertkit; "
    assert _python(f"{code}print(os.environ['DO_NOT_TRACK'])") == "0"


def test_openvino_has_nothing_to_report_with() -> None:
    pytest.importorskip("openvino")
    code = "import sbertkit, openvino.tools.ovc as ovc; print(type(ovc.telemetry).__module__)"
    assert _python(code) == "openvino.tools.ovc.telemetry_stub"


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    """A folder with an input for every command."""
    from sbertkit import Encoder, SearchIndex

    root = tmp_path_factory.mktemp("material")
    shutil.copytree(tiny_bert, root / "tiny")
    (root / "out").mkdir()
    (root / "corpus.txt").write_text("".join(f"a text of number {row}\n" for row in range(50)))
    sts = "".join(f"{row % 6}\ta text {row}\ta text {row + 1}\n" for row in range(20))
    (root / "sts.tsv").write_text(f"score\tsentence1\tsentence2\n{sts}")
    labels = ("entailment", "neutral", "contradiction")
    nli = (
        {"premise": f"a text {row // 3}", "hypothesis": f"b text {row}", "label": labels[row % 3]}
        for row in range(60)
    )
    (root / "nli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nli))
    encoder = Encoder.load(root / "tiny", pooling="mean")
    SearchIndex.build(root / "corpus.txt", encoder, root / "index").close()
    return root


@pytest.mark.skipif(_STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ()) for name in _COMMANDS],
)
def test_a_command_asks_nobody_and_writes_nowhere_else(
    name: str, material: Path, tmp_path: Path
) -> None:
    home, trace, temporary = tmp_path / "home", tmp_path / "trace", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("XDG_", "HF_", "MPL", "ORT_", "DO_NOT", "SBERTKIT"))
    }
    calls = "connect,sendto,sendmsg,sendmmsg,openat,creat,mkdir,mkdirat"
    command = [str(_STRACE), "-f", "-qq", "-e", f"trace={calls}", "-o", str(trace)]
    ran = subprocess.run(
        [*command, sys.executable, "-m", "sbertkit", *_COMMANDS[name]],
        cwd=material,
        env={**environment, "HOME": str(home), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = trace.read_text(errors="replace").splitlines()
    assert [line for line in lines if _CONNECTION.search(line)] == []
    assert list(temporary.iterdir()) == []
    cache = str(home / ".cache" / "sbertkit")
    allowed = (str(material / "out"), "out/", cache, str(temporary), "/dev/", "/proc/")
    written = [path for path in _written(lines) if path != str(home / ".cache")]
    assert [path for path in written if not path.startswith(allowed)] == []


def _written(lines: Sequence[str]) -> list[str]:
    """The files that were opened for writing, and the folders that were made."""
    found = []
    for line in lines:
        opened = _OPENED.search(line)
        if opened is None or " = -1 " in line or "__pycache__" in opened[1]:
            continue
        if "mkdir" in line or "creat(" in line or re.search("O_WRONLY|O_RDWR|O_CREAT", opened[2]):
            found.append(opened[1])
    return found
