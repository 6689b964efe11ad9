"""Cached vectors equal encoded ones, also after damage or an interruption."""

import contextlib
import hashlib
import json
import logging
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sbertkit.arrays import Vectors
from sbertkit.encoder import Encoder
from sbertkit.encoder.protocols import Kind
from sbertkit.errors import StorageError
from sbertkit.evaluation import vector_cache
from sbertkit.evaluation.vector_cache import CachedEncoder

TEXTS = ["two goats climb", "", "a kettle sings", "goats " * 80, "two goats climb"]


@pytest.fixture
def cached(tiny_encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CachedEncoder:
    monkeypatch.setattr(vector_cache, "_TEXTS_PER_FILE", 2)
    return CachedEncoder(tiny_encoder, tmp_path / "cache")


def encode(cached: CachedEncoder, texts: list[str], kind: Kind = "document") -> Vectors:
    return cached.encode_with_report(texts, kind=kind).vectors


def files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


def forbid_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("encoded again")

    monkeypatch.setattr(Encoder, "start_run", refuse)


def test_cached_vectors_are_read(
    cached: CachedEncoder, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tiny_encoder.encode_with_report(TEXTS)
    first = cached.encode_with_report(TEXTS)
    forbid_encoding(monkeypatch)
    second = cached.encode_with_report(TEXTS)
    np.testing.assert_allclose(first.vectors, plain.vectors, atol=1e-6)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    for found in (first.report, second.report):
        assert found.truncated == plain.report.truncated
        assert found.tokens_lost == plain.report.tokens_lost
        assert (found.rows, found.blank) == (5, (1,))


def test_queries_and_documents_are_kept_apart(tiny_encoder: Encoder, tmp_path: Path) -> None:
    cached = CachedEncoder(tiny_encoder, tmp_path / "cache")
    encode(cached, ["goats"], kind="document")
    encode(cached, ["goats"], kind="query")
    assert len(files(tmp_path)) == 2


def test_texts_that_concatenate_to_the_same_string_are_distinct(
    cached: CachedEncoder, tiny_encoder: Encoder
) -> None:
    one, other = ["ab", "c"], ["a", "bc"]
    encode(cached, one)
    np.testing.assert_allclose(encode(cached, other), tiny_encoder.encode(other), atol=1e-6)


def test_no_texts_give_no_vectors(cached: CachedEncoder, tiny_encoder: Encoder) -> None:
    assert encode(cached, []).shape == (0, tiny_encoder.dim)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_encoded_again(
    cached: CachedEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    first = encode(cached, TEXTS)
    for path in files(tmp_path):
        content = bytearray(path.read_bytes())
        if damage == "flip":
            content[-1] ^= 1
        damaged = {"cut": content[:-9], "empty": bytearray(), "flip": content}
        path.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, "sbertkit"):
        again = encode(cached, TEXTS)
    np.testing.assert_array_equal(first, again)
    assert sum("is damaged" in record.getMessage() for record in caplog.records) == 3


def with_hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def replaced(content: bytes, **fields: object) -> bytes:
    """A file's content with other fields in its report, and a hash that is right."""
    line, _, values = content[32:].partition(b"\n")
    report = {**json.loads(line), **fields}
    return with_hash(json.dumps(report).encode() + b"\n" + values)


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "pickle": lambda _: with_hash(pickle.dumps({"vectors": 1})),
    "zip": lambda _: with_hash(b"PK\x03\x04" + bytes(40)),
    "nothing": lambda _: with_hash(b""),
    "no report": lambda content: with_hash(content[32:].partition(b"\n")[2]),
    "nested": lambda _: with_hash(b"[" * 100_000),
    "digits": lambda content: with_hash(
        content[32:].replace(b'"rows": ', b'"rows": ' + b"1" * 5_000)
    ),
    "list": lambda _: with_hash(b"[]\n"),
    "fields missing": lambda _: with_hash(b'{"rows": 2}\n'),
    "rows": lambda content: replaced(content, rows=10**12),
    "row of no text": lambda content: replaced(content, blank=[7]),
    "row below 0": lambda content: replaced(content, truncated=[-1]),
    "types": lambda content: replaced(content, seconds="long"),
    "not a number": lambda content: replaced(content, seconds=float("nan")),
    "below 0": lambda content: replaced(content, tokens_lost=-1),
    "too few": lambda content: with_hash(content[32:-4]),
    "too many": lambda content: with_hash(content[32:] + bytes(4)),
    "large": lambda content: with_hash(content[32:] + bytes(2**22)),
    "nan": lambda content: with_hash(content[32:-4] + b"\x00\x00\xc0\x7f"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_with_the_right_hash_is_encoded_again(
    cached: CachedEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    first = encode(cached, TEXTS)
    for path in files(tmp_path):
        path.write_bytes(HOSTILE[name](path.read_bytes()))
    with caplog.at_level(logging.WARNING, "sbertkit"):
        again = encode(cached, TEXTS)
    np.testing.assert_array_equal(first, again)
    lines = [record.getMessage() for record in caplog.records]
    assert sum(" is damaged (" in line for line in lines) == 3
    assert all("\n" not in line and len(line) < 1_000 for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="pipes and links")
@pytest.mark.parametrize("kind", ["pipe", "link", "device", "folder"])
def test_what_is_no_regular_file_is_not_read(
    cached: CachedEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    encode(cached, ["a kettle"])
    (path,) = files(tmp_path)
    elsewhere = path.rename(tmp_path / "elsewhere")
    make: dict[str, Callable[[], object]] = {
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(elsewhere),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    make[kind]()
    with caplog.at_level(logging.WARNING, "sbertkit"), contextlib.suppress(StorageError):
        encode(cached, ["a kettle"])
    assert " is damaged (" in caplog.records[0].getMessage()
    assert elsewhere.is_file()


def test_an_interrupted_run_goes_on_with_what_is_missing(
    cached: CachedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Iterator[str]:
        yield from TEXTS[:3]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(cached.start_run().vectors(broken()))
    assert len(files(tmp_path)) == 1
    encoded = []
    start = Encoder.start_run

    def counted(self: Encoder, **options: object) -> object:
        encoded.append(options)
        return start(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Encoder, "start_run", counted)
    encode(cached, TEXTS)
    assert len(encoded) == 2


def test_one_report_covers_all_chunks(
    cached: CachedEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["goats " * 80, "a kettle", "kettles " * 80, "", "roof " * 80]
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "sbertkit"):
            encode(cached, texts)
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == 2, lines
        assert lines[0].startswith("3 of 5 texts were truncated to ")
        assert lines[1].startswith("1 blank among 5 texts")


def test_another_encoder_has_separate_files(tiny_encoder: Encoder, tmp_path: Path) -> None:
    other = Encoder.load(tiny_encoder.options.model, pooling="cls", normalize=True)
    for encoder in (tiny_encoder, other):
        vectors = encode(CachedEncoder(encoder, tmp_path / "cache"), TEXTS)
        np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-6)
