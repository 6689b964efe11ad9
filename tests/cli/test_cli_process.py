"""What only a process of its own shows: imports, signals, streams."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sbertkit import SearchIndex
from sbertkit.encoder import Encoder

HEAVY = (
    *("torch", "transformers", "sentence_transformers", "faiss", "onnxruntime", "sklearn"),
    *("numpy", "pyarrow", "rich"),
)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    "code",
    [
        "import sbertkit",
        "from sbertkit.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from sbertkit.cli import main\ntry: main(['index', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_neither_import_nor_help_loads_a_heavy_library(code: str) -> None:
    ran = python(
        f"{code}\nimport sys\nprint('loaded:', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert ran.stderr == ""
    assert "loaded: []" in ran.stdout


def test_a_closed_standard_output_is_no_error() -> None:
    code = "import os, sys\nos.close(1)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    ran = subprocess.run(
        [sys.executable, "-c", code, "-m", "sbertkit", "--help"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_reader_who_has_enough_is_no_error_to_tell(tmp_path: Path, tiny_encoder: Encoder) -> None:
    documents = [(str(row), f"text {row} " + "of many words " * 9) for row in range(200)]
    SearchIndex.build(documents, tiny_encoder, tmp_path / "i").close()
    process = subprocess.Popen(
        [sys.executable, "-m", "sbertkit", "search", str(tmp_path / "i"), *"abcdefgh", "-k", "200",
         "--format", "jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b"{")
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert b"Traceback" not in errors
    assert b"ipe" not in errors  # neither Broken pipe nor BrokenPipeError


@pytest.fixture(scope="module")
def exported(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that loads fast, without torch."""
    folder = tmp_path_factory.mktemp("exported") / "model"
    tiny_encoder.export(folder)
    return str(folder)


FULL = "standard output cannot be written: No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a POSIX shell and /dev/full")
@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">/dev/null", 0, ""),
        (">/dev/null 2>&-", 0, ""),
        (">/dev/null 2>/dev/full", 0, ""),
        (">/dev/null <&-", 0, ""),
        (">&-", 1, "sbertkit: error: standard output cannot be written: it is closed\n"),
        (">/dev/full", 1, f"sbertkit: error: {FULL}\n"),
        (">/dev/full 2>/dev/full", 1, ""),
        (">&- 2>&- <&-", 1, ""),
    ],
)
def test_redirected_streams_give_their_status(
    tmp_path: Path, exported: str, redirected: str, status: int, said: str
) -> None:
    corpus, place = tmp_path / "corpus.txt", tmp_path / "index"
    corpus.write_text("a boat\n\na train\n")  # a blank line, of which a warning tells
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "sbertkit",
         *("index", str(corpus), "-o", str(place), "--model", exported)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
    assert ran.returncode == status
    lines = ran.stderr.splitlines(keepends=True)
    assert "".join(line for line in lines if not line.startswith("warning: ")) == said
    with SearchIndex.open(place) as index:
        assert len(index) == 2
        assert index.verify() == ()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_build_outlives_the_terminal_that_shows_its_bar(tmp_path: Path, exported: str) -> None:
    corpus, place = tmp_path / "corpus.txt", tmp_path / "index"
    corpus.write_text("".join(f"line {row} of many\n" for row in range(3_000)))
    terminal, end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sbertkit", "index", str(corpus), "-o", str(place),
         "--model", exported],
        stdout=subprocess.DEVNULL,
        stderr=end,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(end)
    assert os.read(terminal, 1)  # the bar is there
    os.close(terminal)
    assert process.wait(timeout=120) == 0
    with SearchIndex.open(place) as index:
        assert len(index) == 3_000


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_command_whose_output_nobody_reads_ends_by_a_signal(
    tmp_path: Path, tiny_encoder: Encoder
) -> None:
    documents = [(str(row), f"text {row} " + "of many words " * 90) for row in range(200)]
    SearchIndex.build(documents, tiny_encoder, tmp_path / "i").close()
    process = subprocess.Popen(
        [sys.executable, "-m", "sbertkit", "search", str(tmp_path / "i"), *"abcdefgh", "-k", "200",
         "--format", "jsonl"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(1)  # from now on the pipe is full, or will soon be
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 143
    process.stdout.close()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(signal.SIGINT, 130, ["sbertkit: interrupted"]), (signal.SIGTERM, 143, [])],
)
def test_a_signal_in_a_build_leaves_nothing(
    tmp_path: Path, tiny_encoder: Encoder, number: signal.Signals, status: int, said: list[str]
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"line {row} of many\n" for row in range(100_000)))
    work = tmp_path / "work"
    work.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "sbertkit", "index", str(corpus), "-o", str(work / "deep" / "index"),
         "--model", tiny_encoder.options.model, "--pooling", "mean", "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(work.rglob("vectors.npy")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert errors.splitlines()[-1:] == said
    assert "Traceback" not in errors
    assert list(work.iterdir()) == []


def test_an_interrupt_amid_an_executed_string_has_its_own_status(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "from sbertkit import cli\nfrom sbertkit.cli import app\n"
        "app.run = lambda _: exec('raise KeyboardInterrupt')\ncli.main([])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "program"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stderr) == (130, "sbertkit: interrupted\n")
