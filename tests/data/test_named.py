"""Data sets by name: from the cache, from a hub, and why not; never a traceback."""

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants, errors

from sbertkit.data.named import (
    DATA_FOLDER,
    NAMED_SETS,
    HubSource,
    NamedSet,
    find_local,
    find_named,
    named_data,
)
from sbertkit.data.named.hub import check_cached
from sbertkit.data.nli import NLI_LABELS, NliPair, read_nli
from sbertkit.errors import InputError, InputTypeError

SET = find_named("all-nli")
assert SET.hub is not None
HUB_SET: HubSource = SET.hub
FILE = "pair-class/train-00000-of-00001.parquet"
CHILD = """
import sys
from sbertkit.data.named import find_named, named_data
try:
    print(named_data(find_named("all-nli")))
except ValueError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""


def parquet() -> bytes:
    table = pa.table({"premise": ["A hen sits."], "hypothesis": ["A hen runs."], "label": [2]})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@dataclass
class Hub:
    """A hub on this machine with one data set, in the words of the client's protocol."""

    files: dict[str, bytes]
    error: str | None = None
    status: int = 404
    asked: list[str] = field(default_factory=list)
    endpoint: str = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        headers = {"X-Repo-Commit": HUB_SET.revision}
        if self.error is not None:
            return self.status, {"X-Error-Code": self.error}, b"{}"
        if path.startswith(f"/api/datasets/{HUB_SET.repository}/tree/{HUB_SET.revision}"):
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                for name, data in self.files.items()
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(tree).encode()
        if path.startswith(f"/api/datasets/{HUB_SET.repository}"):
            info = {"id": HUB_SET.repository, "sha": HUB_SET.revision, "siblings": []}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        name = path.removeprefix(f"/datasets/{HUB_SET.repository}/resolve/{HUB_SET.revision}/")
        if name in self.files:
            data = self.files[name]
            return 200, {**headers, "ETag": f'"{git_hash(data)}"'}, data
        return 404, {**headers, "X-Error-Code": "EntryNotFound"}, b""


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub({FILE: parquet(), "pair-class/dev-00000-of-00001.parquet": b"", "README.md": b"x"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keeps the tests quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    yield hub
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(hub: Hub, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs `named_data` where the hub is not switched off."""
    left = (DATA_FOLDER, "HF_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    kept |= {"HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint, "no_proxy": "127.0.0.1", **more}
    return subprocess.run(
        [sys.executable, "-c", CHILD], env=kept, capture_output=True, text=True, check=False
    )


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (3, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_set_is_fetched_once_and_then_comes_from_the_cache(hub: Hub, tmp_path: Path) -> None:
    first = fetch(hub, tmp_path)
    assert first.returncode == 0, first.stderr
    folder = Path(first.stdout.strip())
    assert [path.name for path in folder.iterdir()] == ["train-00000-of-00001.parquet"]
    assert (folder / "train-00000-of-00001.parquet").read_bytes() == parquet()
    assert read_nli(folder, labels=SET.labels).pairs == (NliPair("A hen sits.", "A hen runs.", 2),)
    assert any(asked.endswith(f"resolve/{HUB_SET.revision}/{FILE}") for asked in hub.asked)
    hub.asked.clear()
    hub.error = "RepoNotFound"
    again = fetch(hub, tmp_path)
    assert (again.stdout, hub.asked) == (first.stdout, [])
    offline = fetch(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert offline.stdout == first.stdout


def test_a_hub_without_the_set_gets_one_clear_line(hub: Hub, tmp_path: Path) -> None:
    hub.error = "RepoNotFound"
    line = only_line(fetch(hub, tmp_path))
    assert "data set 'all-nli' (sentence-transformers/all-nli) was not found" in line
    assert "no such data set is on the hub" in line


def test_a_hub_without_the_file_gets_one_clear_line(hub: Hub, tmp_path: Path) -> None:
    del hub.files[FILE]
    done = fetch(hub, tmp_path)
    assert done.returncode == 3
    assert (
        "the hub has no pair-class/train-00000-of-00001.parquet in it"
        in done.stderr.splitlines()[-1]
    )


def test_an_unreachable_hub_gets_one_clear_line(tmp_path: Path) -> None:
    line = only_line(fetch(Hub({}, endpoint="http://127.0.0.1:9"), tmp_path))
    assert "the hub cannot be reached" in line
    assert "pass its files" in line


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_FOLDER, raising=False)


@pytest.mark.usefixtures("no_folder")
def test_a_hub_that_is_switched_off_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="switched off") as refusal:
        named_data(SET)
    assert "\n" not in str(refusal.value)


def http_error(kind: Any) -> Exception:
    response = SimpleNamespace(headers={}, request=None, status_code=404)
    error: Exception = kind("no", response=response)
    return error


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http_error(errors.RepositoryNotFoundError), "no such data set is on the hub"),
        (http_error(errors.GatedRepoError), "gated"),
        (http_error(errors.RevisionNotFoundError), f"no revision '{HUB_SET.revision}'"),
        (http_error(errors.HfHubHTTPError), "cannot be reached"),
        (errors.HTTPError("connection lost"), r"cannot be reached \(HTTPError\)"),
        (TimeoutError(), r"cannot be reached \(TimeoutError\)"),
        (OSError(28, "No space left on device"), "cache cannot be written .No space left"),
    ],
)
def test_why_the_hub_gave_nothing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, answer: Exception, reason: str
) -> None:
    def download(*_: object, local_files_only: bool, **__: object) -> str:
        raise errors.LocalEntryNotFoundError("not here") if local_files_only else answer

    monkeypatch.delenv(DATA_FOLDER, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    with pytest.raises(InputError, match=reason) as refusal:
        named_data(SET)
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("no_folder")
def test_a_cache_with_another_part_of_the_set_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial, whole = tmp_path / "partial", tmp_path / "whole"
    for folder in (partial / "triplet", whole / "pair-class"):
        folder.mkdir(parents=True)
        (folder / "train-00000-of-00001.parquet").touch()

    def download(*_: object, local_files_only: bool, **__: object) -> str:
        return str(partial if local_files_only else whole)

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert named_data(SET) == whole / "pair-class"


@pytest.mark.usefixtures("no_folder")
def test_a_set_of_which_a_file_is_missing_is_not_taken_as_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scifact = find_named("scifact")
    assert scifact.hub is not None
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    for file in scifact.hub.files:
        assert find_local(scifact) is None
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("{}")
    assert find_local(scifact) == tmp_path


def test_a_file_that_was_damaged_in_the_cache_is_noticed_and_downloaded_again(
    hub: Hub, tmp_path: Path
) -> None:
    folder = Path(fetch(hub, tmp_path).stdout.strip())
    blob = (folder / "train-00000-of-00001.parquet").resolve()
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.write_bytes(data)
    line = only_line(fetch(hub, tmp_path, HF_HUB_OFFLINE="1"))
    assert "train-00000-of-00001.parquet was damaged" in line
    assert "sbertkit data get all-nli" in line
    assert Path(fetch(hub, tmp_path).stdout.strip()) == folder
    assert (folder / "train-00000-of-00001.parquet").read_bytes() == parquet()


def test_files_are_checked_by_either_kind_of_hash(tmp_path: Path) -> None:
    data = b"some bytes"
    for name in (git_hash(data), hashlib.sha256(data).hexdigest(), "a-copy-without-links"):
        (tmp_path / name).write_bytes(data)
        one = NamedSet("x", "x", "sts", "", "", "", "", "", HubSource("a/b", "0" * 40, (name,)), {})
        check_cached(one, tmp_path)
        (tmp_path / name).write_bytes(b"other bytes")
        if name == "a-copy-without-links":
            check_cached(one, tmp_path)
            continue
        with pytest.raises(InputError, match="was damaged"):
            check_cached(one, tmp_path)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_set_in_the_folder_of_data_sets_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    german = find_named("stsb-de")
    place = tmp_path / f"sts/multilingual/stsb_de.tsv{suffix}"
    assert find_local(german) is None
    place.parent.mkdir(parents=True)
    place.touch()
    assert find_local(german) == place
    assert named_data(german) == place


def test_files_are_fetched_into_the_folder_of_data_sets(hub: Hub, tmp_path: Path) -> None:
    done = fetch(hub, tmp_path / "home", **{DATA_FOLDER: str(tmp_path / "data")})
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "data" / "hub")


@pytest.mark.usefixtures("no_folder")
def test_a_set_that_is_on_no_hub_says_how_to_get_it() -> None:
    with pytest.raises(InputError, match="not on the hub: get it from http") as refusal:
        named_data(find_named("cranfield"))
    assert "retrieval/cranfield" in str(refusal.value)


@pytest.mark.parametrize("name", ["", "All-NLI", "sentence-transformers/all-nli", "a\nb"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InputError, match=r"known are stsb, .*all-nli") as refusal:
        find_named(name)
    assert "\n" not in str(refusal.value)
    with pytest.raises(InputError, match=r"known are all-nli$"):
        find_named("stsb", "nli")


def test_a_name_is_a_str() -> None:
    with pytest.raises(InputTypeError, match="must be a str, found int"):
        find_named(5)  # type: ignore[arg-type]


def test_every_entry_is_pinned_and_says_where_it_comes_from() -> None:
    assert len({entry.name for entry in NAMED_SETS}) == len(NAMED_SETS)
    assert len({entry.path for entry in NAMED_SETS}) == len(NAMED_SETS)
    for entry in NAMED_SETS:
        assert entry.task in ("sts", "retrieval", "nli")
        assert entry.rows
        assert entry.licence
        assert entry.cite
        assert entry.source.startswith(("https://", "http://"))
        if entry.hub is not None:
            assert len(bytes.fromhex(entry.hub.revision)) == 20
            assert entry.hub.files
    assert set(SET.labels.values()) == set(NLI_LABELS)
    assert SET.labels == {0: "entailment", 1: "neutral", 2: "contradiction"}
