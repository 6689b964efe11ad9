"""The model card, read by two independent parsers: the hub's own and one of CommonMark."""

import json
import math
from typing import Any

import pytest
from huggingface_hub import ModelCard
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sbertkit.training.report.card import model_card
from sbertkit.training.report.markdown import base_name, code, prose, table

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])

READING = {
    "spearman": 0.7412,
    "interval": {"low": 0.7205, "high": 0.7613, "level": 0.95},
    "random_cosine": 0.4126,
    "uniformity": -1.5004,
    "effective_rank": 101.26,
    "label_cosines": {"entailment": 0.81, "neutral": 0.702, "contradiction": None},
}
RECORD: dict[str, Any] = {
    "base": "bert-base-uncased",
    "base_model": "google-bert/bert-base-uncased",
    "identity": {"base": "0123abcd"},
    "form": "nli",
    "pooling": "mean",
    "normalized": True,
    "objective": "softmax",
    "labels": ["entailment", "neutral", "contradiction"],
    "head": True,
    "data": [
        {"source": "/home/somebody/snli.jsonl", "sha256": "f" * 64, "rows": 907, "skipped": 3}
    ],
    "counts": {"entailment": 301, "neutral": 302, "contradiction": 304},
    "examples": 905,
    "overlapping": 2,
    "dev": {"source": "/home/somebody/stsb.tsv", "sha256": "d" * 64, "split": "dev", "pairs": 1500},
    "settings": {
        "epochs": 1.5,
        "learning_rate": 2e-05,
        "features": ["u", "v", "abs_diff"],
        "precision": "bf16",
        "max_steps": None,
    },
    "steps": 64,
    "best_step": 48,
    "seconds": 12.34,
    "examples_per_second": 73.39,
    "dim": 384,
    "max_tokens": 128,
    "before": READING,
    "after": READING | {"spearman": 0.7801},
    "versions": {"sbertkit": "0.1.0", "torch": "2.6.0"},
    "machine": "Linux, 2 cores",
    "note": None,
}
HOSTILE = [
    "a\n---\nlicense: mit\n---\n# b",
    "x|y|z",
    "`a` ``b`` ```c",
    "<script>alert(1)</script><img src=x onerror=y>",
    "</code><b>",
    "[a](https://example.org) ![b](c) https://example.org www.example.org <https://example.org>",
    "**a** _b_ ~~c~~ \\| \\` &lt; &#96; $x$ {{ y }}",
    "a\x1b[31mb\x00c\u202ed\u2028e\ufeff",
    "lone \ud800 surrogate",
    ": 'a' \"b\" # c, - d",
    "m" * 5000,
    "",
]


def with_text(text: str) -> dict[str, Any]:
    """The record with a text wherever a user can put one."""
    return RECORD | {
        "base": text,
        "base_model": text,
        "identity": {"base": text},
        "pooling": text,
        "objective": text,
        "labels": [text],
        "data": [{"source": text, "sha256": text, "rows": 1, "skipped": 0}],
        "counts": {text: 1},
        "dev": {"source": text, "sha256": text, "split": text, "pairs": 1},
        "settings": {text: text},
        "before": READING | {"label_cosines": {text: 0.5}},
        "after": READING | {"label_cosines": {text: 0.5}},
        "versions": {text: text},
        "machine": text,
        "note": text,
    }


def structure(markdown: str) -> list[str]:
    """Kinds of the blocks of a document, and of what is in its paragraphs but plain text."""
    kinds = []
    for token in PARSER.parse(markdown):
        kinds.append(token.type)
        for child in token.children or ():
            if child.type == "html_inline" and child.content in ("<code>", "</code>"):
                continue
            if child.type not in ("text", "code_inline", "softbreak", "text_special"):
                kinds.append(child.type)
    return kinds


def body(card: str) -> str:
    return ModelCard(card).text


def row(card: str, first: str) -> list[str]:
    """The cells of the only row of a table that begins so."""
    (line,) = (line for line in card.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_hub_reads_the_front_matter() -> None:
    assert ModelCard(model_card(RECORD)).data.to_dict() == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": [
            "sentence-transformers",
            "sentence-similarity",
            "feature-extraction",
            "sbertkit",
        ],
        "base_model": "google-bert/bert-base-uncased",
    }


