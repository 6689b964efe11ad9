"""What each change does, refuses and leaves as it was."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import result_of
from index_cases import KINDS, assert_alike, contents, documents, ids_of, state, write_manifest
from other_user import public_folder

from sbertkit import Document, Encoder, ReadOptions, SearchIndex, evaluate_index
from sbertkit.encoder import encoding
from sbertkit.errors import (
    DamagedIndex,
    InputError,
    InputTypeError,
    ModelMismatch,
    StorageError,
    UnknownId,
)
from sbertkit.retrieval import merge_policy

OLD, NEW = documents(40, "old"), documents(25, "new")


@pytest.fixture
def index(tiny_encoder: Encoder, tmp_path: Path) -> Iterator[SearchIndex]:
    with SearchIndex.build(OLD, tiny_encoder, tmp_path / "index") as built:
        yield built


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that went through the encoder."""
    texts: list[str] = []
    clean = encoding.EncodingRun._clean

    def noting(self: encoding.EncodingRun, text: object, row: int, account: object) -> str:
        texts.append(str(text))
        return clean(self, text, row, account)  # type: ignore[arg-type]

    monkeypatch.setattr(encoding.EncodingRun, "_clean", noting)
    return texts


def assert_refused(
    index: SearchIndex, change: Callable[[], object], error: type, match: str
) -> None:
    """Asserts that a change is refused in one line, and leaves folder and view as they were."""
    before, held = contents(index.path.parent), len(index)
    with pytest.raises(error, match=match) as caught:
        change()
    assert "\n" not in str(caught.value)
    assert contents(index.path.parent) == before
    assert len(index) == held


# --- adding and replacing


@pytest.mark.parametrize("kind", KINDS)
def test_added_documents_are_found(tiny_encoder: Encoder, tmp_path: Path, kind: str) -> None:
    with SearchIndex.build(OLD, tiny_encoder, tmp_path / "x", kind=kind) as index:
        changes = index.add(NEW)
        assert (changes.added, changes.encoded, changes.documents) == (25, 25, 65)
        assert all(index.search(text, 1)[0].id == one for one, text in (*OLD, *NEW))
        assert index.info().kind == kind
    assert state(tmp_path / "x", tiny_encoder) == ids_of((*OLD, *NEW))


def test_an_id_that_is_there_is_not_added(index: SearchIndex) -> None:
    corpus = [*NEW, OLD[3]]
    assert_refused(
        index, lambda: index.add(corpus), InputError, r"id 'old3' on row 25 is in the index"
    )
    path = index.path.parent / "more.tsv"
    path.write_text("a\tone\nold5\ttwo\n")
    assert_refused(
        index, lambda: index.add(path), InputError, r"more\.tsv: id 'old5' on line 2 is in"
    )


@pytest.mark.parametrize("method", ["add", "upsert", "update"])
@pytest.mark.parametrize(
    "corpus",
    [
        [("x", "one"), ("y", "two"), ("x", "three")],
        [("x", "one"), *documents(1_500, "many"), ("x", "one")],
    ],
)
def test_an_id_twice_is_refused(
    index: SearchIndex, method: str, corpus: list[tuple[str, str]]
) -> None:
    last = len(corpus) - 1
    assert_refused(
        index,
        lambda: getattr(index, method)(corpus),
        InputError,
        rf"duplicate id 'x' on rows 0 and {last}; every document needs an id of its own",
    )


@pytest.mark.parametrize("texts", [("same", "same"), ("other", "same"), ("same", "other")])
@pytest.mark.parametrize("method", ["upsert", "update"])
def test_an_id_that_is_there_twice_is_refused(
    index: SearchIndex, method: str, texts: tuple[str, str]
) -> None:
    given = [("old2", OLD[2][1] if text == "same" else text) for text in texts]
    assert_refused(
        index,
        lambda: getattr(index, method)([given[0], *NEW, given[1]]),
        InputError,
        "duplicate id 'old2' on rows 0 and 26",
    )


