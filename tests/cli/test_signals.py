"""Ctrl-C and SIGTERM: at any moment of any command, and whatever other threads there are."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from sbertkit import Encoder, Reranker
from sbertkit.cli import signals
from sbertkit.cli.app import app
from sbertkit.cli.signals import handled_signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

_SECONDS_TO_END = 60.0
"""A hang, whatever else the cores do; `eval/hangs.py` measures how long it takes."""

_STARTED = 2.5
"""Seconds within which the signal is sent; commands take about as long."""

_QUIET_MODEL = ("--model", "tiny", "--pooling", "mean")


@pytest.fixture(autouse=True)
def heard_interrupts() -> Iterator[None]:
    """A process that was started in the background may pass an ignored SIGINT on."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# --- in this process


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_signal_becomes_an_exception_whatever_thread_gets_it(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with pytest.raises(raised), handled_signals():  # noqa: PT012
            # Whichever thread the system chooses, Python answers in the main one, which must be
            # woken: a sleep that nobody interrupts would go on.
            signal.pthread_kill(thread.ident or 0, number)
            for _ in range(500):
                time.sleep(0.01)
    finally:
        done.set()
        thread.join()


def test_the_handlers_of_before_come_back() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    with handled_signals():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with handled_signals():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_outside_the_main_thread_nothing_is_handled() -> None:
    entered: list[bool] = []

    def enter() -> None:
        with handled_signals():
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [True]


@pytest.mark.parametrize("other_threads", [0, 1])
def test_a_signal_waits_for_the_end_of_a_bad_moment(
    other_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = True
    monkeypatch.setattr(signals, "_is_bad_moment", lambda _: bad)
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(other_threads)]
    for thread in threads:
        thread.start()
    met = []
    try:
        with pytest.raises(KeyboardInterrupt), handled_signals():  # noqa: PT012
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            met.append("the bad moment is over")
            bad = False
            time.sleep(5)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert met == ["the bad moment is over"]


def test_a_signal_that_still_waits_at_the_end_of_the_block_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signals, "_is_bad_moment", lambda _: True)
    with handled_signals():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
    # Else SIGALRM, whose handler is the default one again, would end the process.
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_destructor_swallows_no_signal() -> None:
    class Slow:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    with pytest.raises(KeyboardInterrupt), handled_signals():  # noqa: PT012
        Slow()
        time.sleep(5)


_IMPORTING = """
import os, signal, sys
from sbertkit.cli.signals import handled_signals

def send(frame, event, _):
    if event == "call" and frame.f_code.co_qualname.endswith(sys.argv[1]):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)

try:
    with handled_signals():
        sys.setprofile(send)
        import pyarrow
        import time
        time.sleep(5)
except KeyboardInterrupt:
    print("interrupted", "pyarrow.lib" in sys.modules)
"""


@pytest.mark.parametrize("moment", ["ExtensionFileLoader.exec_module", "_get_module_lock"])
def test_a_signal_amid_an_import_waits_and_is_not_lost(moment: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _IMPORTING, moment],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.startswith("interrupted")
    if moment.startswith("Extension"):
        assert ran.stdout == "interrupted True\n"


# --- every command


