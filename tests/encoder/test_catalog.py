"""The table of pretrained encoders: its facts, and what suits which question."""

import json
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from published_configs import CONFIGS

from sbertkit.encoder import Encoder
from sbertkit.encoder.catalog import (
    DOMAINS,
    KNOWN_MODELS,
    TASKS,
    KnownModel,
    find_known,
    known_models,
)
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.encoder.prompts import Prompts
from sbertkit.errors import InputError, InputTypeError

FAMILIES = {
    *("BERT", "RoBERTa", "ALBERT", "ELECTRA", "SpanBERT", "XLNet", "DeBERTa-v3", "MacBERT"),
    *("ERNIE", "DistilBERT", "MPNet", "mBERT", "XLM-R", "SciBERT", "ClinicalBERT", "FinBERT"),
    *("Longformer", "BigBird", "ModernBERT", "MiniLM", "E5", "BGE", "CLIP"),
}


def test_every_family_is_in_the_table() -> None:
    assert {one.family for one in KNOWN_MODELS} == FAMILIES
    assert len({one.name for one in KNOWN_MODELS}) == len(KNOWN_MODELS)


@cache
def _built(kind: Any, settings: str) -> tuple[int, int, int]:
    """Parameters, size and layers of the encoder of a configuration, without its weights."""
    config = kind(**json.loads(settings))
    with torch.device("meta"):
        if kind is transformers.CLIPTextConfig:
            model = transformers.CLIPTextModel(config)
        else:
            model = transformers.AutoModel.from_config(config)
    count = sum(one.numel() for one in model.parameters())
    return count, config.hidden_size, config.num_hidden_layers


@pytest.mark.parametrize("known", KNOWN_MODELS, ids=lambda one: one.name)
def test_the_numbers_are_those_of_the_published_configuration(known: KnownModel) -> None:
    kind, settings = CONFIGS[known.name]
    built = _built(kind, json.dumps(settings, sort_keys=True))
    assert (known.parameters, known.dim, known.layers) == built
    positions = getattr(kind(**settings), "max_position_embeddings", -1)
    # RoBERTa's positions begin behind that of the padding; XLNet's are relative, and say -1.
    assert known.positions in ({positions, positions - 2} if positions > 0 else {None})


@pytest.mark.parametrize("known", KNOWN_MODELS, ids=lambda one: one.name)
def test_an_entry_uses_the_words_of_the_table(known: KnownModel) -> None:
    assert known.pooling in POOLINGS
    assert known.domain in DOMAINS
    assert known.tasks
    assert set(known.tasks) <= TASKS.keys()
    assert known.languages
    assert len(set(known.languages)) == len(known.languages)
    assert known.sources
    assert known.note
    assert "\n" not in known.note
    assert known.weights in (None, "bin")
    assert known.tokenizer in ("WordPiece", "byte-level BPE", "SentencePiece")
    assert known.max_tokens is None or known.max_tokens <= (known.positions or 0)
    json.dumps(known.to_dict(), allow_nan=False)


def test_the_bundled_model_is_as_the_table_says(bundled_encoder: Encoder) -> None:
    known = find_known("all-MiniLM-L6-v2")
    assert known.ready
    found = (bundled_encoder.dim, bundled_encoder.max_tokens, bundled_encoder.pooling)
    assert (known.dim, known.max_tokens, known.pooling) == found
    network = bundled_encoder.torch.network.transformer
    pooler = 384 * 384 + 384  # which our encoder leaves out
    count = sum(one.numel() for one in network.parameters())
    assert known.parameters in (count, count + pooler)


def test_prompts_are_those_that_the_encoder_takes() -> None:
    assert find_known("e5-small-v2").prompts == Prompts("query: ", "passage: ")
    assert find_known("BAAI/bge-small-zh-v1.5").prompts.query.startswith("为这个句子")
    assert find_known("BAAI/bge-m3").prompts == Prompts()
    prompted = {one.family for one in KNOWN_MODELS if any(one.prompts)}
    assert prompted == {"E5", "BGE"}