def test_an_upsert_encodes_what_is_new_or_changed(index: SearchIndex, encoded: list[str]) -> None:
    corpus = [*OLD[:10], ("old10", "changed"), ("brand", "new")]
    changes = index.upsert(corpus)
    assert (changes.added, changes.changed, changes.unchanged, changes.encoded) == (1, 1, 10, 2)
    assert encoded == ["changed", "new"]
    assert index.get("old10").text == "changed"
    assert index.get("brand").text == "new"
    assert len(index) == 41


def test_an_upsert_of_what_is_there_changes_nothing(index: SearchIndex, encoded: list[str]) -> None:
    before = contents(index.path)
    assert not index.upsert(OLD)
    assert not index.update(OLD)
    assert not index.add([])
    assert not index.delete([])
    assert contents(index.path) == before
    assert encoded == []


def test_other_fields_are_replaced_without_encoding(
    tiny_encoder: Encoder, tmp_path: Path, encoded: list[str]
) -> None:
    corpus = [Document(one, text, {"year": 1, "a": 2}) for one, text in OLD]
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "x") as index:
        score = index.search(OLD[4][1], 1)[0].score
        del encoded[:]
        assert not index.upsert([Document(*OLD[4], {"a": 2, "year": 1})])  # the same fields
        for fields in ({"year": 2}, {"year": True}, {}):
            changes = index.upsert([Document(*OLD[4], fields)])
            assert (changes.changed, changes.encoded) == (1, 0)
            hit = index.search_batch([tiny_encoder.encode(OLD[4][1])], 1)[0][0]
            assert (hit.id, hit.metadata) == ("old4", fields)
            assert hit.score == pytest.approx(score, abs=1e-6)
        assert encoded == [OLD[4][1]] * 3  # the queries


def test_deleted_ids_come_back(index: SearchIndex) -> None:
    index.delete(["old1", "old2"])
    with pytest.raises(UnknownId):
        index.get("old1")
    index.add([("old1", "again")])
    assert index.upsert([("old2", "again, too")]).added == 1
    assert index.get("old1").text == "again"
    index.compact()
    assert index.get("old2").text == "again, too"
    assert len(index) == 40


def test_all_may_go_and_some_come_again(index: SearchIndex, tiny_encoder: Encoder) -> None:
    index.delete(one for one, _ in OLD)
    assert len(index) == 0
    assert index.search("anything") == []
    assert state(index.path, tiny_encoder) == set()
    index.compact()
    index.add(NEW)
    assert state(index.path, tiny_encoder) == ids_of(NEW)


def test_a_failing_corpus_changes_nothing(index: SearchIndex) -> None:
    def failing() -> Iterator[tuple[str, str]]:
        yield from NEW
        raise TimeoutError("the source is gone")

    before = contents(index.path.parent)
    for method in (index.add, index.upsert, index.update):
        with pytest.raises(TimeoutError, match="the source is gone"):
            method(failing())
    assert contents(index.path.parent) == before
    with pytest.raises(InputTypeError, match="read must be ReadOptions"):
        index.add(NEW, read="jsonl")  # type: ignore[arg-type]
    for bad in ([("x", 3)], [("x",)], [["text"]], "corpus", 3):
        with pytest.raises(InputError if bad == "corpus" else (InputError, InputTypeError)):
            index.add(bad)  # type: ignore[arg-type]
    assert contents(index.path.parent) == before


def test_an_empty_file_is_refused_and_blank_documents_are_left_out(
    index: SearchIndex, caplog: pytest.LogCaptureFixture
) -> None:
    path = index.path.parent / "empty.txt"
    path.write_text("\n\n")
    for method in (index.add, index.upsert, index.update):
        assert_refused(index, partial(method, path), InputError, "has no documents to index")
    assert_refused(index, lambda: index.update([]), InputError, "has no documents to index")
    assert index.upsert([("a", " "), ("b", "word")]).added == 1
    assert "1 blank (a): left out" in caplog.text


