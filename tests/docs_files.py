"""The files that the examples of README and docs/ read: small, under the names used there."""

import gzip
import json
import random
from pathlib import Path

_WHO = ("a heron", "two bakers", "the fox", "my aunt", "a judge", "some men", "one child", "he")
_DOES = ("eats", "runs", "sings", "waits", "reads", "sleeps")
_WHERE = ("at home", "in a bar", "by the sea", "on a roof")


def sentences() -> list[str]:
    """192 different ones."""
    return [f"{who} {does} {where}" for who in _WHO for does in _DOES for where in _WHERE]


def write_files(folder: Path) -> None:
    """Writes all of them into an empty folder."""
    lines = sentences()
    (folder / "corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "queries.txt").write_text("who eats\nwho sings by the sea\n", encoding="utf-8")
    articles: list[dict[str, object]] = [
        {
            "id": f"a{row}",
            "title": f"No. {row}",
            "text": line,
            "lang": "de" if row % 5 == 0 else "en",
            "year": 1990 + row % 35,
            "tags": ["food"] if "eats" in line else [],
        }
        for row, line in enumerate(lines)
    ]
    _write_jsonl(folder / "articles.jsonl", articles)
    _write_jsonl(folder / "new.jsonl", [{"id": "n1", "text": "a new article"}])
    _write_jsonl(folder / "changed.jsonl", [{"id": "a3", "text": "a changed article"}])
    _write_notes(folder / "notes", lines)
    pairs = [{"anchor": line, "positive": f"{line} today"} for line in lines[:40]]
    parallel = [f"{line}\t{line[::-1]}" for line in lines[:40]]
    (folder / "en-de.tsv").write_text("\n".join(parallel) + "\n", encoding="utf-8")
    _write_jsonl(folder / "pairs.jsonl", [dict(pair) for pair in pairs])
    _write_nli(folder / "snli_1.0_train.jsonl.gz", lines)
    _write_sts(folder / "stsb.tsv", lines)
    _write_collection(folder / "scifact", lines)
    run = [
        f"q{row} Q0 a{place} {place + 1} {9 - place} bm25" for row in range(4) for place in range(5)
    ]
    (folder / "bm25.trec").write_text("\n".join(run) + "\n", encoding="utf-8")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"intermediate_size": 64, "max_position_embeddings": 64}
    content = json.dumps({"model_type": "bert", **sizes, **more})
    (folder / "sizes.json").write_text(content, encoding="utf-8")
    suite = 'title = "Mine"\nsets = ["scifact"]\nmeasures = ["nDCG@10"]\n'
    (folder / "my_suite.toml").write_text(suite, encoding="utf-8")


def _write_notes(folder: Path, lines: list[str]) -> None:
    """A few Markdown files that are longer than the tiny model reads."""
    folder.mkdir()
    for number in range(4):
        own = lines[40 * number : 40 * number + 40]
        parts = [f"## {own[row]}\n\n{'. '.join(own[row : row + 10])}." for row in range(0, 40, 10)]
        text = f"# Note {number}\n\n" + "\n\n".join(parts) + "\n"
        (folder / f"note{number}.md").write_text(text, encoding="utf-8")


def _write_jsonl(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_nli(path: Path, lines: list[str]) -> None:
    draw = random.Random(0)
    rows = [
        {"gold_label": label, "sentence1": premise, "sentence2": draw.choice(lines)}
        for premise in lines[:40]
        for label in ("entailment", "neutral", "contradiction")
    ]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _write_sts(path: Path, lines: list[str]) -> None:
    draw = random.Random(1)
    rows = ["split\tscore\tsentence1\tsentence2"]
    for split in ("train", "dev", "test"):
        for _ in range(30):
            first, second = draw.choice(lines), draw.choice(lines)
            common = len(set(first.split()) & set(second.split()))
            rows.append(f"{split}\t{min(common, 5)}\t{first}\t{second}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _write_collection(folder: Path, lines: list[str]) -> None:
    (folder / "qrels").mkdir(parents=True)
    _write_jsonl(
        folder / "corpus.jsonl",
        [{"_id": f"a{i}", "title": "", "text": x} for i, x in enumerate(lines)],
    )
    _write_jsonl(folder / "queries.jsonl", [{"_id": f"q{i}", "text": lines[i]} for i in range(4)])
    judged = "".join(f"q{i}\ta{i}\t1\nq{i}\ta{i + 1}\t1\n" for i in range(4))
    for split in ("train", "test"):
        (folder / "qrels" / f"{split}.tsv").write_text(
            f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8"
        )
