"""Truncated vectors: as by sentence-transformers, on every runtime, kept by saving and indexing."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
from command_line import Run

from sbertkit import Document, Encoder, SearchIndex
from sbertkit.encoder.postprocessors import Truncate
from sbertkit.errors import InputError, InputTypeError, ModelMismatch

TEXTS = [text for text in tiny_models.TEXTS if text] + ["two bakers", "long " * 300]
CORPUS = [Document(str(row), text) for row, text in enumerate(TEXTS)]
SIZE = tiny_models.HIDDEN
DIM = 5
RUNTIMES = ["torch", "onnx", *(["openvino"] if find_spec("openvino") else [])]


def config_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = tiny_models.read_json(folder / "config_sentence_transformers.json")
    return content


@pytest.fixture
def folder(tiny_copy: Callable[..., Path]) -> Path:
    return tiny_models.declare(tiny_copy(), "Normalize")


@pytest.mark.parametrize(
    ("modules", "size"),
    [
        ((), SIZE),
        (("Normalize",), SIZE),
        (("Dense",), SIZE // 2),
        (("Dense", "LayerNorm", "Normalize"), SIZE // 2),
        (("Normalize", "Dense"), SIZE // 2),
    ],
)
def test_truncated_vectors_are_those_of_sentence_transformers(
    tiny_copy: Callable[..., Path],
    plain: Callable[[Path], Any],
    tmp_path: Path,
    modules: tuple[str, ...],
    size: int,
) -> None:
    folder = tiny_models.declare(tiny_copy(), *modules)
    normalizes = modules[-1:] == ("Normalize",)
    theirs = plain(folder)
    for dim in (1, DIM, size):
        encoder = Encoder.load(folder, dim=dim)
        assert (encoder.dim, encoder.normalizes) == (dim, normalizes)
        expected = theirs.encode(TEXTS, truncate_dim=dim, normalize_embeddings=normalizes)
        vectors = encoder.encode(TEXTS)
        assert vectors.shape == (len(TEXTS), dim)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        encoder.save(tmp_path / f"saved{dim}")
        saved = plain(tmp_path / f"saved{dim}")
        assert saved.get_embedding_dimension() == dim
        np.testing.assert_allclose(saved.encode(TEXTS), vectors, atol=1e-5)
        again = Encoder.load(tmp_path / f"saved{dim}")
        assert (again.dim, again.fingerprint) == (dim, encoder.fingerprint)
        np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-6)


def test_a_declared_size_is_honored_unless_another_one_is_asked_for(
    tiny_copy: Callable[..., Path], plain: Callable[[Path], Any], tmp_path: Path
) -> None:
    model = plain(tiny_models.declare(tiny_copy(), "Normalize"))
    model.truncate_dim = DIM
    model.save(str(tmp_path / "theirs"), create_model_card=False)
    assert config_of(tmp_path / "theirs")["truncate_dim"] == DIM
    encoder = Encoder.load(tmp_path / "theirs")
    expected = plain(tmp_path / "theirs").encode(TEXTS, normalize_embeddings=True)
    assert expected.shape[1] == encoder.dim == DIM
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    for dim in (3, DIM + 2):
        other = Encoder.load(tmp_path / "theirs", dim=dim)
        other.save(tmp_path / f"saved{dim}")
        vectors = plain(tmp_path / f"saved{dim}").encode(TEXTS)
        assert vectors.shape[1] == dim
        np.testing.assert_allclose(vectors, other.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("declared", [SIZE, SIZE + 1, None])
def test_a_declared_size_that_truncates_nothing_changes_nothing(
    folder: Path, declared: int | None
) -> None:
    expected = Encoder.load(folder).fingerprint
    path = folder / "config_sentence_transformers.json"
    tiny_models.edit_json(path, truncate_dim=declared)
    assert (Encoder.load(folder).dim, Encoder.load(folder).fingerprint) == (SIZE, expected)


@pytest.mark.parametrize("declared", [0, -1, 2.5, "5"])
def test_a_declared_size_that_makes_no_sense_is_refused(folder: Path, declared: Any) -> None:
    path = folder / "config_sentence_transformers.json"
    tiny_models.edit_json(path, truncate_dim=declared)
    with pytest.raises(InputError, match="truncate_dim"):
        Encoder.load(folder)


def test_a_size_beyond_that_of_the_vectors_is_refused(folder: Path) -> None:
    message = f"dim {SIZE + 1} is more than the {SIZE} numbers .* choose at most {SIZE}$"
    with pytest.raises(InputError, match=message):
        Encoder.load(folder, dim=SIZE + 1)


@pytest.mark.parametrize("dim", [0, -1])
def test_a_size_below_one_is_refused(folder: Path, dim: int) -> None:
    with pytest.raises(InputError, match=f"dim must be at least 1, not {dim}"):
        Encoder.load(folder, dim=dim)


@pytest.mark.parametrize("dim", [True, 5.0, "5"])
def test_a_size_that_is_no_whole_number_is_refused(folder: Path, dim: Any) -> None:
    with pytest.raises(InputTypeError, match="dim must be a whole number"):
        Encoder.load(folder, dim=dim)


def test_the_fingerprint_depends_on_the_size_alone(folder: Path, tmp_path: Path) -> None:
    whole, same = Encoder.load(folder), Encoder.load(folder, dim=SIZE)
    first, second = Encoder.load(folder, dim=DIM), Encoder.load(folder, dim=DIM + 1)
    assert whole.fingerprint == same.fingerprint
    assert len({whole.fingerprint, first.fingerprint, second.fingerprint}) == 3
    second.save(tmp_path / "saved")
    assert Encoder.load(tmp_path / "saved", dim=DIM).encode(TEXTS) == pytest.approx(
        first.encode(TEXTS), abs=1e-5
    )


@pytest.mark.parametrize("normalize", [True, False])
def test_normalization_follows_what_is_asked_for(folder: Path, normalize: bool) -> None:
    raw = Encoder.load(folder, normalize=False).encode(TEXTS)[:, :DIM]
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True) if normalize else raw
    found = Encoder.load(folder, normalize=normalize, dim=DIM).encode(TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_gives_the_truncated_vectors(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    expected = Encoder.load(folder, dim=DIM, backend="torch", device="cpu")
    encoder = Encoder.load(folder, dim=DIM, backend=runtime, device="cpu")
    assert (encoder.dim, encoder.fingerprint) == (DIM, expected.fingerprint)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected.encode(TEXTS), atol=1e-5)
    # Its export is in the cache by now, and found without torch.
    again = Encoder.load(folder, dim=DIM, device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), expected.encode(TEXTS), atol=1e-5)
    assert Encoder.load(folder, device="cpu").dim == SIZE


def test_an_export_has_the_size_it_was_made_with(folder: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(folder, dim=DIM, backend="torch", device="cpu")
    assert encoder.export(tmp_path / "exported").dim == DIM
    exported = Encoder.load(tmp_path / "exported", dim=DIM)
    np.testing.assert_allclose(exported.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)
    with pytest.raises(InputError, match=f"exported encoder, whose dim is {DIM}, not 3"):
        Encoder.load(tmp_path / "exported", dim=3)


@pytest.mark.parametrize("with_encoder", [True, False])
def test_an_index_is_opened_with_the_size_it_was_built_with(
    folder: Path, tmp_path: Path, with_encoder: bool
) -> None:
    encoder = Encoder.load(folder, dim=DIM, device="cpu")
    SearchIndex.build(CORPUS, encoder, tmp_path / "index", with_encoder=with_encoder).close()
    with SearchIndex.open(tmp_path / "index") as index:
        assert (index.info().dim, index.encoder.dim) == (DIM, DIM)
        assert index.encoder.fingerprint == encoder.fingerprint
        assert index.search(TEXTS[0], 1)[0].id == "0"
        index.add([("new", "one more")])
    with pytest.raises(ModelMismatch, match=f"vectors of size {DIM} and {SIZE}"):
        SearchIndex.open(tmp_path / "index", Encoder.load(folder, device="cpu"))


def test_a_whole_linear_map_and_one_of_other_weights_stay_what_they_are(tmp_path: Path) -> None:
    dense = Truncate(4, 2).dense()
    assert Truncate.replacing(dense) is not None
    dense.linear.weight.data[0, 3] = 1e-7
    assert Truncate.replacing(dense) is None
    assert Truncate.replacing(Truncate(4, 4).dense()) is None


def test_the_command_line_truncates(
    folder: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    model = ("--model", folder, "--dim", DIM)
    ran = run("encode", "corpus.txt", "-o", "vectors.npy", *model)
    assert ran.status == 0, ran.err
    expected = Encoder.load(folder, dim=DIM).encode(TEXTS)
    np.testing.assert_allclose(np.load("vectors.npy"), expected, atol=1e-5)
    for output in ("index", "bare"):
        without = ("--without-encoder",) if output == "bare" else ()
        ran = run("index", "corpus.txt", "-o", output, "--long", "truncate", *without, *model)
        assert ran.status == 0, ran.err
        assert f"{DIM} dimensions" in ran.out
        ran = run("search", output, TEXTS[1], "-k", "1", "--format", "jsonl")
        assert json.loads(ran.out)["id"] == "2"
    ran = run("index", "corpus.txt", "-o", "index", "--update", *model)
    assert ran.status == 0, ran.err
    ran = run("index", "corpus.txt", "-o", "index", "--update", "--model", folder, "--dim", 3)
    assert (ran.status, ran.err.count("\n")) == (1, 1)
    ran = run("export", folder, "--dim", DIM, "-o", "exported")
    assert ran.status == 0, ran.err
    assert Encoder.load("exported").dim == DIM
    ran = run("encode", "corpus.txt", "-o", "other.npy", "--model", folder, "--dim", SIZE + 1)
    assert ran.status == 1
    assert ran.err.splitlines()[-1].startswith(
        f"sbertkit: error: dim {SIZE + 1} is more than the {SIZE} numbers"
    )
    assert not Path("other.npy").exists()
    assert run("encode", "corpus.txt", "-o", "other.npy", "--dim", 0).status == 2