def test_vectors_that_are_not_finite_are_refused_with_the_row(
    index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> Iterator[Any]:
        yield np.ones((3, index.encoder.dim), np.float32)
        vectors = np.ones((22, index.encoder.dim), np.float32)
        vectors[4] = np.nan
        yield vectors

    monkeypatch.setattr(encoding.EncodingRun, "vectors", broken)
    assert_refused(
        index, lambda: index.add(NEW), InputError, "document 8 of the index has a zero or inf"
    )


# --- bringing up to date


def test_an_update_makes_it_the_corpus(
    index: SearchIndex, tiny_encoder: Encoder, encoded: list[str]
) -> None:
    corpus = [*OLD[5:30], ("old2", "changed"), *NEW[:3]]
    changes = index.update(corpus)
    assert (changes.added, changes.changed, changes.deleted, changes.unchanged) == (3, 1, 14, 25)
    assert changes.encoded == 4
    assert encoded == ["changed", *(text for _, text in NEW[:3])]
    assert state(index.path, tiny_encoder) == ids_of(corpus)


def test_lines_that_move_on_are_not_encoded_again(
    tiny_encoder: Encoder, tmp_path: Path, encoded: list[str]
) -> None:
    lines = [text for _, text in OLD]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n")
    with SearchIndex.build(path, tiny_encoder, tmp_path / "x") as index:
        del encoded[:]
        path.write_text("\n".join(["a first line", *lines[:20], *lines[21:]]) + "\n")
        changes = index.update(path)
        assert changes.encoded == 1
        assert encoded == ["a first line"]
        assert index.search_batch([tiny_encoder.encode(lines[7])], 1)[0][0].id == "9"
        for number, text in enumerate(["a first line", *lines[:20], *lines[21:]], 1):
            assert index.get(str(number)).text == text
            assert index.search(text, 1)[0].id == str(number)


def test_a_corpus_from_elsewhere_with_nothing_of_the_index_is_refused(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    for name, texts in (("a", OLD), ("b", NEW), ("c", [*NEW, OLD[3]])):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for _, text in texts))
    with SearchIndex.build(tmp_path / "a.txt", tiny_encoder, tmp_path / "x") as index:
        assert_refused(
            index,
            lambda: index.update(tmp_path / "b.txt"),
            InputError,
            r"b\.txt has none of the 40 texts of [^\n]*/x, which was built from [^\n]*/a\.txt",
        )
        assert_refused(index, lambda: index.update(NEW), InputError, "none of the 40 texts")
        assert index.update(tmp_path / "c.txt").encoded == 25
        (tmp_path / "a.txt").write_text("all new\n")
        assert index.update(tmp_path / "a.txt").documents == 1  # the corpus that it was built from


# --- deleting


def test_unknown_ids_delete_nothing(index: SearchIndex) -> None:
    assert_refused(
        index,
        lambda: index.delete(["old1", "nobody", "neither"]),
        UnknownId,
        r"no document with the id 'nobody' and 1 more; nothing was deleted[^\n]*missing_ok$",
    )
    assert index.delete(["old1", "nobody", "nobody"], missing_ok=True).deleted == 1
    assert_refused(index, lambda: index.delete(["old2", "old2"]), InputError, "duplicate id 'old2'")
    for bad in ("old2", b"old2", 3, [3.5], [None]):
        change = partial(index.delete, bad)  # type: ignore[arg-type]
        assert_refused(index, change, InputTypeError, "expected a list|be a str")


def test_an_id_of_an_earlier_version_is_not_found(index: SearchIndex) -> None:
    for version in range(6):
        index.upsert([("old3", f"version {version}")])
    assert index.get("old3").text == "version 5"
    index.delete(["old3"])
    with pytest.raises(UnknownId):
        index.get("old3")


# --- who else is there


