"""Typical mistakes on the command line: each is answered in one line that names cause and cure."""

import json
from pathlib import Path

import pytest
from command_line import Run
from index_cases import contents

from sbertkit import Encoder, SearchIndex
from sbertkit.encoder.resolve import BUNDLED_NAME

MISTAKES: dict[str, tuple[str, ...]] = {
    # names
    f"encode a.txt -o v.npy --model {BUNDLED_NAME.lower()}x": ("did you mean", BUNDLED_NAME),
    "encode a.txt -o v.npy --model no/model-x": ("was not found", "path of a model folder"),
    "eval sts stsbb --model MODEL": ("no data set of that name", "did you mean 'stsb'"),
    "eval sts stsb2.tsv --model MODEL": ("no such file or folder",),
    "eval retrieval cranfeld --model MODEL": ("did you mean 'cranfield'",),
    "eval retrieval collection --model MODEL --measure ndcg@10x": ("unknown measure", "nDCG@10"),
    "eval retrieval collection --model MODEL --split tset": ("did you mean 'test'", "found test"),
    "eval run stss --model MODEL": ("no suite 'stss'", "did you mean 'sts'"),
    "data get cranfeld": ("did you mean 'cranfield'",),
    "models --language finish": ("did you mean 'finnish'",),
    "models show bert-base-uncasd": ("did you mean", "bert-base-uncased", "the table of models"),
    "models compare MODEL nothing --corpus a.txt": ("'nothing' was not found",),
    "models compare MODEL MODEL --corpus a.txt": ("at least 100", "found 0"),
    "serach index boat": ("No such command", "search"),
    "search index boat --modle MODEL": ("No such option", "--model"),
    "search index boat --format json": ("jsonl",),
    "search index boat --fields yeer": ("no hit has a field 'yeer'", "did you mean 'year'"),
    "search indx boat": ("there is no index at", "indx", "sbertkit index"),
    "info a.txt": ("a.txt",),
    "encode a.txt -o v.npy --pooling avg": ("'avg'", "mean"),
    "encode a.txt -o v.npy --precision int4": ("'int4'", "int8"),
    "index a.txt --kind hsnw": ("'hsnw'", "hnsw"),
    # columns and formats
    "index names.csv -o i --model MODEL": ("found name, note", "--text-column"),
    "index names.csv -o i --model MODEL --text-column nme": ("did you mean 'name'",),
    "index names.csv -o i --model MODEL --text-column note --id-column Id": ("no column 'Id'",),
    "index rows.jsonl -o i --model MODEL --metadata-columns yeer": ("did you mean 'year'",),
    "index rows.jsonl -o i --model MODEL --delimiter ;": ("only csv has a delimiter",),
    "index names.csv -o i --model MODEL --delimiter ;;": ("one character", ";;"),
    "index a.txt -o i --model MODEL --text-column text": ("has no columns", "--input-format"),
    "index data.xls -o i --model MODEL": ("unknown format", "--input-format"),
    "index bad.jsonl -o i --model MODEL": ("bad.jsonl line 2", "--skip-bad-lines"),
    "index latin.txt -o i --model MODEL": ("latin.txt line 1", "not valid utf-8", "--encoding"),
    "index twice.jsonl -o i --model MODEL": ("duplicate id 'x'", "lines 1 and 2"),
    "index empty.txt -o i --model MODEL": ("no documents to index",),
    "index nowhere.txt -o i --model MODEL": ("nowhere.txt", "no such file", "check the path"),
    "index emptyfolder -o i --model MODEL": (".txt or .md", "another folder"),
    # places
    "index b.txt -o index --model MODEL": ("holds an index of", "--replace"),
    "index a.txt -o a.txt --model MODEL": ("a.txt",),
    "encode a.txt -o v.csv --model MODEL": ("v.csv", ".npy"),
    "dump index -o d.csv": ("d.csv", ".parquet"),
    "eval sts pairs.tsv --model MODEL --json pairs.tsv": ("pairs.tsv", "choose another file"),
    # changes
    "delete index nobody": ("no document with the id 'nobody'", "--missing-ok"),
    "add index rows.jsonl": ("is in the index already", "upsert"),
    "upsert nowhere rows.jsonl": ("there is no index at", "nowhere"),
    "index b.txt -o index --update": ("none of the", "without --update"),
    "index a.txt --update --resume": ("--update goes with neither",),
    # values
    "search index boat -k 0": ("-k", "x>=1"),
    "eval sts pairs.tsv --model MODEL --split tset": ("leave the split out",),
    "eval sts words.tsv --model MODEL": ("words.tsv", "1 bad line: 1", "no number"),
    "train-nli snli.jsonl --base MODEL -o t --objective cosine": ("'cosine'", "contrastive"),
    "train-nli snli.jsonl --base MODEL -o t --patience 2": ("--patience", "--dev"),
    "train-nli numbers.jsonl --base MODEL -o t": ("is a number", "--labels"),
}
"""Commands, and what their message must have."""


@pytest.fixture(scope="module")
def place(tiny_encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mistakes")
    rows = [{"id": "x", "text": "a boat", "year": 1}, {"id": "y", "text": "a train", "year": 2}]
    lines = [json.dumps(row) for row in rows]
    nli = {"sentence1": "a", "sentence2": "b", "gold_label": "entailment"}
    files = {
        "a.txt": "a boat\na train\n",
        "b.txt": "something else\n",
        "names.csv": "name;note\nx;y\n",
        "rows.jsonl": "\n".join(lines),
        "bad.jsonl": f"{lines[0]}\n{{oops\n",
        "twice.jsonl": f"{lines[0]}\n{lines[0]}\n",
        "empty.txt": "\n\n",
        "data.xls": "x",
        "pairs.tsv": "1\ta boat\ta train\n5\ta boat\ta boat\n",
        "words.tsv": "much\ta boat\ta train\n",
        "snli.jsonl": "\n".join([json.dumps(nli)] * 4),
        "numbers.jsonl": json.dumps({"sentence1": "a", "sentence2": "b", "label": 0}),
        "collection/corpus.jsonl": '{"_id": "x", "text": "a boat"}',
        "collection/queries.jsonl": '{"_id": "q", "text": "boat"}',
        "collection/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\tx\t1\n",
    }
    (root / "collection" / "qrels").mkdir(parents=True)
    (root / "emptyfolder").mkdir()
    for name, content in files.items():
        (root / name).write_text(content, encoding="utf-8")
    (root / "latin.txt").write_bytes(b"Z\xfcrich\n")
    SearchIndex.build(root / "rows.jsonl", tiny_encoder, root / "index").close()
    return root


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_answered_in_one_line_with_its_cure(
    run: Run,
    place: Path,
    tiny_encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.chdir(place)
    before = contents(place)
    model = tiny_encoder.options.model
    ran = run(*(part.replace("MODEL", model) for part in command.split()))
    assert ran.status in (1, 2)
    assert ran.out == ""
    lines = [line for line in ran.err.splitlines() if not line.startswith("warning: ")]
    if ran.status == 1:
        assert len(lines) == 1, ran.err
        assert lines[0].startswith("sbertkit: error: ")
    for words in MISTAKES[command]:
        assert words in ran.err, ran.err
    assert contents(place) == before


def test_there_are_enough() -> None:
    assert len(MISTAKES) >= 45
