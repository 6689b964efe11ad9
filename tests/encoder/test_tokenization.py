"""Token ids against the transformers tokenizer itself; every truncated token is counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import transformers

from sbertkit.encoder import tokenization
from sbertkit.encoder.tokenization import Tokenizer
from sbertkit.errors import InputError

TEXTS = [*tiny_models.TEXTS, "word " * 90, "y" * 150, "[SEP] inside </s> a text <|endoftext|>"]
LIMITS = [None, 3, 4, 17, 64]


def both(folder: Path, **options: Any) -> tuple[Tokenizer, Any]:
    """Ours, and the library's own on the same files."""
    load = transformers.AutoTokenizer.from_pretrained
    return Tokenizer(load(folder), **options), load(folder)


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
@pytest.mark.parametrize("limit", LIMITS)
def test_ids_are_those_of_the_library(
    tiny_folder: Callable[[str], Path], architecture: str, limit: int | None
) -> None:
    ours, library = both(tiny_folder(architecture))
    found = ours.tokenize(TEXTS, limit)
    for text, tokens in zip(TEXTS, found, strict=True):
        limits = {"truncation": True, "max_length": limit} if limit else {}
        expected = library(text, **limits)["input_ids"]
        whole = len(library(text)["input_ids"])
        if expected:
            assert tokens.ids.tolist() == expected
            assert tokens.truncated == whole - len(expected)
        else:
            assert tokens.ids.tolist() == [library.eos_token_id]
            assert tokens.truncated == 0


@pytest.mark.parametrize("architecture", ["bert", "roberta", "gpt2", "xlnet", "byte_t5"])
def test_a_tokenizer_that_cuts_on_the_left_keeps_the_end(
    tiny_copy: Callable[..., Path], architecture: str
) -> None:
    folder = tiny_copy(architecture)
    tiny_models.edit_json(folder / "tokenizer_config.json", truncation_side="left")
    ours, library = both(folder)
    assert ours.truncation_side == "left"
    text = "the first words and the very last"
    (tokens,) = ours.tokenize([text], 12)
    assert tokens.ids.tolist() == library(text, truncation=True, max_length=12)["input_ids"]
    assert tokens.truncated == len(library(text)["input_ids"]) - 12


def test_a_text_of_just_the_limit_loses_nothing(tiny_bert: Path) -> None:
    ours, _ = both(tiny_bert)
    (fits, truncated) = ours.tokenize(["a b c d", "a b c d e"], 6)
    assert (len(fits.ids), fits.truncated, len(truncated.ids), truncated.truncated) == (6, 0, 6, 1)


def test_truncation_and_padding_of_the_tokenizer_file_are_switched_off(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_copy()
    plain, _ = both(folder)
    tiny_models.edit_json(
        folder / "tokenizer.json",
        truncation={"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0},
        padding={
            "strategy": {"Fixed": 50},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
    )
    ours, _ = both(folder)
    expected = [tokens.ids.tolist() for tokens in plain.tokenize(TEXTS, None)]
    assert [tokens.ids.tolist() for tokens in ours.tokenize(TEXTS, None)] == expected
    assert ours.canonical_json() == plain.canonical_json()


def test_token_types_are_known_where_they_differ(tiny_folder: Callable[[str], Path]) -> None:
    ours, library = both(tiny_folder("xlnet"))
    special = ours.special
    assert special.before == ()
    assert list(special.after) == library.convert_tokens_to_ids(["<sep>", "<cls>"])
    assert (special.text_type, special.after_types) == (0, (0, 2))


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_an_end_token_is_appended_only_where_there_is_none(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    ours, library = both(tiny_folder(architecture), append_end=True)
    expected = library("a text")["input_ids"]
    if architecture in ("gpt2", "llama"):
        expected = [*expected, library.eos_token_id]
    assert ours.tokenize(["a text"], None)[0].ids.tolist() == expected
    assert ours.tokenize(["a text"], 4)[0].ids[-1] == expected[-1]


def test_an_end_token_is_appended_behind_a_begin_token(
    tiny_folder: Callable[[str], Path],
) -> None:
    ours, library = both(tiny_folder("llama"), append_end=True)
    assert (ours.special.before, ours.special.after) == ((0,), (1,))
    whole = library("a text")["input_ids"]
    assert whole[0] == library.bos_token_id
    assert ours.tokenize(["a text"], None)[0].ids.tolist() == [*whole, library.eos_token_id]


def test_no_end_token_to_append_is_refused() -> None:
    letters = {"a": 0, "b": 1, "[UNK]": 2}
    from tokenizers import Tokenizer as Fast
    from tokenizers.models import WordLevel

    hf = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Fast(WordLevel(letters, unk_token="[UNK]")), unk_token="[UNK]"
    )
    with pytest.raises(InputError, match="pooling 'eos' needs an end token"):
        Tokenizer(hf, append_end=True)


@pytest.mark.parametrize("bound", ["_TEXTS_PER_CALL", "_CHARS_PER_CALL"])
@pytest.mark.parametrize("size", [1, 3, 60])
def test_the_parts_in_which_texts_are_tokenized_change_nothing(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, bound: str, size: int
) -> None:
    ours, _ = both(tiny_bert)
    expected = [tokens.ids.tolist() for tokens in ours.tokenize(TEXTS, 20)]
    monkeypatch.setattr(tokenization, bound, size)
    assert [tokens.ids.tolist() for tokens in ours.tokenize(TEXTS, 20)] == expected


def test_no_texts_are_no_tokens(tiny_bert: Path) -> None:
    assert both(tiny_bert)[0].tokenize([], 10) == []
