"""Machines on which the user has no home folder, or none that can be written to."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from other_user import public_folder, restricted

from sbertkit.data.named.paths import data_folder
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError

UID = 54_321
"""Of nobody that the system knows."""

CORPUS = [f"document number {number} about {word}" for number in range(300) for word in "abcd"]


class Place(NamedTuple):
    """A folder that everybody may write to, with a corpus and the commands' environment."""

    folder: Path
    environment: dict[str, str]
    change: Callable[[], None]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sbertkit", *arguments]
        if os.geteuid() == 0:
            command = [sys.executable, "-c", _AS_UNKNOWN, restricted(self.change)[1], *command]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
        )


_AS_UNKNOWN = f"""
import os, runpy, sys
runpy.run_path(sys.argv[1])["become_other_user"]({UID})
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture(params=["none"])
def place(request: pytest.FixtureRequest, become_other_user: Callable[[], None]) -> Iterator[Place]:
    """With no home folder, or with one that only root may write to."""
    with public_folder() as root:
        (root / "corpus.txt").write_text("\n".join(CORPUS))
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        for name in ("HOME", "XDG_CACHE_HOME", "HF_HOME", "SBERTKIT_DATA"):
            environment.pop(name, None)
        if request.param == "unwritable":
            (root / "home").mkdir(mode=0o755)
            environment["HOME"] = str(root / "home")
        root.chmod(0o777)
        yield Place(root, environment, become_other_user)


def warned(stderr: str) -> list[str]:
    assert "Traceback" not in stderr
    return [line for line in stderr.splitlines() if "the cache folder" in line]


def test_an_index_is_built_with_its_encoder_and_the_missing_cache_is_told_once(
    place: Place, tiny_bert: Path
) -> None:
    model = str(tiny_bert)
    done = place.run("index", "corpus.txt", "-o", "index", "--model", model, "--with-encoder")
    assert done.returncode == 0, done.stderr
    assert "and its encoder" in done.stdout
    (warning,) = warned(done.stderr)
    assert "XDG_CACHE_HOME" in warning
    searched = place.run("search", "index", CORPUS[7], "-k", "1", "--format", "trec")
    assert searched.stdout.split()[2] == "8", searched.stderr
    assert not warned(searched.stderr)
    assert {path.name for path in place.folder.iterdir()} == {"corpus.txt", "index"}


_ENCODED = [
    pytest.param("unwritable", [], id="auto"),
    pytest.param("none", ["--backend", "onnx"], id="onnx", marks=pytest.mark.slow),
    pytest.param("unwritable", ["--precision", "int8"], id="int8", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("place", "options"), _ENCODED, indirect=["place"])
def test_texts_are_encoded_without_a_cache(
    place: Place, tiny_bert: Path, options: list[str]
) -> None:
    done = place.run("encode", "corpus.txt", "-o", "v.npy", "--model", str(tiny_bert), *options)
    assert done.returncode == 0, done.stderr
    assert len(warned(done.stderr)) == 1
    expected = Encoder.load(tiny_bert, pooling="mean", device="cpu").encode(CORPUS)
    found = np.load(place.folder / "v.npy")
    assert np.einsum("ij,ij->i", found, expected).min() > (0.97 if "int8" in options else 0.9999)


def test_data_sets_are_listed_and_looked_for(place: Place) -> None:
    assert place.run("data", "list").returncode == 0
    fetched = place.run("data", "get", "stsb")
    assert fetched.returncode == 1
    assert "was not found" in fetched.stderr
    assert "Traceback" not in fetched.stderr
    assert {path.name for path in place.folder.iterdir()} == {"corpus.txt"}


def test_a_home_of_nobody_that_is_named_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBERTKIT_DATA", "~nobody-of-this-name/data")
    with pytest.raises(InputError, match="give its whole path"):
        data_folder()