def test_another_encoder_is_refused(
    index: SearchIndex, tiny_bert: Path, tmp_path: Path, tiny_encoder: Encoder
) -> None:
    other = Encoder.load(tiny_bert, pooling="cls", device="cpu")
    SearchIndex.build(NEW, other, index.path).close()  # by another process, say
    before = contents(index.path)
    with pytest.raises(ModelMismatch, match="open it with the encoder that built it"):
        index.add([("a", "b")])
    assert contents(index.path) == before
    assert len(index) == 40  # the view that it has
    with pytest.raises(ModelMismatch):
        index.refresh()
    with pytest.raises(ModelMismatch):
        SearchIndex.open(index.path, tiny_encoder)


def test_another_precision_is_reported(
    tiny_bert: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    halves = Encoder.load(tiny_bert, pooling="mean", device="cpu", precision="bf16")
    SearchIndex.build(OLD, halves, tmp_path / "x").close()
    exact = Encoder.load(tiny_bert, pooling="mean", device="cpu")
    with SearchIndex.open(tmp_path / "x", exact) as index:
        index.add(NEW)
    assert "was built in bf16, the new vectors are computed in fp32" in caplog.text


def test_a_reader_keeps_its_view_until_it_refreshes(
    index: SearchIndex, tiny_encoder: Encoder
) -> None:
    queries = [text for _, text in OLD[:8]]
    with SearchIndex.open(index.path, tiny_encoder) as reader:
        expected = reader.search_batch(queries, 50)
        index.add(NEW)
        index.delete(["old0", "old1"])
        index.compact()
        index.upsert([("old2", "changed")])
        assert reader.search_batch(queries, 50) == expected
        assert reader.get("old0").text == OLD[0][1]
        assert reader.info().generation == 1
        assert reader.refresh()
        assert not reader.refresh()
        assert_alike(reader.search_batch(queries, 80), index.search_batch(queries, 80))
        assert reader.info() == index.info()
        assert reader.info().generation == 5


def test_a_change_starts_from_what_another_has_written(
    index: SearchIndex, tiny_encoder: Encoder
) -> None:
    with SearchIndex.open(index.path, tiny_encoder) as other:
        index.add(NEW[:5])
        other.add(NEW[5:10])
        with pytest.raises(InputError, match=r"'new7'[^\n]* is in the index already"):
            index.add([NEW[7]])
        index.delete(["new8"])
        other.refresh()
        assert len(other) == len(index) == 49


def test_one_writer_at_a_time(index: SearchIndex) -> None:
    def late() -> Iterator[tuple[str, str]]:
        with pytest.raises(StorageError, match=r"this thread is writing .* already"):
            index.add([("a", "b")])
        yield "late", "document"

    assert index.add(late()).added == 1
    assert [left.name for left in index.path.parent.iterdir()] == ["index"]


# --- segments


def test_small_changes_leave_few_segments(
    tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_policy, "_SMALL", 1)
    pairs = documents(70)
    with SearchIndex.build(pairs[:1], tiny_encoder, tmp_path / "x", with_encoder=False) as index:
        most = 0
        for number, pair in enumerate(pairs[1:], 2):
            index.add([pair])
            most = max(most, index.info().segments)
            assert index.info().generation == number
        assert most <= 7
        assert [document.id for document in index.documents()] == [one for one, _ in pairs]


def test_a_segment_of_which_much_is_deleted_is_rewritten(index: SearchIndex) -> None:
    index.delete(one for one, _ in OLD[:8])  # a fifth
    assert (index.info().deleted, index.info().segments) == (8, 1)
    index.delete(["old8"])
    assert (index.info().deleted, index.info().segments) == (0, 1)
    assert len(index) == 31


@pytest.mark.parametrize(
    ("live", "new", "start"),
    [
        ([], 1, 0),
        ([50_000], 1, 1),
        ([5_000, 900], 1, 1),
        ([50_000, 900, 1_001], 1, 3),
        ([50_000, 4_000, 2_000], 1_999, 3),
        ([50_000, 4_000, 2_000], 2_000, 1),
        ([9_000, 9_000], 9_000, 1),
        ([50_000, 15_000], 18_000, 2),
    ],
)
def test_which_segments_are_merged(live: Sequence[int], new: int, start: int) -> None:
    assert merge_policy.tail_to_merge(live, new) == start


def test_merged_vectors_are_the_same_bytes(index: SearchIndex) -> None:
    before = {hit.id: hit.score for hit in index.search(OLD[0][1], 100)}
    (old,) = (np.load(path) for path in index.path.glob("segments/*/vectors.npy"))
    index.add(NEW)
    index.delete(["old7"])
    index.compact()
    (new,) = (np.load(path) for path in index.path.glob("segments/*/vectors.npy"))
    np.testing.assert_array_equal(new[:39], np.delete(old, 7, axis=0))
    after = {hit.id: hit.score for hit in index.search(OLD[0][1], 100)}
    assert all(after[one] == score for one, score in before.items() if one != "old7")


# --- what the disk does


def adding(_: Connection, give_up: Callable[[], None], path: Path) -> str:
    """Tries to add as a user without the right to write; searches before."""
    give_up()
    with SearchIndex.open(path) as index:
        assert len(index.search("anything", 100)) == 40
        errors = []
        for change in (
            lambda: index.add(NEW),
            lambda: index.delete(["old1"]),
            lambda: index.upsert([("old1", "x")]),
        ):
            try:
                change()
            except StorageError as error:
                errors.append(str(error))
        assert len(errors) == 3
        return errors[0]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_folder_that_may_not_be_written_is_searched_and_not_changed(
    tiny_encoder: Encoder, obey_permissions: Callable[[], None]
) -> None:
    with public_folder() as folder:
        SearchIndex.build(OLD, tiny_encoder, folder / "index").close()
        before = contents(folder)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        messages = result_of(adding, obey_permissions, folder / "index")
        assert "permission denied; choose a place that you may write to" in messages
        assert contents(folder) == before


def limited(_: Connection, model: str, path: Path, limit: int) -> list[str]:
    """Changes an index under a limit on the size of files; the message of each change."""
    import resource
    import signal

    encoder = Encoder.load(model, pooling="mean", device="cpu")
    many = [(one, text + " x" * 2_000) for one, text in documents(80, "many")]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    messages = []
    with SearchIndex.open(path, encoder) as index:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        for change in (lambda: index.add(many), lambda: index.upsert(many), index.compact):
            try:
                change()
            except StorageError as error:
                messages.append(str(error))
    return messages


@pytest.mark.skipif(os.name == "nt", reason="POSIX limits")
def test_files_that_may_not_grow_leave_the_index_as_it_was(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    pairs = [(one, text + " y" * 2_000) for one, text in OLD]
    with SearchIndex.build(pairs, tiny_encoder, path, with_encoder=False) as index:
        index.delete(["old1"])
    before = contents(tmp_path)
    messages = result_of(limited, tiny_encoder.options.model, path, 60_000)
    assert len(messages) == 3
    assert all("index" in one and "\n" not in one for one in messages)
    assert contents(tmp_path) == before


def test_a_folder_copied_while_it_was_written_is_reported(
    index: SearchIndex, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    first = tmp_path / "copy"
    shutil.copytree(index.path, first)
    index.add(NEW)
    index.compact()
    shutil.copy(index.path / "manifest.json", first / "manifest.json")  # of the one, files of other
    with pytest.raises(DamagedIndex, match="missing"):
        SearchIndex.open(first, tiny_encoder)
    second = shutil.copytree(index.path, tmp_path / "second")
    with SearchIndex.open(second, tiny_encoder) as moved:
        moved.add([("a", "b")])
        assert len(moved) == 66
    assert len(index) == 65


def test_damage_since_it_was_opened_is_not_copied(tiny_encoder: Encoder, tmp_path: Path) -> None:
    many = documents(1_300, "many")
    for name in ("vectors.npy", "documents.db"):
        path = tmp_path / name
        with SearchIndex.build(many, tiny_encoder, path) as index:
            index.add(OLD)
            (old,) = (one for one in path.rglob(name) if one.stat().st_size > 100_000)
            content = bytearray(old.read_bytes())
            content[len(content) // 2] ^= 1
            old.write_bytes(content)
            before = contents(path)
            changes: list[Callable[[], object]] = [
                index.compact,
                partial(index.delete, [one for one, _ in many[:400]]),
                partial(index.upsert, [Document(*many[0], {"new": "field"})]),
            ]
            if name == "documents.db":
                changes.append(partial(index.add, NEW))
            for change in changes:
                with pytest.raises(DamagedIndex, match="sbertkit repair"):
                    change()
                assert contents(path) == before
            if name == "vectors.npy":
                index.add(NEW)  # which reads nothing of it
            assert index.verify()


def test_a_file_with_the_name_of_the_lock_is_left_alone(index: SearchIndex) -> None:
    lock = index.path / ".lock"
    for content in (b"[[package]]\n", b'{"lockfileVersion": 3}', b"\xff\xfe"):
        lock.write_bytes(content)
        with pytest.raises(StorageError, match=r"\.lock is a link, a folder or a file of another"):
            index.delete(["old1"])
        assert lock.read_bytes() == content
    lock.write_text('{"pid": 1, "host": "gone"}')  # of a killed writer
    index.delete(["old1"])
    assert lock.read_bytes() == b""


def test_an_emptied_index_has_nothing_to_sample(index: SearchIndex) -> None:
    index.delete([one for one, _ in OLD])
    ids, vectors = index.sample(3)
    assert (ids, vectors.shape) == ([], (0, 32))
    with pytest.raises(InputError, match="has no documents to evaluate"):
        evaluate_index(index)


def test_a_damaged_index_is_not_changed(index: SearchIndex, tiny_encoder: Encoder) -> None:
    (path,) = index.path.glob("segments/*/documents.db")
    with SearchIndex.open(index.path, tiny_encoder) as fresh:
        path.write_bytes(path.read_bytes()[:-1])
        before = contents(index.path)
        index.close()
        with pytest.raises(DamagedIndex, match="sbertkit repair"):
            SearchIndex.open(index.path, tiny_encoder)
        del fresh
    assert contents(index.path) == before


def test_a_manifest_from_before_there_were_changes_is_read(
    index: SearchIndex, tiny_encoder: Encoder
) -> None:
    manifest = json.loads((index.path / "manifest.json").read_text())
    for name in ("clusters", "exported"):
        del manifest[name]
    for segment in manifest["segments"]:
        del segment["deleted"]
    write_manifest(index.path, manifest)
    shutil.rmtree(index.path / "encoder")
    with SearchIndex.open(index.path, tiny_encoder) as old:
        old.add(NEW)
    assert state(index.path, tiny_encoder) == ids_of((*OLD, *NEW))


def test_read_options_reach_the_corpus(index: SearchIndex, tmp_path: Path) -> None:
    path = tmp_path / "more.data"
    path.write_bytes("a\tcafé\n".encode("latin-1"))
    index.add(path, read=ReadOptions(format="tsv", encoding="latin-1"))
    assert index.get("a").text == "café"


# --- documents without ids, and chosen columns


def lines_of(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("zero one two three", (1, 0, 0, 3, 0)),
        ("one three", (0, 0, 1, 1, 1)),
        ("one changed three", (0, 1, 0, 0, 2)),
        ("three two one", (0, 0, 0, 2, 1)),
        ("zero one changed three four", (2, 1, 0, 2, 0)),
        ("one two three", (0, 0, 0, 0, 3)),
    ],
)
def test_documents_without_ids_are_known_by_their_texts(
    tiny_encoder: Encoder, tmp_path: Path, lines: str, expected: tuple[int, ...]
) -> None:
    corpus = lines_of(tmp_path / "corpus.txt", "one", "two", "three")
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "index") as index:
        changes = index.update(lines_of(corpus, *lines.split()))
        found = (changes.added, changes.changed, changes.deleted, changes.moved, changes.unchanged)
        assert found == expected
        assert bool(changes) == any(expected[:4])
        assert changes.encoded == len(set(lines.split()) - {"one", "two", "three"})
        assert changes.documents == len(index) == len(lines.split())
        for number, text in enumerate(lines.split(), 1):
            assert index.get(str(number)).text == text


def test_other_fields_of_a_line_are_a_change_that_encodes_nothing(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    corpus = lines_of(tmp_path / "corpus.csv", "text,year", "one,1", "two,2")
    with SearchIndex.build(corpus, tiny_encoder, tmp_path / "index") as index:
        changes = index.update(lines_of(corpus, "text,year", "new,9", "one,3", "two,2"))
        assert (changes.added, changes.changed, changes.moved, changes.encoded) == (1, 1, 1, 1)
        assert index.get("3").metadata == {"year": "3"}


def test_texts_without_ids_replace_nothing_silently(tiny_encoder: Encoder, tmp_path: Path) -> None:
    corpus = lines_of(tmp_path / "corpus.txt", "one", "two")
    with SearchIndex.build(["a", "b"], tiny_encoder, tmp_path / "index") as index:
        assert index.get("1").text == "b"
        for change in (index.add, index.upsert):
            with pytest.raises(InputError, match="need ids of their own"):
                change(["c", "d", "e"])
        assert index.get("1").text == "b"
        assert index.update(["b", "a", "c"]).added == 1
        before = list(index.documents())
        for change in (index.add, index.upsert):
            with pytest.raises(InputError, match="no ids but the numbers of their lines"):
                change(corpus)
        assert list(index.documents()) == before


def test_the_columns_of_the_build_are_those_of_its_changes(
    tiny_encoder: Encoder, tmp_path: Path, encoded: list[str]
) -> None:
    corpus = lines_of(tmp_path / "corpus.csv", "key,text,more", "a,ignored,one", "b,ignored,two")
    read = ReadOptions(text_columns=["more"], id_column="key", metadata_columns=())
    SearchIndex.build(corpus, tiny_encoder, tmp_path / "index", read=read).close()
    with SearchIndex.open(tmp_path / "index", tiny_encoder) as index:
        encoded.clear()
        lines_of(corpus, "key,text,more", "a,ignored,one", "b,ignored,changed")
        assert index.update(corpus).changed == 1
        assert encoded == ["changed"]
        assert index.get("b") == Document("b", "changed", {})
        assert index.upsert(lines_of(tmp_path / "c.txt", "a line")).added == 1
        assert index.add([{"id": "c", "text": "three"}]).added == 1
        with pytest.raises(InputError, match="no column 'more'; found id, text"):
            index.add(lines_of(tmp_path / "other.csv", "id,text", "d,four"))
        chosen = ReadOptions(text_columns=["text"], id_column="key")
        assert index.update(corpus, read=chosen).changed == 2
    with SearchIndex.open(tmp_path / "index", tiny_encoder) as index:
        assert not index.update(corpus)


def test_vectors_of_a_file_are_not_taken_for_other_texts(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    rows = [{"id": "a", "text": "one", "title": "A"}, {"id": "b", "text": "two", "title": "B"}]
    index = SearchIndex.build(rows, tiny_encoder, tmp_path / "index")
    SearchIndex.dump_at(index.path, tmp_path / "dump.parquet")
    chosen = ReadOptions(text_columns=["id", "text"])
    other = SearchIndex.build(
        tmp_path / "dump.parquet", tiny_encoder, tmp_path / "other", read=chosen
    )
    assert other.search("a A one", 1)[0].score == pytest.approx(1, abs=1e-5)
    assert index.search("A one", 1)[0].score == pytest.approx(1, abs=1e-5)
