"""Any damage to the bytes of an index is reported, and the damaged file is never parsed."""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from index_cases import (
    KINDS,
    contents,
    documents,
    ids_in,
    mixed_documents,
    state,
    write_manifest,
)

from sbertkit import Encoder, SearchIndex
from sbertkit.errors import DamagedIndex, InputError, NewerFormat
from sbertkit.index.segment import VECTORS_FILE
from sbertkit.retrieval import (
    change_documents,
    compact_index,
    delete_documents,
    journal,
    opening,
)

CORPUS = mixed_documents(60)
FILES = (
    *("manifest.json", "documents.db", "passages.npy", "vectors.npy", "index.faiss", "build.json"),
    "words.bin",
)


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path, kind="hnsw").close()
    return path


@pytest.fixture(autouse=True)
def _restored(index: Path, tiny_encoder: Encoder) -> Iterator[None]:
    yield
    assert state(index, tiny_encoder) == {identifier for identifier, _ in CORPUS}


def file_of(index: Path, name: str) -> Path:
    (path,) = index.rglob(name)
    return path


def assert_reported(index: Path, encoder: Encoder, what: str) -> None:
    with pytest.raises(InputError) as caught:
        SearchIndex.open(index, encoder)
    assert "\n" not in str(caught.value)
    try:
        problems = SearchIndex.verify_at(index)
    except NewerFormat:  # the one byte that says which format it is
        assert what.startswith("manifest.json")
    else:
        assert problems, what
        assert all(problem.file and "\n" not in problem.reason for problem in problems)


def test_any_flipped_bit_is_reported(index: Path, tiny_encoder: Encoder) -> None:
    source = random.Random(11)
    for turn in range(200):
        path = file_of(index, FILES[turn % len(FILES)])
        content = path.read_bytes()
        place, bit = source.randrange(len(content)), source.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        assert_reported(index, tiny_encoder, f"{path.name} {place} {bit}")
        path.write_bytes(content)


