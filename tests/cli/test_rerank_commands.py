"""The options --rerank and --rerank-depth, and export --reranker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from index_cases import documents
from tiny_rerankers import cross_encoder, write_collection

from sbertkit import Encoder, Reranker, SearchIndex

QUERY = "some words about nothing"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny cross-encoder."""
    return cross_encoder(tmp_path_factory.mktemp("reranker") / "model")


@pytest.fixture(scope="module")
def index(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index folder."""
    folder = tmp_path_factory.mktemp("index") / "index"
    SearchIndex.build(documents(50), tiny_encoder, folder).close()
    return folder


def test_search_prints_what_the_reranker_found(run: Run, index: Path, model: Path) -> None:
    options = ("--rerank", model, "--rerank-depth", 20, "-k", 4, "--format", "jsonl")
    ran = run("search", index, QUERY, *options)
    assert ran.status == 0
    with SearchIndex.open(index) as opened:
        expected = opened.search(QUERY, 4, rerank=Reranker.load(model), rerank_depth=20)
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["id"] for line in lines] == [hit.id for hit in expected]
    assert [line["score"] for line in lines] == pytest.approx(
        [hit.score for hit in expected], abs=1e-5
    )
    assert "stages" not in lines[0]


def test_an_explained_search_shows_score_and_rank_of_each_stage(
    run: Run, index: Path, model: Path
) -> None:
    options = ("--rerank", model, "--rerank-depth", 20, "-k", 4, "--explain")
    lines = run("search", index, QUERY, *options, "--format", "jsonl").out.splitlines()
    stages = [json.loads(line)["stages"] for line in lines]
    assert [one["rerank"]["rank"] for one in stages] == [1, 2, 3, 4]
    assert all(1 <= one["dense"]["rank"] <= 20 for one in stages)
    table = run("search", index, QUERY, *options, "--width", 100).out
    assert "dense" in table
    assert f"({stages[0]['dense']['rank']})" in table
    plain = run("search", index, QUERY, "--mode", "dense", "--explain", "--width", 100).out
    assert "dense" not in plain


def test_eval_retrieval_reports_the_reranker(
    run: Run, index: Path, model: Path, tmp_path: Path
) -> None:
    corpus = dict(documents(50))
    folder = write_collection(
        tmp_path / "collection",
        corpus,
        {f"q{number}": corpus[f"d{number}"] for number in range(5)},
        {f"q{number}": {f"d{number}": 1} for number in range(5)},
    )
    out, page = tmp_path / "r.json", tmp_path / "r.html"
    options = ("--rerank", model, "--rerank-depth", 7, "--json", out, "--report", page)
    ran = run("eval", "retrieval", folder, "--index", index, *options)
    assert ran.status == 0
    content = json.loads(out.read_text())
    assert (content["rerank"], content["rerank_depth"]) == (str(model), 7)
    assert content["rerank_fingerprint"] == Reranker.load(model).fingerprint
    assert content["reranked"]["texts"] == 35
    assert "35 pairs" in ran.out
    assert "35 pairs" in page.read_text()


def test_an_exported_reranker_is_used_like_its_model(
    run: Run, index: Path, model: Path, tmp_path: Path
) -> None:
    ran = run("export", model, "--reranker", "-o", tmp_path / "exported")
    assert ran.status == 0
    assert "cosine of all scores" in ran.out
    found = [
        run("search", index, QUERY, "--rerank", name, "--format", "jsonl").out
        for name in (model, tmp_path / "exported")
    ]
    ids = [[json.loads(line)["id"] for line in out.splitlines()] for out in found]
    assert ids[0] == ids[1]
    cached = run("export", model, "--reranker", "--precision", "int8")
    assert cached.status == 0
    assert "int8" in cached.out


def test_a_search_with_exports_loads_no_torch(
    run: Run, index: Path, model: Path, tmp_path: Path
) -> None:
    run("export", model, "--reranker", "-o", tmp_path / "exported")
    heavy = ("torch", "transformers", "scipy", "pandas", "pyarrow")
    exported = str(tmp_path / "exported")
    program = (
        "import sys; from sbertkit import SearchIndex\n"
        f"index = SearchIndex.open({str(index)!r})\n"
        f"hits = index.search({QUERY!r}, rerank={exported!r})\n"
        f"print(len(hits), [name for name in {heavy} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.strip() == "10 []"


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--rerank-depth", 5), 2, "--rerank-depth needs --rerank"),
        (("--rerank", "all-MiniLM-L6-v2"), 1, "no cross-encoder"),
        (("--rerank", "no-such-model"), 1, "no-such-model"),
        (("--rerank", "", "--rerank-depth", 0), 2, "0"),
    ],
)
def test_what_cannot_rerank_is_refused(
    run: Run, index: Path, options: tuple[object, ...], status: int, message: str
) -> None:
    ran = run("search", index, QUERY, *options)
    assert ran.status == status
    assert message in ran.err


def test_options_without_effect_are_refused(run: Run, model: Path, tmp_path: Path) -> None:
    ran = run("export", model, "--reranker", "--pooling", "cls", "-o", tmp_path / "out")
    assert ran.status == 2
    assert "--pooling and --reranker" in ran.err
    assert not (tmp_path / "out").exists()
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q 0 d 1\n")
    ran = run("eval", "retrieval", qrels, "--run", qrels, "--rerank", model)
    assert ran.status == 2
    assert "--rerank needs a folder" in ran.err