@pytest.mark.parametrize("base", ["bert-base-uncased", "a/b.c_d-1", "1e5", "null", "123", "true"])
def test_a_hub_name_is_the_base_model_as_text(base: str) -> None:
    assert ModelCard(model_card(RECORD | {"base_model": base})).data.base_model == base


@pytest.mark.parametrize(
    "base",
    ["/a/b", "./a", "../a", "a/b/c", "~/a", "C:\\a", "a/", "a..b/c", "é/a", None, 5, *HOSTILE[:-2]],
)
def test_what_is_no_hub_name_is_no_base_model(base: object) -> None:
    assert ModelCard(model_card(RECORD | {"base_model": base})).data.base_model is None


def test_a_folder_is_no_base_model() -> None:
    card = model_card(RECORD | {"base": "bert", "base_model": None})
    assert ModelCard(card).data.base_model is None
    assert "# Sentence encoder from `bert`" in card


def test_numbers_stand_as_they_were_given() -> None:
    card = model_card(RECORD)
    assert row(card, "`snli.jsonl`") == ["`snli.jsonl`", "907", "3", f"`{'f' * 64}`"]
    assert row(card, "`neutral`") == ["`neutral`", "302"]
    assert row(card, "`learning_rate`")[1] == "2e-05"
    assert row(card, "`epochs`")[1] == "1.5"
    assert row(card, "`max_steps`")[1] == "n/a"
    assert row(card, "`precision`")[1] == "`bf16`"
    assert row(card, "`normalized`")[1] == "true"
    assert row(card, "`features`")[1] == "`u`, `v`, `abs_diff`"
    assert row(card, "`seconds`")[1] == "12.3"
    assert row(card, "Spearman × 100") == ["Spearman × 100", "74.12", "78.01"]
    assert row(card, "bootstrap interval")[1] == "72.05 to 76.13 (95 %)"
    assert row(card, "Mean cosine of random pairs")[1] == "0.413"
    assert row(card, "Uniformity")[1] == "-1.500"
    assert row(card, "Effective rank")[1] == "101.3"
    assert row(card, "Mean cosine, `neutral`")[1] == "0.702"
    assert row(card, "Mean cosine, `contradiction`")[1] == "n/a"
    assert row(card, "`torch`")[1] == "`2.6.0`"
    for part in (
        "384 numbers of length 1",
        "Examples trained on: 905.",
        "they are in the dev set: 2.",
        "1500 scored pairs of `stsb.tsv`, split `dev`",
        "step 48, chosen by this score",
        "truncated to 128 tokens",
        "log softmax",
        "(Reimers &#38; Gurevych 2019, Sentence-BERT, section 3)",
    ):
        assert part in card


def test_no_folder_of_the_machine_is_told() -> None:
    for base in ("/home/somebody/bert", "C:\\Users\\somebody\\bert\\"):
        assert "somebody" not in model_card(RECORD | {"base": base, "base_model": None})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (0.7412, 0.7, "**The trained encoder is worse than its base (-4.12 points).**"),
        (0.7, 0.7412, "The trained encoder is better than its base (+4.12 points)."),
        (0.7, 0.7, "The trained encoder is as good as its base (+0.00 points)."),
        (None, 0.7, "A score is undefined"),
        (0.7, math.nan, "A score is undefined"),
    ],
)
def test_whether_training_helped_is_said(
    before: float | None, after: float | None, said: str
) -> None:
    sides = {"before": READING | {"spearman": before}, "after": READING | {"spearman": after}}
    card = model_card(RECORD | sides)
    assert said in card
    assert ("worse than its base" in card) == ("worse" in said)


def test_a_missing_dev_set_is_said() -> None:
    card = model_card(RECORD | {"dev": None, "best_step": None})
    assert "There was no dev set" in card
    assert "Spearman" not in card
    assert "better than its base" not in card