def test_every_flipped_bit_of_the_manifest_is_reported(index: Path, tiny_encoder: Encoder) -> None:
    path = index / "manifest.json"
    content = path.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(InputError):
            SearchIndex.open(index, tiny_encoder)
    path.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_any_truncation_and_any_addition_is_reported(
    index: Path, tiny_encoder: Encoder, name: str
) -> None:
    path = file_of(index, name)
    content = path.read_bytes()
    lengths = {0, 1, 20, len(content) // 2, len(content) - 2, len(content) - 1}
    for other in (*(content[:length] for length in lengths), content + b"\0", content + b"\n"):
        path.write_bytes(other)
        assert_reported(index, tiny_encoder, f"{name} {len(other)}")
    path.write_bytes(content)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_reported(index: Path, tiny_encoder: Encoder, name: str) -> None:
    path = file_of(index, name)
    away = path.rename(index.parent / "away")
    assert_reported(index, tiny_encoder, name)
    path.mkdir()
    assert_reported(index, tiny_encoder, name)
    path.rmdir()
    away.rename(path)


def test_a_missing_segment_is_reported_with_all_its_files(
    index: Path, tiny_encoder: Encoder
) -> None:
    away = (index / "segments").rename(index.parent / "away")
    with pytest.raises(DamagedIndex, match="missing; restore it from a backup or build"):
        SearchIndex.open(index, tiny_encoder)
    assert [problem.reason for problem in SearchIndex.verify_at(index)] == ["missing"] * 6
    away.rename(index / "segments")


def test_files_of_two_indexes_do_not_mix(
    index: Path, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    SearchIndex.build(mixed_documents(60, "e"), tiny_encoder, tmp_path / "x", kind="hnsw").close()
    for name in ("documents.db", "vectors.npy", "index.faiss"):
        path = file_of(index, name)
        content = path.read_bytes()
        shutil.copy(file_of(tmp_path / "x", name), path)
        assert_reported(index, tiny_encoder, name)
        path.write_bytes(content)


def test_files_that_do_not_belong_are_reported_and_do_no_harm(
    index: Path, tiny_encoder: Encoder
) -> None:
    (segment,) = (index / "segments").iterdir()
    for name in ("notes.txt", "segments/stray", f"segments/{segment.name}/more.bin", "x/y.npy"):
        path = index / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\0")
        assert SearchIndex.verify_at(index) == ((name, "not part of the index: move it away"),)
        with SearchIndex.open(index, tiny_encoder) as opened:
            assert len(opened) == len(CORPUS)
        path.unlink()
    (index / "x").rmdir()
    (index / "link").symlink_to(index.parent, target_is_directory=True)
    assert [problem.file for problem in SearchIndex.verify_at(index)] == ["link"]
    (index / "link").unlink()


def test_files_of_others_are_left_where_they_are(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    names = ("segments/notes.txt", "encoder/mine/a", "tombstones/x.npy", "letter.txt")
    for name in names:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text("precious")
    assert not SearchIndex.repair_at(path)
    with SearchIndex.open(path, tiny_encoder) as opened:
        opened.delete([CORPUS[0][0]])
        opened.compact()
        assert {problem.file for problem in opened.verify()} == set(names)
    assert all((path / name).read_text() == "precious" for name in names)


LEFT = (
    "segments/000002-0123abcd/documents.db",
    "encoder/000002-0123abcd/encoder.onnx",
    "tombstones/000002.npy",
)


def leave(path: Path, names: Iterable[str]) -> None:
    for name in names:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"\0")


def test_what_a_killed_writer_leaves_is_no_damage_and_goes_with_the_next_change(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    before = contents(path)
    journal.begin(path, 2)
    names = (*LEFT, ".manifest.0123abcd.tmp.json")
    leave(path, (*names, ".journal.0123abcd.tmp.json"))
    assert SearchIndex.verify_at(path) == ()
    with SearchIndex.open(path, tiny_encoder) as opened:
        assert not opened.compact()  # which changes nothing
        assert all((path / name).exists() for name in names)
        with pytest.raises(InputError, match="in the index already"):
            opened.add([CORPUS[0]])
        assert all((path / name).exists() for name in names)
        assert opened.verify() == ()
        opened.delete([CORPUS[0][0]])
        assert opened.info().generation == 3
    assert not any((path / name).exists() for name in names)
    assert contents(path).keys() - before.keys() == {"tombstones", "tombstones/000003.npy"}
    assert SearchIndex.verify_at(path) == ()


def test_what_no_journal_names_is_reported_and_kept(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    leave(path, (*LEFT, "tombstones/20240101.npy"))
    reported = [*(name.rpartition("/")[0] for name in LEFT[:2]), LEFT[2], "tombstones/20240101.npy"]
    assert [problem.file for problem in SearchIndex.verify_at(path)] == sorted(reported)
    assert [problem.file for problem in SearchIndex.repair_at(path).kept] == sorted(reported)
    with SearchIndex.open(path, tiny_encoder) as opened:
        opened.delete([CORPUS[0][0]])
        opened.compact()
        opened.add([("new", "a new one")])
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    assert all((path / name).read_bytes() == b"\0" for name in LEFT)
    assert [problem.file for problem in SearchIndex.verify_at(path)] == sorted(reported)


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 100_000, b'{"begun": null}', None])
def test_a_damaged_journal_names_nothing(
    tiny_encoder: Encoder, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    leave(path, LEFT)
    if content is None:
        (path / "journal.json").symlink_to("/dev/zero")
    else:
        (path / "journal.json").write_bytes(content)
    assert len(SearchIndex.verify_at(path)) == 3
    with SearchIndex.open(path, tiny_encoder) as opened:
        opened.delete([CORPUS[0][0]])
    assert all((path / name).exists() for name in LEFT)
    assert not os.path.lexists(path / "journal.json")


@pytest.mark.parametrize("path", ["../x", "/etc", "segments", "segments/000002-0123abcd/../x"])
def test_a_journal_names_nothing_but_what_a_writer_makes(
    tiny_encoder: Encoder, tmp_path: Path, path: str
) -> None:
    root = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, root).close()
    (tmp_path / "x").mkdir()
    before = contents(tmp_path)
    journal.begin(root, 2)
    record = json.loads((root / "journal.json").read_text())
    (root / "journal.json").write_text(json.dumps({**record, "stale": [path]}))
    with SearchIndex.open(root, tiny_encoder) as opened:
        opened.delete([CORPUS[0][0]])
    after = contents(tmp_path)
    assert after.keys() >= before.keys()


def test_an_older_manifest_that_is_put_back_costs_nothing(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    SearchIndex.build(CORPUS, tiny_encoder, path).close()
    older = (path / "manifest.json").read_bytes()
    SearchIndex.build(documents(70), tiny_encoder, path).close()
    with SearchIndex.open(path, tiny_encoder) as opened:
        opened.delete(["d69"])
    newer = (path / "manifest.json").read_bytes()
    (path / "manifest.json").write_bytes(older)
    before = contents(path)
    (segment,) = (path / "segments").iterdir()
    named = f"segments/{segment.name}"
    assert {problem.file for problem in SearchIndex.verify_at(path)} >= {
        named,
        "tombstones/000003.npy",
    }
    with pytest.raises(
        DamagedIndex, match=rf"restore it, or the manifest\.json that \S+{segment.name[-8:]}"
    ):
        SearchIndex.repair_at(path)
    with pytest.raises(DamagedIndex):
        SearchIndex.open(path, tiny_encoder)
    assert contents(path) == before
    done = SearchIndex.repair_at(path, accept_loss=True)
    assert done.lost
    assert named in {problem.file for problem in done.kept}
    SearchIndex.build(documents(3), tiny_encoder, path).close()
    (path / "manifest.json").write_bytes(newer)
    with SearchIndex.open(path, tiny_encoder) as opened:
        assert len(opened) == 69


LINKED = ("segments", "encoder", "tombstones", "segments/{id}", "encoder/{id}", "segments/{id}/x")


@pytest.mark.parametrize("place", LINKED)
def test_nothing_is_written_or_deleted_through_a_link(
    tiny_encoder: Encoder, tmp_path: Path, place: str
) -> None:
    path, elsewhere = tmp_path / "index", tmp_path / "elsewhere"
    with SearchIndex.build(CORPUS, tiny_encoder, path) as opened:
        opened.delete([CORPUS[0][0]])
    (segment,) = (path / "segments").iterdir()
    link = path / place.format(id=segment.name)
    if link.exists():
        link.rename(elsewhere)
    else:
        elsewhere.mkdir()
    leave(elsewhere, ("000123-deadbeef/thesis.txt", "123456.npy"))
    link.symlink_to(elsewhere)
    before = contents(tmp_path)
    encoder = tiny_encoder
    changes: tuple[Callable[[], object], ...] = (
        lambda: delete_documents(path, ["d1"]),
        lambda: compact_index(path),
        lambda: change_documents(path, [("new", "one")], lambda _: encoder, mode="add"),
        lambda: change_documents(path, CORPUS, lambda _: encoder, mode="update"),
        lambda: SearchIndex.repair_at(path, accept_loss=True),
        lambda: SearchIndex.build(CORPUS, encoder, path),
        lambda: SearchIndex.build(CORPUS, encoder, path, resume=True),
    )
    for change in changes:
        with pytest.raises(InputError, match=rf"{link} is a symbolic link, and nothing is written"):
            change()
    assert contents(tmp_path) == before
    assert link.is_symlink()
    if place != LINKED[-1]:
        with pytest.raises(DamagedIndex, match="is a symbolic link"):
            SearchIndex.open(path, encoder)
    assert SearchIndex.verify_at(path)


def test_all_problems_are_listed(index: Path) -> None:
    paths = [file_of(index, name) for name in ("build.json", "documents.db", "vectors.npy")]
    contents = [path.read_bytes() for path in paths]
    paths[0].unlink()
    paths[1].write_bytes(contents[1][:-1])
    paths[2].write_bytes(contents[2][:-1] + b"\xff")
    reasons = {Path(problem.file).name: problem.reason for problem in SearchIndex.verify_at(index)}
    assert reasons["build.json"] == "missing"
    assert reasons["documents.db"] == (
        f"expected {len(contents[1])} bytes, found {len(contents[1]) - 1}"
    )
    assert "SHA-256" in reasons["vectors.npy"]
    assert all(not Path(problem.file).is_absolute() for problem in SearchIndex.verify_at(index))
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)


def rewritten(index: Path, **changes: Any) -> bytes:
    """Puts a manifest there that is whole but says something else; gives the old one."""
    old = (index / "manifest.json").read_bytes()
    write_manifest(index, {**json.loads(old), **changes})
    return old


@pytest.mark.parametrize("version", [3, 4, 1_000])
def test_a_newer_format_is_refused_and_not_replaced(
    index: Path, tiny_encoder: Encoder, version: int
) -> None:
    old = rewritten(index, format=version, something_new=[1, 2])
    for use in (SearchIndex.open, SearchIndex.verify_at):
        with pytest.raises(NewerFormat, match=f"format {version}; this sbertkit reads format 2"):
            use(index)
    with pytest.raises(NewerFormat):
        SearchIndex.build(CORPUS, tiny_encoder, index)
    (index / "manifest.json").write_bytes(old)


def test_a_manifest_is_held_by_its_own_hash(index: Path, tiny_encoder: Encoder) -> None:
    path = index / "manifest.json"
    old = path.read_text()
    content = json.loads(old)
    for other in (
        old.replace('"recall": 0.95', '"recall": 0.96'),
        json.dumps(content),  # the same content, written by another program
        old.replace("\n", "\r\n"),
        json.dumps({key: value for key, value in content.items() if key != "sha256"}, indent=2),
    ):
        assert other != old
        path.write_text(other, newline="")
        with pytest.raises(DamagedIndex, match="does not match its own SHA-256"):
            SearchIndex.open(index, tiny_encoder)
    path.write_text(old)


@pytest.mark.parametrize("field", ["segments", "encoder", "generation", "tombstones"])
def test_a_whole_manifest_without_a_field_is_damage(index: Path, field: str) -> None:
    old = rewritten(index)
    content = json.loads(old)
    del content[field]
    (index / "manifest.json").write_text(json.dumps(content))
    rewritten(index)
    with pytest.raises(DamagedIndex, match=f"missing required field `{field}`"):
        SearchIndex.open(index)
    (index / "manifest.json").write_bytes(old)


def test_whole_files_that_do_not_fit_together_are_damage(
    index: Path, tiny_encoder: Encoder
) -> None:
    segments = json.loads((index / "manifest.json").read_text())["segments"]
    held = segments[0]["passages"]
    segments[0]["passages"] += 1
    old = rewritten(index, segments=segments)
    with pytest.raises(DamagedIndex, match=f"array of shape \\({held + 1},"):
        SearchIndex.open(index, tiny_encoder)
    assert SearchIndex.verify_at(index)
    (index / "manifest.json").write_bytes(old)


def test_in_a_large_index_only_the_mapped_vectors_are_left_to_verify(
    index: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "HASH_ALL_BYTES", 1_000)
    source = random.Random(4)
    for name in FILES[1:]:
        path = file_of(index, name)
        content = path.read_bytes()
        for place in (0, 9, 30, 127, len(content) - 1, *source.choices(range(len(content)), k=9)):
            changed = bytearray(content)
            changed[place % len(content)] ^= 1 << source.randrange(8)
            path.write_bytes(changed)
            assert SearchIndex.verify_at(index)
            if name != VECTORS_FILE:
                with pytest.raises(DamagedIndex):
                    SearchIndex.open(index, tiny_encoder)
                continue
            try:  # a changed header or number is not looked at, and does no harm
                SearchIndex.open(index, tiny_encoder).search("word", k=60)
            except DamagedIndex:
                assert place < 10
        path.write_bytes(content[:-1])
        with pytest.raises(DamagedIndex, match="bytes"):
            SearchIndex.open(index, tiny_encoder)
        path.write_bytes(content)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_index_can_be_rebuilt(
    tiny_encoder: Encoder, tmp_path: Path, kind: str, name: str
) -> None:
    path = tmp_path / "index"
    for how in ("cut", "flipped", "gone"):
        SearchIndex.build(CORPUS, tiny_encoder, path, kind=kind).close()
        if kind in ("flat", "ivfpq") and name == "index.faiss":
            continue
        file = file_of(path, name)
        content = file.read_bytes()
        if how == "gone":
            file.unlink()
        else:
            half = len(content) // 2
            file.write_bytes(content[:half] + (b"" if how == "cut" else b"~" + content[half + 1 :]))
        assert_reported(path, tiny_encoder, name)
        SearchIndex.build(documents(7), tiny_encoder, path, kind=kind).close()
        with SearchIndex.open(path, tiny_encoder) as opened:
            assert ids_in(opened) == {one for one, _ in documents(7)}
        if name == "manifest.json":  # which does not say any more what belonged to it
            left = {Path(problem.file).parent.name for problem in SearchIndex.verify_at(path)}
            assert left - {"trained"} == {"segments", "encoder"}
            shutil.rmtree(path)
        else:
            assert SearchIndex.verify_at(path) == ()
            assert len(list((path / "segments").iterdir())) == 1


def test_an_open_index_tells_what_became_of_its_folder(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    with SearchIndex.build(CORPUS, tiny_encoder, tmp_path / "x") as opened:
        assert opened.verify() == ()
        file_of(tmp_path / "x", "build.json").unlink()
        assert [problem.reason for problem in opened.verify()] == ["missing"]
        assert opened.search(CORPUS[4][1], k=1)[0].id == "d4"


@pytest.fixture(scope="module")
def lived(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with every kind of file: several segments, deleted documents, its encoder."""
    path = tmp_path_factory.mktemp("lived") / "index"
    with SearchIndex.build(documents(1_200, "more"), tiny_encoder, path, kind="hnsw") as index:
        index.add(CORPUS)
        index.delete([CORPUS[0][0], "more7"])
        assert index.info().segments == 2
    return path


def assert_flips_reported(lived: Path, encoder: Encoder, turns: int) -> None:
    """Flips bits of all files, one at a time; each is reported, and none is parsed."""
    source = random.Random(turns)
    files = sorted(path for path in lived.rglob("[!.]*") if path.is_file())
    assert {"manifest.json", "000003.npy", "encoder.onnx"} <= {path.name for path in files}
    for turn in range(turns):
        path = files[turn % len(files)]
        content = bytearray(path.read_bytes())
        place, bit = source.randrange(len(content)), source.randrange(8)
        content[place] ^= 1 << bit
        path.write_bytes(content)
        assert_reported(lived, encoder, f"{path.name} {place} {bit}")
        content[place] ^= 1 << bit
        path.write_bytes(content)


def assert_truncations_reported(lived: Path, encoder: Encoder, turns: int) -> None:
    """Truncates files at random lengths, one at a time; each is reported."""
    source = random.Random(turns)
    files = sorted(path for path in lived.rglob("[!.]*") if path.is_file())
    for turn in range(turns):
        path = files[turn % len(files)]
        content = path.read_bytes()
        length = source.randrange(len(content))
        path.write_bytes(content[:length])
        assert_reported(lived, encoder, f"{path.name} {length}")
        path.write_bytes(content)


def test_flips_and_cuts_of_any_file_are_reported(lived: Path, tiny_encoder: Encoder) -> None:
    assert_flips_reported(lived, tiny_encoder, 60)
    assert_truncations_reported(lived, tiny_encoder, 30)


@pytest.mark.slow
def test_a_thousand_flips_and_two_hundred_cuts_are_reported(
    lived: Path, tiny_encoder: Encoder
) -> None:
    assert_flips_reported(lived, tiny_encoder, 1_000)
    assert_truncations_reported(lived, tiny_encoder, 200)