def test_ready_ones_come_first_and_the_smaller_before_the_larger() -> None:
    found = known_models()
    assert found == KNOWN_MODELS
    assert [one.ready for one in found] == sorted((one.ready for one in found), reverse=True)
    for ready in (True, False):
        sizes = [one.parameters for one in known_models(ready=ready)]
        assert sizes == sorted(sizes)
        assert sizes


@pytest.mark.parametrize("language", ["zh", "chinese", "Chinese", " ZH ", "zh-Hans", "zh_CN"])
def test_a_language_is_given_by_code_or_name(language: str) -> None:
    found = known_models(language=language)
    assert {"MacBERT", "ERNIE", "BGE", "XLM-R", "mBERT"} <= {one.family for one in found}
    assert all("zh" in one.languages for one in found)
    assert len(found) < len(KNOWN_MODELS)


def test_other_codes_of_a_language_are_known() -> None:
    assert known_models(language="nb") == known_models(language="norwegian")
    assert known_models(language="fil") == known_models(language="tagalog")
    assert known_models(language="nb")


def test_a_language_of_few_models_is_found_by_its_code() -> None:
    # Bavarian is one of the Wikipedias of mBERT and has no name in the table.
    assert {one.family for one in known_models(language="bar")} == {"mBERT", "DistilBERT"}


def test_conditions_are_combined() -> None:
    found = known_models(language="en", domain="general", max_parameters="150M", length=4096)
    assert {one.family for one in found} == {"Longformer", "BigBird", "ModernBERT", "XLNet"}
    assert [one.family for one in known_models(domain="clinical")] == ["ClinicalBERT"]
    assert {one.family for one in known_models(task="rtd")} == {"ELECTRA", "DeBERTa-v3"}
    assert {one.family for one in known_models(task="sop")} == {"ALBERT", "MacBERT"}


def test_the_length_is_that_of_the_folder_where_it_is_lower() -> None:
    name = "sentence-transformers/all-MiniLM-L6-v2"
    for length, expected in ((256, True), (257, False)):
        assert (name in {one.name for one in known_models(length=length)}) == expected


@pytest.mark.parametrize(
    ("given", "count"),
    [(22_713_216, 22_713_216), ("22713216", 22_713_216), ("22.8M", 22_800_000)],
)
def test_a_number_of_parameters_is_whole_or_a_text(given: int | str, count: int) -> None:
    found = known_models(max_parameters=given)
    assert found == tuple(one for one in KNOWN_MODELS if one.parameters <= count)
    assert find_known("all-MiniLM-L6-v2") in found
    assert known_models(max_parameters="0.1B") == known_models(max_parameters="100m")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"language": "chinse"}, "did you mean 'chinese'"),
        ({"language": "xx"}, "such as zh or chinese"),
        ({"language": ""}, "such as zh or chinese"),
        ({"domain": "scinece"}, "did you mean 'science'"),
        ({"domain": "law"}, "known are general, science, clinical"),
        ({"task": "mlmm"}, "did you mean 'mlm'"),
        ({"max_parameters": "many"}, "such as 110M or 1.5B"),
        ({"max_parameters": "0M"}, "at least 1"),
        ({"max_parameters": 0}, "at least 1"),
        ({"length": 0}, "at least 1"),
    ],
)
def test_a_wrong_condition_is_refused_with_what_is_near(
    wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        known_models(**wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"language": 7},
        {"domain": ["general"]},
        {"task": b"mlm"},
        {"length": "512"},
        {"length": 1.5},
    ],
)
def test_a_condition_of_the_wrong_type_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputTypeError):
        known_models(**wrong)


def test_an_entry_is_found_by_its_name_or_the_last_part_of_it() -> None:
    assert find_known("bert-base-uncased").name == "google-bert/bert-base-uncased"
    assert find_known("Google-BERT/bert-base-uncased").family == "BERT"
    for wrong in ("bert-base-uncase", "google-bert/bert-base-uncasd"):
        with pytest.raises(InputError, match=r"did you mean '.*bert-base-uncased'"):
            find_known(wrong)
    with pytest.raises(InputError, match="sbertkit models"):
        find_known("nothing like it")
