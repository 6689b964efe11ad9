"""What README and docs/ show works: every example runs, every link leads somewhere."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import Run
from docs_files import write_files

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


class Example(NamedTuple):
    """A block of code of a page."""

    language: str
    code: str


def examples(page: Path) -> list[Example]:
    """Those that are run: fences of other languages are output, or what needs a network."""
    found = [Example(*match) for match in _FENCE.findall(page.read_text(encoding="utf-8"))]
    return [example for example in found if example.language in ("sh", "python")]


def commands(code: str) -> Iterator[list[str]]:
    """The words of each command of a shell block."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


@pytest.fixture(scope="module")
def files(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What every page finds; models lie under the names that the hub has."""
    import tiny_models

    from sbertkit.encoder import Encoder

    folder = tmp_path_factory.mktemp("docs")
    write_files(folder)
    shutil.copytree(tiny_bert, folder / "bert-base-uncased")
    deep = tiny_models.bert(folder / "deep", num_hidden_layers=6)
    Encoder.load(deep, pooling="mean").save(folder / "all-MiniLM-L6-v2")
    shutil.rmtree(deep)
    return folder


@pytest.fixture
def place(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(files, tmp_path / "work")
    monkeypatch.chdir(folder)
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "retrieval").symlink_to(folder)
    monkeypatch.setenv("SBERTKIT_DATA", str(tmp_path / "sets"))
    return folder


def run_command(run: Run, words: list[str]) -> None:
    """Runs a command as the shell would; the only redirection is that of its input."""
    assert words[0] == "sbertkit", words
    stdin = b""
    if "<" in words:
        at = words.index("<")
        stdin = Path(words[at + 1]).read_bytes()
        words = words[:at]
    ran = run(*words[1:], stdin=stdin)
    assert ran.status == 0, f"{shlex.join(words)}: {ran.err}"


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_page_run_one_after_the_other(run: Run, name: str) -> None:
    names: dict[str, object] = {}
    for example in examples(ROOT / name):
        if example.language == "python":
            exec(compile(example.code, name, "exec"), names)
        else:
            for words in commands(example.code):
                run_command(run, words)


@pytest.mark.parametrize("name", NAMES)
def test_the_links_of_a_page_lead_to_files(name: str) -> None:
    page = ROOT / name
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_the_pages_are_those_that_the_readme_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if name.startswith("docs/") and f"({name})" not in readme] == []
