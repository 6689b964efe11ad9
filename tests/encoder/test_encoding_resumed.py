"""Encoding a corpus that is killed and resumed: the file equals that of a run that was not."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sbertkit.encoder import Encoder, encode_corpus, encoding
from sbertkit.errors import InputError, StorageError

LINES = 900


class Killed(BaseException):
    """Stands for what ends a process."""


@pytest.fixture(autouse=True)
def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_CHUNK_TEXTS", 100)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    source = random.Random(0)
    words = ["kettle", "sings", "on", "the", "stove", "very", "loudly", "a" * 80]
    lines = [" ".join(source.choices(words, k=source.randint(1, 60))) for _ in range(LINES)]
    lines[333] = lines[777] = "  "
    lines[5] = lines[6]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def stop_after(monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    """Lets the next run end as by a kill once so many chunks are done."""
    run = encoding.EncodingRun.vectors

    def stopping(
        self: encoding.EncodingRun, *arguments: object, **named: object
    ) -> Iterator[object]:
        for number, vectors in enumerate(run(self, *arguments, **named)):  # type: ignore[arg-type]
            if number == chunks:
                raise Killed
            yield vectors

    monkeypatch.setattr(encoding.EncodingRun, "vectors", stopping)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "corpus.txt")


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("chunks", [0, 1, 5, 8])
def test_a_resumed_file_equals_that_of_one_run(
    tiny_encoder: Encoder, corpus: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, chunks: int
) -> None:
    whole, other = corpus.with_name(f"whole{suffix}"), corpus.with_name(f"other{suffix}")
    expected = encode_corpus(tiny_encoder, corpus, whole)
    with monkeypatch.context() as patch:
        stop_after(patch, chunks)
        with pytest.raises(Killed):
            encode_corpus(tiny_encoder, corpus, other, resume=True)
    assert not other.exists()
    encoded: list[int] = []
    with monkeypatch.context() as patch:
        clean = encoding.EncodingRun._clean
        patch.setattr(
            encoding.EncodingRun,
            "_clean",
            lambda self, text, row, account: (
                encoded.append(row) or clean(self, text, row, account)  # type: ignore[func-returns-value]
            ),
        )
        report = encode_corpus(tiny_encoder, corpus, other, resume=True)
    assert encoded == list(range(100 * chunks, LINES))
    assert other.read_bytes() == whole.read_bytes()
    for name in ("rows", "truncated", "tokens_lost", "blank", "repaired", "duplicates"):
        assert getattr(report, name) == getattr(expected, name)
    assert report.blank == (333, 777)
    assert report.truncated
    assert left_in(corpus.parent) == [f"other{suffix}", f"whole{suffix}"]


def test_without_resume_nothing_stays_and_all_is_done_anew(
    tiny_encoder: Encoder, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = corpus.with_name("x.npy")
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            encode_corpus(tiny_encoder, corpus, output, resume=True)
    assert left_in(corpus.parent) == [".x.npy.chunks"]
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Killed):
            encode_corpus(tiny_encoder, corpus, output)
    assert left_in(corpus.parent) == []


def test_another_corpus_or_encoder_is_refused_and_what_was_done_stays(
    tiny_encoder: Encoder, tiny_bert: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = corpus.with_name("x.npy")
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(Killed):
            encode_corpus(tiny_encoder, corpus, output, resume=True)
    other = Encoder.load(tiny_bert, pooling="cls", device="cpu")
    with pytest.raises(
        InputError, match=r"has encoder '\w+', this one '\w+'; [^\n]*without resume"
    ):
        encode_corpus(other, corpus, output, resume=True)
    text = corpus.read_text()
    for changed in (text.replace("\n", "!\n", 150), "\n".join(text.splitlines()[:250])):
        corpus.write_text(changed)
        with pytest.raises(InputError, match=r"^rows \d+ to \d+ [^\n]*the corpus has changed"):
            encode_corpus(tiny_encoder, corpus, output, resume=True)
    corpus.write_text(text + "one more line\n")  # what was done is as it was
    assert encode_corpus(tiny_encoder, corpus, output, resume=True).rows == LINES + 1
    assert left_in(corpus.parent) == ["x.npy"]


def test_a_torn_log_and_vectors_after_the_log_are_cut_off(
    tiny_encoder: Encoder, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, other = corpus.with_name("whole.npy"), corpus.with_name("other.npy")
    encode_corpus(tiny_encoder, corpus, whole)
    with monkeypatch.context() as patch:
        stop_after(patch, 4)
        with pytest.raises(Killed):
            encode_corpus(tiny_encoder, corpus, other, resume=True)
    parts = corpus.with_name(".other.npy.chunks")
    log = parts / "chunks.jsonl"
    log.write_bytes(log.read_bytes()[:-7])
    with (parts / "vectors.npy").open("ab") as file:
        file.write(b"half a row")
    encode_corpus(tiny_encoder, corpus, other, resume=True)
    assert other.read_bytes() == whole.read_bytes()


def test_two_runs_at_the_same_file_are_refused(
    tiny_encoder: Encoder, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = corpus.with_name("x.npy")
    run = encoding.EncodingRun.vectors

    def nested(self: encoding.EncodingRun, *arguments: object, **named: object) -> Iterator[object]:
        monkeypatch.setattr(encoding.EncodingRun, "vectors", run)
        with pytest.raises(StorageError, match="another process is writing"):
            encode_corpus(tiny_encoder, corpus, output)
        yield from run(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(encoding.EncodingRun, "vectors", nested)
    assert encode_corpus(tiny_encoder, corpus, output).rows == LINES
    assert left_in(corpus.parent) == ["x.npy"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_command_resumes_after_a_signal(
    tiny_bert: Path, tmp_path: Path, number: signal.Signals
) -> None:
    corpus, output = tmp_path / "corpus.txt", tmp_path / "out.npy"
    corpus.write_text("".join(f"line {row} of many\n" for row in range(60_000)))
    command = [sys.executable, "-m", "sbertkit", "encode", str(corpus), "-o", str(output)]
    command += ["--model", str(tiny_bert), "--pooling", "mean", "--quiet"]
    for _ in range(2):  # the first time without an export of the model in the cache
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    expected = output.read_bytes()
    output.unlink()
    log = tmp_path / ".out.npy.chunks" / "chunks.jsonl"
    with subprocess.Popen([*command, "--resume"], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (log.exists() and log.read_bytes().count(b"\n") > 2):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
    assert process.returncode in (-9, 143)
    assert not output.exists()
    done = log.read_bytes().count(b"\n") - 1
    subprocess.run([*command, "--resume"], check=True, stdout=subprocess.DEVNULL)
    assert output.read_bytes() == expected
    assert done >= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "out.npy"]
