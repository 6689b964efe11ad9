"""Whether a GPU may be there, found out without torch."""

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from sbertkit.encoder import devices
from sbertkit.encoder.devices import may_have_gpu


@pytest.fixture(autouse=True)
def torch_for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "version", lambda _: "2.13.0")


@pytest.mark.skipif(sys.platform != "linux", reason="its device files")
def test_on_linux_a_driver_has_a_device_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_LINUX_DEVICES", (str(tmp_path / "driver"),))
    assert not may_have_gpu()
    (tmp_path / "driver").touch()
    assert may_have_gpu()


@pytest.mark.parametrize(("machine", "found"), [("arm64", True), ("x86_64", False)])
def test_macs_with_chips_of_apple_have_one(
    monkeypatch: pytest.MonkeyPatch, machine: str, found: bool
) -> None:
    monkeypatch.setattr(devices.sys, "platform", "darwin")
    monkeypatch.setattr(devices.platform, "machine", lambda: machine)
    assert may_have_gpu() == found


@pytest.mark.parametrize("library", [None, "nvcuda.dll"])
def test_on_windows_the_driver_is_a_library(
    monkeypatch: pytest.MonkeyPatch, library: str | None
) -> None:
    monkeypatch.setattr(devices.sys, "platform", "win32")
    monkeypatch.setattr(devices, "find_library", lambda _: library)
    assert may_have_gpu() == (library is not None)


def test_a_torch_for_the_cpu_finds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_LINUX_DEVICES", ("/",))
    monkeypatch.setattr(devices, "version", lambda _: "2.13.0+cpu")
    assert not may_have_gpu()


def test_without_torch_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(devices, "version", missing)
    assert not may_have_gpu()
