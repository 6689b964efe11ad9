"""Files and folders whose names are not valid Unicode, as old archives and disks have them."""

import json
import os
from pathlib import Path

import pytest
from command_line import Run

STS = "".join(f"{number % 6}\ta cat {number} sits\ta dog {number} runs\n" for number in range(12))

COMMANDS = [
    "index corpus.txt -o index --model MODEL",
    "index corpus.txt -o other --model MODEL --without-encoder",
    "index corpus.txt -o other --update",
    "info index",
    "info index --format json",
    "search index goat",
    "search index goat --format jsonl",
    "search index goat --format trec",
    "add index more.jsonl",
    "upsert index more.jsonl",
    "delete index new",
    "verify index",
    "compact index",
    "dump index -o all.parquet",
    "dump index -o all.faiss",
    "index all.parquet -o index --replace --model MODEL",
    "repair index",
    "eval index index --json r.json",
    "eval sts sts.tsv --model MODEL --json sts.json --report sts.html",
    "eval isotropy corpus.txt --model MODEL --json iso.json --report iso.html",
    "encode corpus.txt -o v.npy --model MODEL",
    "encode corpus.txt -o v.parquet --model MODEL",
    "similarity corpus.txt corpus.txt --model MODEL",
    "export MODEL -o exported",
    "encode corpus.txt -o w.npy --model exported",
    "index corpus.txt -o third --model exported",
    "search third goat --model exported",
]

_OUTPUTS = ("-o", "--json", "--report")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system takes Unicode alone")
    (folder / "corpus.txt").write_text("\n".join(f"a kettle number {n}" for n in range(30)))
    (folder / "more.jsonl").write_text('{"id": "new", "text": "a third one"}\n')
    (folder / "sts.tsv").write_text(STS)
    return folder


def test_every_command_works_there(folder: Path, tiny_bert: Path, run: Run) -> None:
    for command in COMMANDS:
        words = command.replace("MODEL", str(tiny_bert)).split()
        first = 2 if words[0] == "eval" else 1
        known = {path.name for path in folder.iterdir()}
        known |= {words[place + 1] for place, word in enumerate(words) if word in _OUTPUTS}
        arguments = [folder / word if word in known else word for word in words[first:]]
        done = run(*words[:first], *arguments)
        assert done.status == 0, (command, done.err)
        (done.out + done.err).encode()  # what is shown is valid Unicode
    for name in ("r.json", "sts.json", "iso.json"):
        json.loads((folder / name).read_text(encoding="utf-8"))
