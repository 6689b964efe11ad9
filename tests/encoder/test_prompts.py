"""Which prompts a model gets: declared ones, known ones, none."""

from typing import Any

import pytest

from sbertkit.encoder.prompts import Declared, Prompts, prompts_from, prompts_of_model
from sbertkit.errors import InputError, InputTypeError


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Prompts()),
        ({"prompts": {}}, Prompts()),
        ({"prompts": None, "default_prompt_name": None}, Prompts()),
        ({"prompts": {"query": "q: ", "document": "d: "}}, Prompts("q: ", "d: ")),
        ({"prompts": {"query": "q: ", "passage": "p: "}}, Prompts("q: ", "p: ")),
        ({"prompts": {"query": "q: ", "corpus": "c: "}}, Prompts("q: ", "c: ")),
        ({"prompts": {"query": "q: "}}, Prompts("q: ", "")),
        ({"prompts": {"query": "q: ", "document": None}}, Prompts("q: ", "")),
        ({"prompts": {"s": "sts: "}, "default_prompt_name": "s"}, Prompts("sts: ", "sts: ")),
        (
            {"prompts": {"s": "sts: ", "query": "q: "}, "default_prompt_name": "s"},
            Prompts("q: ", "sts: "),
        ),
        ({"prompts": {"classification": "c: "}}, Prompts()),
        ({"prompts": {"query": "", "document": ""}}, Prompts()),
        (
            {"prompts": {"query": "q: ", "document": ""}, "default_prompt_name": "query"},
            Prompts("q: ", ""),
        ),
        (
            {"prompts": {"s": "sts: ", "query": "", "passage": None}, "default_prompt_name": "s"},
            Prompts("", "sts: "),
        ),
        ({"prompts": {"document": "", "passage": "p: "}}, Prompts()),
    ],
)
def test_declared_prompts_are_taken(config: dict[str, Any], expected: Prompts) -> None:
    assert prompts_of_model("some/model", Declared(**config), pytest.fail) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("intfloat/e5-small-v2", Prompts("query: ", "passage: ")),
        ("intfloat/multilingual-e5-base", Prompts("query: ", "passage: ")),
        ("models/e5-large-unsupervised/", Prompts("query: ", "passage: ")),
        (
            "BAAI/bge-small-en-v1.5",
            Prompts("Represent this sentence for searching relevant passages: "),
        ),
        ("C:\\models\\bge-base-zh", Prompts("为这个句子生成表示以用于检索相关文章：")),
    ],
)
def test_well_known_models_get_their_prompts_and_it_is_said_once(
    name: str, expected: Prompts
) -> None:
    warnings: list[str] = []
    assert prompts_of_model(name, Declared(), warnings.append) == expected
    (warning,) = warnings
    assert "pass prompts={} for none" in warning


@pytest.mark.parametrize(
    "name", ["bge-m3", "e5", "my-e5-small-v2-finetuned", "e5-mistral-7b-instruct", "me5-small"]
)
def test_other_names_get_none(name: str) -> None:
    assert prompts_of_model(name, Declared(), pytest.fail) == Prompts()


def test_a_well_known_model_that_declares_empty_prompts_keeps_them_empty() -> None:
    declared = Declared({"query": "", "document": ""})
    assert prompts_of_model("e5-small", declared, pytest.fail) == Prompts()


@pytest.mark.parametrize("prompts", [{"query": "q: "}, {}, None])
def test_a_default_prompt_that_is_not_declared_is_refused(prompts: Any) -> None:
    with pytest.raises(
        InputError, match=r"m: config_sentence_transformers\.json names the default"
    ):
        prompts_of_model("m", Declared(prompts, "absent"), pytest.fail)


def test_a_caller_gives_one_prompt_or_both_or_none() -> None:
    assert prompts_from({}) == Prompts("", "")
    assert prompts_from({"query": "q "}) == Prompts("q ", "")
    assert prompts_from({"document": "d ", "query": "q "}) == Prompts("q ", "d ")


@pytest.mark.parametrize("given", [{"passage": "p: "}, {"query": None}, {"query": 3}, {1: "x"}])
def test_other_keys_and_values_are_refused(given: dict[Any, Any]) -> None:
    with pytest.raises(InputError, match="must map 'query' and 'document' to strings"):
        prompts_from(given)


@pytest.mark.parametrize("given", ["query: ", ["query: "], 3])
def test_prompts_that_are_no_mapping_are_refused(given: Any) -> None:
    with pytest.raises(InputTypeError, match=f"found {type(given).__name__}"):
        prompts_from(given)