_COMMANDS: dict[str, Sequence[str]] = {
    "encode": ("encode", "corpus.txt", "-o", "out/x.npy", *_QUIET_MODEL),
    "similarity": ("similarity", "corpus.txt", "corpus.txt", *_QUIET_MODEL),
    "index": ("index", "corpus.txt", "-o", "out/x", *_QUIET_MODEL),
    "search": ("search", "index", "line 7", "--format", "jsonl"),
    "add": ("add", "index", "more.txt"),
    "upsert": ("upsert", "index", "more.txt"),
    "delete": ("delete", "index", "1", "2"),
    "tune": ("tune", "index", "--recall", "0.9", "--kind", "ivfpq"),
    "compact": ("compact", "index"),
    "info": ("info", "index"),
    "verify": ("verify", "index"),
    "repair": ("repair", "index"),
    "upgrade": ("upgrade", "truncated"),
    "dump": ("dump", "index", "-o", "out/x.parquet"),
    "train-nli": ("train-nli", "nli.jsonl", "--base", "tiny", "-o", "out/x", "--no-guard"),
    "train-sts": (
        *("train-sts", "sts.tsv", "--base", "tiny", "-o", "out/x", "--scale", "0-5"),
        "--no-guard",
    ),
    "train-pairs": ("train-pairs", "ranking.jsonl", "--base", "tiny", "-o", "out/x", "--no-guard"),
    "train-multi": (
        *("train-multi", "--set", "nli:nli.jsonl", "--set", "sts:sts.tsv,scale=0-5"),
        *("--base", "tiny", "-o", "out/x", "--no-guard"),
    ),
    "train-reranker": ("train-reranker", "ranking.jsonl", "--base", "tiny", "-o", "out/x"),
    "distill": (
        *("distill", "corpus.txt", "--teacher", "tiny", "--layers", "1", "-o", "out/x"),
        "--no-guard",
    ),
    "adapt": ("adapt", "corpus.txt", "--base", "tiny", "-o", "out/x"),
    "recipe": (
        *("recipe", "corpus.txt", "--nli", "nli.jsonl", "--base", "tiny", "-o", "out/x"),
        "--no-guard",
    ),
    "merge": ("merge", "tiny", "tiny", "-o", "out/x"),
    "eval sts": ("eval", "sts", "sts.tsv", *_QUIET_MODEL, "--json", "out/x.json"),
    "eval retrieval": ("eval", "retrieval", "beir", *_QUIET_MODEL, "--json", "out/x.json"),
    "eval isotropy": ("eval", "isotropy", "corpus.txt", *_QUIET_MODEL, "--json", "out/x.json"),
    "eval index": ("eval", "index", "index", "--json", "out/x.json"),
    "eval run": ("eval", "run", "suite.toml", *_QUIET_MODEL, "--report", "out/x.html"),
    "eval compare": ("eval", "compare", "a.trec", "b.trec", "--qrels", "beir/qrels/test.tsv"),
    "eval mteb": ("eval", "mteb", "STSBenchmark", *_QUIET_MODEL),
    "diagnose": ("diagnose", "corpus.txt", "--model", "tiny"),
    "models show": ("models", "show", "bert-base-uncased"),
    "models compare": ("models", "compare", "tiny", "tiny", "--corpus", "corpus.txt"),
    "export": ("export", "tiny", "--pooling", "mean", "-o", "out/x"),
    "data list": ("data", "list"),
    "data get": ("data", "get", "stsb"),
    "demo": ("demo", "-o", "out/x"),
}

