"""Damaged indexes made whole from what is whole in them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_cases import KINDS, contents, ids_of, mixed_documents

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex, InputError, ModelMismatch
from sbertkit.retrieval import merge_policy

FIRST, SECOND = mixed_documents(40, "first"), mixed_documents(30, "second")


@pytest.fixture
def build(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Builds an index of two segments, with one document deleted and one replaced."""
    monkeypatch.setattr(merge_policy, "CHEAP", 0)

    def built(kind: str) -> Path:
        path = tmp_path / "index"
        with SearchIndex.build(FIRST, tiny_encoder, path, kind=kind) as index:
            index.add(SECOND)
            index.upsert([("first4", "the new text")])
            index.delete(["first7"])
        return path

    return built


def found(path: Path, encoder: Encoder) -> list[dict[str, Any]]:
    """The scores of all documents for some queries; rebuilt vectors differ in the last digits."""
    with SearchIndex.open(path, encoder) as index:
        hits = index.search_batch([text for _, text in FIRST[:10]], 100)
    return [{hit.id: pytest.approx(hit.score, abs=1e-5) for hit in of_query} for of_query in hits]


def segments(path: Path) -> list[Path]:
    return sorted((path / "segments").iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["vectors.npy", "index.faiss", "build.json"])
def test_what_can_be_rebuilt_is(
    build: Callable[[str], Path], tiny_encoder: Encoder, kind: str, name: str
) -> None:
    path = build(kind)
    expected = found(path, tiny_encoder)
    if not (segments(path)[0] / name).exists():
        pytest.skip("this kind has no such file")
    damages: tuple[Callable[[Path], object], ...] = (
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b"\0" * 100),
    )
    for damage in damages:
        damage(segments(path)[0] / name)
        assert SearchIndex.verify_at(path)
        with pytest.raises(DamagedIndex, match="sbertkit repair"):
            SearchIndex.open(path, tiny_encoder)
        done = SearchIndex.repair_at(path)
        assert [Path(problem.file).name for problem in done.repaired] == [name]
        assert done.lost == ()
        assert SearchIndex.verify_at(path) == ()
        assert found(path, tiny_encoder) == expected
    assert not SearchIndex.repair_at(path)


def test_several_files_at_once(build: Callable[[str], Path], tiny_encoder: Encoder) -> None:
    path = build("hnsw")
    expected = found(path, tiny_encoder)
    for folder in segments(path):
        (folder / "vectors.npy").unlink()
        (folder / "index.faiss").write_bytes(b"")
    (path / "encoder").rename(path.parent / "away")
    done = SearchIndex.repair_at(path)
    assert len(done.repaired) == 2 * len(segments(path)) + 1
    assert SearchIndex.verify_at(path) == ()
    assert found(path, tiny_encoder) == expected
    with SearchIndex.open(path) as index:
        assert index.info().encoder_bytes > 1_000
        assert index.search(SECOND[4][1], 1)[0].id == "second4"


def test_lost_texts_are_reported_and_nothing_is_changed(
    build: Callable[[str], Path], tiny_encoder: Encoder
) -> None:
    path = build("flat")
    (segments(path)[0] / "documents.db").unlink()
    before = contents(path)
    with pytest.raises(
        DamagedIndex, match=r"documents\.db cannot be recovered: missing; 38 documents"
    ):
        SearchIndex.repair_at(path)
    assert contents(path) == before
    done = SearchIndex.repair_at(path, accept_loss=True)
    assert [problem.reason for problem in done.lost] == ["missing; 38 documents are lost"]
    assert SearchIndex.verify_at(path) == ()
    with SearchIndex.open(path, tiny_encoder) as index:
        assert {one.id for one in index.documents()} == ids_of(SECOND) | {"first4"}


def test_a_lost_list_of_deleted_documents_is_reported(
    build: Callable[[str], Path], tiny_encoder: Encoder
) -> None:
    path = build("flat")
    (tombstones,) = (path / "tombstones").iterdir()
    tombstones.write_bytes(b"\0" * 20)
    with pytest.raises(
        DamagedIndex, match="the list of deleted documents is lost, 1 would come back"
    ):
        SearchIndex.repair_at(path)
    assert SearchIndex.repair_at(path, accept_loss=True).lost
    with SearchIndex.open(path, tiny_encoder) as index:
        assert {one.id for one in index.documents()} == ids_of((*FIRST, *SECOND))
        assert index.get("first4").text == "the new text"  # no older text than the newest
        assert len(index) == 70
        assert index.verify() == ()


def test_vectors_are_made_by_no_other_encoder(
    build: Callable[[str], Path], tmp_path: Path, tiny_folder: Callable[[str], Path]
) -> None:
    path = build("flat")
    (segments(path)[1] / "vectors.npy").unlink()
    before = contents(path)
    with pytest.raises(ModelMismatch):
        SearchIndex.repair_at(path, model=str(tiny_folder("roberta")))
    with pytest.raises(InputError, match="nothing was changed"):
        SearchIndex.repair_at(path, model=str(tmp_path / "nowhere"))
    assert contents(path) == before
    assert SearchIndex.repair_at(path).repaired  # by the bundled encoder


def test_a_lost_encoder_whose_model_is_gone_may_be_given_up(
    tiny_encoder: Encoder, tmp_path: Path, tiny_copy: Callable[..., Path]
) -> None:
    model = tiny_copy("bert", "model")
    encoder = Encoder.load(model, pooling="mean", device="cpu")
    path = tmp_path / "index"
    SearchIndex.build(FIRST, encoder, path).close()
    shutil.rmtree(path / "encoder")
    shutil.rmtree(model)
    with pytest.raises(InputError, match="accept_loss continues without it"):
        SearchIndex.repair_at(path)
    done = SearchIndex.repair_at(path, accept_loss=True)
    assert [problem.file for problem in done.lost] == ["encoder"]
    with SearchIndex.open(path, tiny_encoder) as index:
        assert index.info().encoder_bytes == 0
        assert len(index) == 40


def test_a_lost_manifest_is_not_invented(build: Callable[[str], Path]) -> None:
    path = build("flat")
    (path / "manifest.json").unlink()
    before = contents(path)
    with pytest.raises(DamagedIndex, match="restore it from a backup or build the index again"):
        SearchIndex.repair_at(path)
    assert contents(path) == before


def test_a_whole_index_is_left_as_it_is(build: Callable[[str], Path], tmp_path: Path) -> None:
    path = build("ivf")
    before = contents(path)
    assert not SearchIndex.repair_at(path)
    assert contents(path) == before
    with pytest.raises(InputError, match="there is no index at"):
        SearchIndex.repair_at(tmp_path / "nowhere")


def test_rebuilt_vectors_are_those_that_were_lost(
    build: Callable[[str], Path], tiny_encoder: Encoder
) -> None:
    path = build("flat")
    file = segments(path)[0] / "vectors.npy"
    before = np.load(file)
    file.unlink()
    SearchIndex.repair_at(path)
    (again,) = (
        vectors
        for vectors in (np.load(one / "vectors.npy") for one in segments(path))
        if len(vectors) == len(before)
    )
    np.testing.assert_allclose(again, before, atol=1e-5)