def test_a_head_is_shown_only_where_there_is_one() -> None:
    assert "classify_pairs(" in model_card(RECORD)
    contrastive = RECORD | {"objective": "contrastive", "head": False}
    assert "classify_pairs" not in model_card(contrastive)


def test_what_was_trained_goes_before_what_was_asked_for() -> None:
    card = model_card(RECORD | {"settings": {"max_tokens": None, "labels": None}})
    assert row(card, "`max_tokens`")[1] == "128"
    assert row(card, "`labels`")[1] == "`entailment`, `neutral`, `contradiction`"


@pytest.mark.parametrize("undefined", [None, math.nan, math.inf, -math.inf])
def test_what_is_undefined_is_never_nan(undefined: float | None) -> None:
    reading = dict.fromkeys(READING, undefined) | {
        "interval": {"low": undefined, "high": undefined, "level": undefined},
        "label_cosines": {"neutral": undefined},
    }
    numbers = ("examples", "steps", "seconds", "examples_per_second", "dim")
    record = RECORD | dict.fromkeys(numbers, undefined) | {"before": reading, "after": reading}
    card = model_card(record | {"settings": {"warmup": undefined, "rates": [undefined]}})
    words = card.lower().replace(".", " ").split()
    assert not {"nan", "inf", "-inf", "none", "null"} & set(words)
    assert row(card, "Uniformity") == ["Uniformity", "n/a", "n/a"]
    assert row(card, "bootstrap interval")[1] == "n/a"


def test_an_empty_record_still_makes_a_card() -> None:
    card = model_card({})
    assert ModelCard(card).data.library_name == "sentence-transformers"
    assert "None" not in card


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_form_nothing(text: str) -> None:
    plain, hostile = model_card(with_text("name")), model_card(with_text(text))
    expected = ModelCard(plain).data.to_dict()
    del expected["base_model"]
    found = ModelCard(hostile).data.to_dict()
    found.pop("base_model", None)
    assert found == expected
    if text:  # without a note there is no paragraph for it
        assert structure(body(hostile)) == structure(body(plain))
    assert hostile.encode().decode() == hostile
    assert all(char == "\n" or char.isprintable() for char in hostile)
    assert "https://" not in hostile


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(), min_size=1, max_size=30))
def test_no_text_forms_anything(text: str) -> None:
    card = model_card(with_text(f"a{text}"))
    assert structure(body(card)) == structure(body(model_card(with_text("name"))))


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1))
def test_code_shows_every_character(text: str) -> None:
    (paragraph,) = (token for token in PARSER.parse(code(text[:200])) if token.type == "inline")
    shown = "".join(
        child.content for child in paragraph.children or () if child.type != "html_inline"
    )
    assert shown == text[:200]


@pytest.mark.parametrize("text", ["x|y", "|", "a`|`b", "a\\|b", "a\\", "`", "<b>|</b>", "&#124;"])
def test_a_name_stays_in_its_cell(text: str) -> None:
    record = RECORD | {"counts": {text: 17}}
    cells = [token for token in PARSER.parse(model_card(record)) if token.type == "inline"]
    shown = [
        "".join(part.content for part in cell.children or () if part.type != "html_inline")
        for cell in cells
    ]
    assert shown[shown.index("17") - 1] == text


def test_the_card_of_a_record_read_back_from_json_is_the_same() -> None:
    assert model_card(json.loads(json.dumps(RECORD))) == model_card(RECORD)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b.tsv", "b.tsv"),
        ("a\\b.tsv", "b.tsv"),
        ("b.tsv", "b.tsv"),
        ("/a/b/", "b"),
        ("/", None),
        ("", None),
        (None, None),
    ],
)
def test_the_last_part_of_a_path(path: str | None, name: str | None) -> None:
    assert base_name(path) == name


def test_prose_stays_readable() -> None:
    text = "Stopped at step 3, loss 0.25 (too high): see the log."
    assert prose(text) == text
    assert prose("www.a.b *c*") == "www&#46;a&#46;b &#42;c&#42;"


def test_a_table_without_rows_is_nothing() -> None:
    assert table(("a", "b"), []) == ""
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