_MAY_STAY = {"x", "x.npy", "x.parquet", "x.json", "x.html", "x.run"}
"""In the output folder: what the command makes, and the checkpoints that a run resumes from."""


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    """A folder with an input for every command, to be copied."""
    from sbertkit import SearchIndex

    root = tmp_path_factory.mktemp("material")
    shutil.copytree(tiny_bert, root / "tiny")
    lines = [f"line {row} of many in a text of some words\n" for row in range(4_000)]
    (root / "corpus.txt").write_text("".join(lines), encoding="utf-8")
    pairs = [{"id": f"n{row}", "text": line.strip()} for row, line in enumerate(lines[:900])]
    (root / "more.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    sts = (f"{row % 6}\t{lines[row].strip()}\t{lines[row + 1].strip()}\n" for row in range(600))
    (root / "sts.tsv").write_text("score\tsentence1\tsentence2\n" + "".join(sts))
    labels = ("entailment", "neutral", "contradiction")
    nli = (
        {
            "premise": f"{lines[row // 3].strip()}",
            "hypothesis": lines[row],
            "label": labels[row % 3],
        }
        for row in range(900)
    )
    (root / "nli.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nli))
    ranking = (
        {"query": lines[row], "positive": lines[row + 1], "negative": lines[row + 2]}
        for row in range(900)
    )
    (root / "ranking.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ranking))
    _write_collection(root, lines)
    (root / "suite.toml").write_text(
        '[suite]\nname = "tiny"\n\n[[sets]]\nname = "sts"\nkind = "sts"\npath = "sts.tsv"\n'
    )
    encoder = Encoder.load(root / "tiny", pooling="mean")
    SearchIndex.build(root / "corpus.txt", encoder, root / "index").close()
    long = [(str(row), " ".join(lines[row : row + 20])) for row in range(0, 2_000, 20)]
    SearchIndex.build(long, encoder, root / "truncated", long="truncate").close()
    return root


def _write_collection(root: Path, lines: Sequence[str]) -> None:
    (root / "beir" / "qrels").mkdir(parents=True)
    for name, count in (("corpus", 500), ("queries", 50)):
        rows = ({"_id": f"{name[0]}{row}", "text": lines[row]} for row in range(count))
        (root / "beir" / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    judged = "".join(f"q{row}\tc{row}\t1\n" for row in range(50))
    (root / "beir" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    for name, step in (("a", 1), ("b", 2)):
        run = "".join(f"q{row} Q0 c{row * step} 1 1.0 x\n" for row in range(50))
        (root / f"{name}.trec").write_text(run)


def _leaves(command: click.Command, name: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield name
        return
    for part, below in command.commands.items():
        yield from _leaves(below, f"{name} {part}".strip())


def test_every_command_is_interrupted_below() -> None:
    assert set(_leaves(app)) == set(_COMMANDS)


def _check_interrupted(
    name: str, number: signal.Signals, seconds: float, material: Path, work: Path
) -> None:
    shutil.copytree(material, work)
    (work / "out").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "sbertkit", *_COMMANDS[name]],
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "SBERTKIT_DATA": str(work)},
    )
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    # Before Python has read the program, the system's own answer to a signal holds.
    assert process.returncode in (0, 1, 128 + number, -number), errors
    assert process.returncode != 1 or "error:" in errors
    assert "import run" not in errors, errors  # the lines of a traceback once signals are handled
    assert "run(arguments)" not in errors, errors
    assert {place.name for place in (work / "out").iterdir()} <= _MAY_STAY
    _check_whole(work, Reranker if name == "train-reranker" else Encoder)


def _check_whole(work: Path, kind: type[Encoder | Reranker]) -> None:
    """What is there is whole: every index verifies, results can be read, a model loads."""
    from sbertkit import SearchIndex

    result = work / "out" / "x"
    for folder in (work / "index", work / "truncated", result):
        if (folder / "manifest.json").exists():
            assert SearchIndex.verify_at(folder) == ()
    if (result / "modules.json").exists() or (result / "export.json").exists():
        kind.load(result)
    if (work / "out" / "x.json").exists():
        json.loads((work / "out" / "x.json").read_text())
    assert not result.exists() or any(result.iterdir())


@pytest.mark.parametrize("name", _COMMANDS)
def test_a_signal_at_any_moment_ends_a_command_and_leaves_nothing_half_written(
    name: str, material: Path, tmp_path: Path
) -> None:
    chance = random.Random(name)
    number = chance.choice((signal.SIGINT, signal.SIGTERM))
    _check_interrupted(name, number, chance.uniform(0.3, _STARTED), material, tmp_path / "work")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", _COMMANDS)
def test_signals_at_many_moments(
    name: str, number: signal.Signals, material: Path, tmp_path: Path
) -> None:
    for attempt in range(10):
        seconds = 0.2 + 0.4 * attempt
        _check_interrupted(name, number, seconds, material, tmp_path / str(attempt))
