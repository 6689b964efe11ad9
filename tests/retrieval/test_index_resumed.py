"""Builds that are interrupted and resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from index_cases import contents, documents, ids_of, state

from sbertkit import Encoder, SearchIndex
from sbertkit.encoder import encoding
from sbertkit.errors import InputError

OLD, NEW = documents(5, "old"), documents(500, "new")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", 100)


def interrupt(encoder: Encoder, path: Path, chunks: int, *, resume: bool = True) -> None:
    """A build that is interrupted after so many chunks."""
    run = encoding.EncodingRun.vectors

    def stopping(
        self: encoding.EncodingRun, *arguments: object, **named: object
    ) -> Iterator[object]:
        of_the_build = "total" in named  # others are of texts that an export is tried on
        for number, vectors in enumerate(run(self, *arguments, **named)):  # type: ignore[arg-type]
            if number == chunks and of_the_build:
                raise KeyboardInterrupt
            yield vectors

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding.EncodingRun, "vectors", stopping)
        with pytest.raises(KeyboardInterrupt):
            SearchIndex.build(NEW, encoder, path, resume=resume)


def rows_encoded(encoder: Encoder, path: Path, corpus: list[tuple[str, str]] = NEW) -> list[int]:
    """Resumes a build; the rows that went through the encoder."""
    rows: list[int] = []
    texts = {text for _, text in corpus}
    clean = encoding.EncodingRun._clean

    def noting(self: encoding.EncodingRun, text: object, row: int, account: object) -> str:
        if text in texts:  # not one that an export is tried on
            rows.append(row)
        return clean(self, text, row, account)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding.EncodingRun, "_clean", noting)
        SearchIndex.build(corpus, encoder, path, resume=True).close()
    return rows


@pytest.mark.parametrize("there_already", [False, True])
@pytest.mark.parametrize("chunks", [0, 2, 4])
def test_a_resumed_build_encodes_only_the_rest(
    tiny_encoder: Encoder, tmp_path: Path, there_already: bool, chunks: int
) -> None:
    path, whole = tmp_path / "index", tmp_path / "whole"
    if there_already:
        SearchIndex.build(OLD, tiny_encoder, path).close()
    interrupt(tiny_encoder, path, chunks)
    if there_already:
        assert state(path, tiny_encoder) == ids_of(OLD)
    else:
        assert not path.exists()
    assert rows_encoded(tiny_encoder, path) == list(range(100 * chunks, 500))
    assert state(path, tiny_encoder) == ids_of(NEW)
    SearchIndex.build(NEW, tiny_encoder, whole).close()
    (found,), (expected,) = (list(at.glob("segments/*/vectors.npy")) for at in (path, whole))
    assert found.read_bytes() == expected.read_bytes()
    assert sorted(left.name for left in tmp_path.iterdir()) == ["index", "whole"]
    assert {len(list((path / part).iterdir())) for part in ("segments", "encoder")} == {1}
    assert not list(path.rglob("chunks.jsonl"))


@pytest.mark.parametrize("there_already", [False, True])
def test_without_resume_an_interrupted_build_leaves_nothing(
    tiny_encoder: Encoder, tmp_path: Path, there_already: bool
) -> None:
    path = tmp_path / "index"
    if there_already:
        SearchIndex.build(OLD, tiny_encoder, path).close()
    before = contents(tmp_path)
    interrupt(tiny_encoder, path, 2, resume=False)
    assert contents(tmp_path) == before


def test_a_build_that_does_not_resume_starts_again(tiny_encoder: Encoder, tmp_path: Path) -> None:
    interrupt(tiny_encoder, tmp_path / "index", 2)
    SearchIndex.build(OLD, tiny_encoder, tmp_path / "index").close()
    assert state(tmp_path / "index", tiny_encoder) == ids_of(OLD)
    assert [left.name for left in tmp_path.iterdir()] == ["index"]


def test_another_corpus_or_encoder_is_refused_and_nothing_is_lost(
    tiny_encoder: Encoder, tiny_bert: Path, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    interrupt(tiny_encoder, path, 3)
    other = Encoder.load(tiny_bert, pooling="cls", device="cpu")
    with pytest.raises(
        InputError, match=r"has encoder '\w+', this one '\w+'; [^\n]*without resume"
    ):
        SearchIndex.build(NEW, other, path, resume=True)
    changed = [*NEW[:150], ("x", "something else"), *NEW[151:]]
    with pytest.raises(InputError, match=r"rows 101 to 200 are not those[^\n]*corpus has changed"):
        SearchIndex.build(changed, tiny_encoder, path, resume=True)
    with pytest.raises(InputError, match="id"):
        SearchIndex.build([("a", "b"), ("a", "c")], tiny_encoder, path, resume=True)
    assert rows_encoded(tiny_encoder, path) == list(range(300, 500))


def test_to_resume_what_was_never_begun_is_to_begin(tiny_encoder: Encoder, tmp_path: Path) -> None:
    assert rows_encoded(tiny_encoder, tmp_path / "index") == list(range(500))


@pytest.mark.parametrize("damage", ["one bit", "NaN", "cut"])
def test_vectors_that_changed_after_an_interruption_are_refused(
    damage: str, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    interrupt(tiny_encoder, path, 2)
    (vectors,) = tmp_path.rglob("vectors.npy")
    content = bytearray(vectors.read_bytes())
    if damage == "one bit":
        content[-5] ^= 1
    elif damage == "NaN":
        content[200:204] = b"\x00\x00\xc0\x7f"
    else:
        del content[-4:]
    vectors.write_bytes(content)
    with pytest.raises(InputError, match="without resume"):
        SearchIndex.build(NEW, tiny_encoder, path, resume=True)
    assert not path.exists()
    SearchIndex.build(NEW, tiny_encoder, path).close()
    assert state(path, tiny_encoder) == ids_of(NEW)


_ROWS = '"rows": 100'


@pytest.mark.parametrize(
    "value", ['"rows": -1', '"rows": "100"', '"rows": 1e3', '"rows": 1000000000000', '"evil": 100']
)
def test_a_log_that_is_not_ours_is_refused_in_one_line(
    value: str, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    interrupt(tiny_encoder, path, 2)
    (log,) = tmp_path.rglob("chunks.jsonl")
    log.write_text(log.read_text().replace(_ROWS, value, 1))
    with pytest.raises(InputError) as refused:
        SearchIndex.build(NEW, tiny_encoder, path, resume=True)
    assert "\n" not in str(refused.value)


def test_a_log_of_another_kind_is_not_read(tiny_encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "index"
    interrupt(tiny_encoder, path, 2)
    (log,) = tmp_path.rglob("chunks.jsonl")
    log.unlink()
    log.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="symbolic link"):
        SearchIndex.build(NEW, tiny_encoder, path, resume=True)


def test_a_line_without_end_or_nested_without_end_is_encoded_again(
    tiny_encoder: Encoder, tmp_path: Path
) -> None:
    path = tmp_path / "index"
    interrupt(tiny_encoder, path, 2)
    (log,) = tmp_path.rglob("chunks.jsonl")
    first, second, _ = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(first + second + b"[" * 100_000 + b"\n")
    assert rows_encoded(tiny_encoder, path) == list(range(100, 500))
    assert state(path, tiny_encoder) == ids_of(NEW)


@pytest.mark.parametrize("there_already", [False, True])
@pytest.mark.parametrize("reason", [KeyboardInterrupt, InputError])
def test_what_fails_after_the_last_vector_encodes_nothing_again(
    tiny_encoder: Encoder, tmp_path: Path, there_already: bool, reason: type[BaseException]
) -> None:
    path = tmp_path / "index"
    if there_already:
        SearchIndex.build(OLD, tiny_encoder, path).close()

    def failing(*_: object) -> None:
        raise reason

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sbertkit.retrieval.build.IndexWork.settle", failing)
        with pytest.raises(reason):
            SearchIndex.build(NEW, tiny_encoder, path, resume=True)
    assert rows_encoded(tiny_encoder, path) == []
    assert state(path, tiny_encoder) == ids_of(NEW)
    assert not list(path.rglob("chunks.jsonl"))
    assert sorted(left.name for left in tmp_path.iterdir()) == ["index"]
