"""Long documents from the shell: --long, --overlap, --hits and upgrade."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from command_line import Run
from index_cases import mixed_documents, write_manifest

from sbertkit import Encoder, SearchIndex

PAIRS = mixed_documents(12)
LONG, SHORT = PAIRS[0], PAIRS[1]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"id": one, "text": text}) + "\n" for one, text in PAIRS))
    return path


def options(encoder: Encoder) -> list[str]:
    return ["--model", encoder.options.model, "--pooling", "mean"]


def test_a_hit_shows_its_passage(
    run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path
) -> None:
    built = run("index", corpus, "-o", tmp_path / "x", *options(tiny_encoder))
    assert built.status == 0, built.err
    vectors = SearchIndex.info_at(tmp_path / "x").vectors
    assert f"12 documents, {vectors} passages in {tmp_path / 'x'}" in built.out
    query = LONG[1][-60:]
    ran = run("search", tmp_path / "x", query, "--format", "jsonl", "-k", 12)
    hits = [json.loads(line) for line in ran.out.splitlines()]
    assert [hit["rank"] for hit in hits] == list(range(1, 13))
    for hit in hits:
        text = dict(PAIRS)[hit["id"]]
        assert text[hit.get("start", 0) : hit.get("end", len(text))] == hit["text"]
        assert ("start" in hit) == ("end" in hit) == (hit["text"] != text)
    (long,) = [hit for hit in hits if hit["id"] == LONG[0]]
    assert len(long["text"]) < len(LONG[1]) / 2
    ran = run("search", tmp_path / "x", query, "--format", "jsonl", "-k", 99, "--hits", "passages")
    assert len(ran.out.splitlines()) == vectors
    table = run("search", tmp_path / "x", SHORT[1], "--hits", "passages")
    assert table.status == 0
    refused = run("search", tmp_path / "x", "q", "--hits", "passages", "--format", "trec")
    assert (refused.status, refused.out) == (2, "")
    assert "a run names each document once" in refused.err


def test_info_says_what_became_of_long_texts(
    run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path
) -> None:
    for long, overlap in (("passages", 8), ("mean", 8), ("truncate", 0)):
        ran = run(
            *("index", corpus, "-o", tmp_path / long, *options(tiny_encoder)),
            *("--long", long, "--overlap", overlap),
        )
        assert ran.status == 0, ran.err
        facts = json.loads(run("info", tmp_path / long, "--format", "json").out)
        assert (facts["long"], facts["overlap"]) == (long, overlap)
        assert (facts["vectors"] > 12) == (long == "passages")
        update = run("index", corpus, "-o", tmp_path / long, "--update", "--long", long)
        assert "leave --long out" in update.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--long", "passage"], "'passage' is not one of 'passages', 'truncate', 'mean'"),
        (["--long", "truncate", "--overlap", "3"], "leave --overlap out"),
        (["--overlap", "40"], "--overlap must be below half of the 62 tokens"),
        (["--overlap", "-1"], "-1 is not in the range x>=0"),
    ],
)
def test_mistakes_are_named(
    run: Run,
    tiny_encoder: Encoder,
    corpus: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    ran = run("index", corpus, "-o", tmp_path / "x", *options(tiny_encoder), *arguments)
    assert ran.status in (1, 2)
    assert message in ran.err
    assert not (tmp_path / "x").exists()


def test_upgrade(run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    ran = run("index", corpus, "-o", path, *options(tiny_encoder), "--long", "truncate")
    assert "4 of 12 texts were truncated" in ran.err
    content = json.loads((path / "manifest.json").read_text())
    content["segments"][0].pop("passages")
    write_manifest(path, {**content, "format": 1})
    refused = run("search", path, "any")
    assert refused.status == 1
    assert f"upgrade it with: sbertkit upgrade {path}" in refused.err
    updated = run("index", corpus, "-o", path, "--update")
    assert f"sbertkit upgrade {path}" in updated.err
    rebuilt = run(
        "index", corpus, "-o", path, *options(tiny_encoder), "--kind", "ivf", "--clusters", 99
    )
    assert "99 clusters" in rebuilt.err  # and not refused for its format
    ran = run("upgrade", path)
    assert ran.status == 0, ran.err
    vectors = SearchIndex.info_at(path).vectors
    assert f"12 documents, {vectors} vectors in {path}: {vectors - 8} texts encoded" in ran.out
    assert run("verify", path).status == 0
    again = run("upgrade", path)
    assert "0 texts encoded" in again.out


def test_encode_writes_passages_with_their_places(
    run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "v.parquet"
    ran = run("encode", corpus, "-o", out, *options(tiny_encoder), "--long", "passages")
    assert ran.status == 0, ran.err
    rows = pyarrow.parquet.read_table(out).to_pylist()
    assert ran.out.startswith(f"{len(rows)} vectors in")
    assert [row["id"] for row in rows if row["start"] == 0] == [one for one, _ in PAIRS]
    for row in rows:
        assert dict(PAIRS)[row["id"]][row["start"] : row["end"]] == row["text"]
        assert row["vector"] == pytest.approx(tiny_encoder.encode(row["text"]).tolist(), abs=1e-5)
    refused = run(
        *("encode", corpus, "-o", tmp_path / "v.npy", *options(tiny_encoder)),
        *("--long", "passages"),
    )
    assert (refused.status, refused.out) == (1, "")
    assert "choose a name that ends in .parquet" in refused.err
    refused = run("index", out, "-o", tmp_path / "i", *options(tiny_encoder))
    assert refused.status == 1
    assert "has a row for each passage" in refused.err


def test_encode_writes_the_mean(
    run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path
) -> None:
    for name in ("v.npy", "v.parquet"):
        ran = run(
            *("encode", corpus, "-o", tmp_path / name, *options(tiny_encoder)), "--long", "mean"
        )
        assert ran.status == 0, ran.err
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (12, tiny_encoder.dim)
    rows = pyarrow.parquet.read_table(tmp_path / "v.parquet").to_pylist()
    assert np.array([row["vector"] for row in rows]) == pytest.approx(vectors, abs=1e-5)
    with SearchIndex.build(PAIRS, tiny_encoder, tmp_path / "i", long="mean") as index:
        ids, stored = index.sample(12)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert stored == pytest.approx(unit[[int(one[1:]) for one in ids]], abs=1e-5)


def test_vectors_of_a_file_are_taken_where_long_texts_were_treated_alike(
    run: Run, tiny_encoder: Encoder, corpus: Path, tmp_path: Path
) -> None:
    taken, encoded = "are used", "its texts are encoded"
    short = tmp_path / "short.jsonl"
    rows = [json.dumps({"id": one, "text": text}) + "\n" for one, text in PAIRS if len(text) < 99]
    short.write_text("".join(rows))
    cases = (
        (corpus, "truncate", "truncate", taken),
        (corpus, "truncate", "passages", encoded),
        (corpus, "mean", "mean", taken),
        (corpus, "mean", "truncate", encoded),
        (short, "truncate", "passages", taken),
        (short, "passages", "truncate", taken),
        (short, "mean", "passages", taken),
    )
    for number, (source, first, second, message) in enumerate(cases):
        out = tmp_path / f"{number}.parquet"
        ran = run("encode", source, "-o", out, *options(tiny_encoder), "--long", first)
        assert ran.status == 0, ran.err
        place = tmp_path / f"i{number}"
        ran = run("index", out, "-o", place, *options(tiny_encoder), "--long", second)
        assert ran.status == 0, ran.err
        assert message in ran.err, (first, second)


def test_eval_retrieval_counts_passages(run: Run, tiny_encoder: Encoder, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": one, "title": "", "text": text}) + "\n" for one, text in PAIRS]
    (folder / "corpus.jsonl").write_text("".join(rows))
    query = LONG[1].split(". ")[-2]
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": query}) + "\n")
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\nq\t{LONG[0]}\t1\n")
    runs = {}
    for long in ("truncate", "passages", "mean"):
        index = tmp_path / long
        ran = run("index", folder, "-o", index, *options(tiny_encoder), "--long", long)
        assert ran.status == 0, ran.err
        for name, more in (
            ("encoder", [*options(tiny_encoder), "--long", long]),
            ("index", ["--index", index]),
        ):
            out, run_file = tmp_path / f"{long}.json", tmp_path / f"{long}.{name}"
            ran = run("eval", "retrieval", folder, *more, "--json", out, "--write-run", run_file)
            assert ran.status == 0, ran.err
            assert json.loads(out.read_text())["long"] == long
        hits = [
            {row.split()[2]: float(row.split()[4]) for row in path.read_text().splitlines()}
            for path in (tmp_path / f"{long}.encoder", tmp_path / f"{long}.index")
        ]
        assert hits[0] == pytest.approx(hits[1], abs=1e-4)
        runs[long] = hits[0]
    assert runs["passages"][LONG[0]] > max(runs[other][LONG[0]] for other in ("truncate", "mean"))
    page = tmp_path / "page.html"
    ran = run("eval", "retrieval", folder, "--index", tmp_path / "passages", "--report", page)
    assert ran.status == 0, ran.err
    with SearchIndex.open(tmp_path / "passages") as opened:
        found = opened.search(query, 12)
    divided = [hit for hit in found if hit.passage.text != hit.text]
    assert any(hit.passage.start for hit in divided)
    shown = page.read_text().split("returned")[1:]
    for hit in divided[:3]:
        assert any(f"{hit.id}: {hit.passage.text[:60]}" in part for part in shown) or (
            f"{hit.id} (relevant): {hit.passage.text[:60]}" in page.read_text()
        )
    refused = run("eval", "retrieval", folder, "--index", tmp_path / "mean", "--long", "mean")
    assert "--long and --index do not go together" in refused.err
