"""The words of messages: Python's in Python, the shell's in the shell."""

import pickle
from pathlib import Path

import pytest
from command_line import Run

from sbertkit import InputError, MissingFile, StorageError
from sbertkit.data.sts import read_sts
from sbertkit.errors import SbertkitError


@pytest.mark.parametrize("kind", [InputError, MissingFile, StorageError, SbertkitError])
def test_a_message_names_arguments_as_its_reader_knows_them(kind: type[SbertkitError]) -> None:
    error = kind("a.txt: bad; pass guard=False (--no-guard) or skip_bad_lines (--skip-bad-lines)")
    assert str(error) == "a.txt: bad; pass guard=False or skip_bad_lines"
    assert error.in_shell == "a.txt: bad; pass --no-guard or --skip-bad-lines"
    outer = InputError(f"outer: {error}")
    assert outer.in_shell == "outer: a.txt: bad; pass --no-guard or --skip-bad-lines"
    assert pickle.loads(pickle.dumps(error)).in_shell == error.in_shell


def test_the_shell_gets_options_and_python_arguments(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("score\tsentence1\tsentence2\tsplit\n1\ta\tb\tone\n2\ta\tc\ttwo\n")
    ran = run("eval", "sts", path)
    assert (ran.status, ran.out) == (1, "")
    assert "(--" not in ran.err
    assert "--split" in ran.err
    with pytest.raises(InputError, match="pass one as split: "):
        read_sts(path)
