"""Checks of whole numbers and of paths to write to."""

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sbertkit.arguments import (
    output_file,
    output_folder,
    parse_bytes,
    real_number,
    whole_number,
)
from sbertkit.data import ReadOptions
from sbertkit.errors import InputError, InputTypeError
from sbertkit.training.config import TrainConfig
from sbertkit.training.objectives import Contrastive, Softmax


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_of_any_kind_are_plain_ints(value: Any) -> None:
    number = whole_number("k", value)
    assert number == 3
    assert type(number) is int


@pytest.mark.parametrize("value", [True, np.True_, 2.0, 2.5, "3", None, [3]])
def test_what_is_no_whole_number_is_a_type_error_with_name_and_value(value: Any) -> None:
    with pytest.raises(InputTypeError, match="k must be a whole number, not"):
        whole_number("k", value)


@pytest.mark.parametrize("value", [0, -1, -(10**30)])
def test_a_number_that_is_too_small_is_refused_with_name_and_value(value: int) -> None:
    with pytest.raises(InputError, match=f"k must be at least 1, not {value}"):
        whole_number("k", value)


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [
        (TrainConfig, "epoch", "epochs"),
        (Contrastive, "temprature", "temperature"),
        (Softmax, "feature", "features"),
        (ReadOptions, "text_column", "text_columns"),
    ],
)
def test_an_unknown_setting_is_a_type_error_with_the_near_one(
    kind: Any, name: str, near: str
) -> None:
    with pytest.raises(InputTypeError, match=f"has no '{name}', did you mean '{near}'"):
        kind(**{name: 1})
    with pytest.raises(InputTypeError, match=f"has no 'zzz'; expected .*{near}"):
        replace(kind(), zzz=1)
    assert pickle.loads(pickle.dumps(kind())) == kind()


@pytest.mark.parametrize("path", [5, b"x", None, ["a"]])
def test_what_is_no_path_is_a_type_error(path: Any) -> None:
    with pytest.raises(InputTypeError, match="expected the path"):
        output_file(path)


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800"])
def test_an_impossible_path_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="expected the path"):
        output_folder(path)


def test_a_folder_and_a_pipe_are_no_files_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        output_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe or a device"):
        output_file(tmp_path / "pipe")


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there")
    assert output_file(tmp_path / "link") == (tmp_path / "there").resolve()


def test_numbers_of_too_many_digits_are_refused() -> None:
    with pytest.raises(InputError, match="must be a size such as 2GB"):
        parse_bytes("memory", "9" * 400)
    with pytest.raises(InputTypeError, match="too many digits"):
        real_number("weight", 10**400)
