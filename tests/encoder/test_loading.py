"""Choosing pooling, limit and post-processing from what is asked for and what is declared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import transformers

from sbertkit.encoder import Encoder
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.settings import lower_casing
from sbertkit.errors import InputError, InputTypeError


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_model_without_pooling_gets_mean_and_one_warning(
    tiny_bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = Encoder.load(tiny_bert)
    encoder.encode(["a"])
    assert encoder.pooling == "mean"
    assert warnings_of(caplog) == [
        f"{tiny_bert} declares no pooling: using mean over the tokens; "
        "choose with pooling (--pooling)"
    ]


def test_a_pooling_that_is_asked_for_or_declared_is_taken_without_a_word(
    tiny_copy: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny_models.declare(tiny_copy(), mode="max")
    assert Encoder.load(folder).pooling == "max"
    assert Encoder.load(folder, pooling="cls").pooling == "cls"
    assert warnings_of(caplog) == []


@pytest.mark.parametrize(
    ("architecture", "limit"),
    [
        ("bert", 64),
        ("distilbert", 64),
        ("roberta", 64),  # a table of 66 rows, of which two are not for positions
        ("mpnet", 64),
        ("albert", 64),
        ("clip", 64),
        ("clip_text", 64),
        ("gpt2", 64),
        ("llama", 64),
        ("t5", 64),
        ("byte_t5", None),
        ("xlnet", None),
    ],
)
def test_the_limit_without_a_declared_one(
    tiny_folder: Callable[[str], Path], architecture: str, limit: int | None
) -> None:
    assert Encoder.load(tiny_folder(architecture), pooling="mean").max_tokens == limit


@pytest.mark.parametrize("architecture", ["bert", "roberta", "mpnet", "gpt2", "clip"])
def test_more_tokens_than_positions_are_refused_with_both_numbers(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    folder = tiny_folder(architecture)
    encoder = Encoder.load(folder, pooling="mean", max_tokens=64)
    assert encoder.encode(["long " * 100]).shape == (1, tiny_models.HIDDEN)
    with pytest.raises(InputError, match="max_tokens 65 is more than the 64 positions"):
        Encoder.load(folder, pooling="mean", max_tokens=65)


@pytest.mark.parametrize("architecture", ["xlnet", "t5", "byte_t5"])
def test_relative_positions_have_no_limit_of_their_own(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean", max_tokens=500)
    assert encoder.encode_with_report(["ab " * 100]).report.truncated == ()


@pytest.mark.parametrize(("asked", "special"), [(2, 2), (1, 2)])
def test_a_limit_without_room_for_text_is_refused(
    tiny_bert: Path, asked: int, special: int
) -> None:
    with pytest.raises(InputError, match=f"max_tokens {asked} leaves no room .* at least 3"):
        Encoder.load(tiny_bert, pooling="mean", max_tokens=asked)


@pytest.mark.parametrize("asked", [0, -7])
def test_a_limit_below_one_is_refused(tiny_bert: Path, asked: int) -> None:
    with pytest.raises(InputError, match=f"max_tokens must be at least 1, not {asked}"):
        Encoder.load(tiny_bert, pooling="mean", max_tokens=asked)


@pytest.mark.parametrize("normalize", ["no", 0, 1.0])
def test_a_normalization_that_is_no_truth_value_is_refused(tiny_bert: Path, normalize: Any) -> None:
    with pytest.raises(InputTypeError, match="normalize must be True, False or None"):
        Encoder.load(tiny_bert, normalize=normalize)


@pytest.mark.parametrize("asked", [True, 12.0, "12"])
def test_a_limit_that_is_no_whole_number_is_refused(tiny_bert: Path, asked: Any) -> None:
    with pytest.raises(InputTypeError, match="max_tokens must be a whole number"):
        Encoder.load(tiny_bert, max_tokens=asked)


def test_the_declared_limit_comes_before_that_of_the_tokenizer(
    tiny_copy: Callable[..., Path], plain: Callable[[Path], Any]
) -> None:
    folder = tiny_models.declare(tiny_copy(), max_seq_length=30)
    tiny_models.edit_json(folder / "tokenizer_config.json", model_max_length=20)
    assert Encoder.load(folder).max_tokens == plain(folder).max_seq_length == 30
    assert Encoder.load(folder, max_tokens=50).max_tokens == 50
    tiny_models.edit_json(folder / "sentence_bert_config.json", max_seq_length=None)
    assert Encoder.load(folder).max_tokens == plain(folder).max_seq_length == 20


def test_a_declared_limit_beyond_the_positions_is_cut_down_and_said(
    tiny_copy: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = tiny_models.declare(tiny_copy(), max_seq_length=512)
    encoder = Encoder.load(folder)
    assert encoder.max_tokens == 64
    assert warnings_of(caplog) == [
        f"{folder} declares a limit of 512 tokens but has 64 positions: using 64"
    ]
    assert encoder.encode(["long " * 600]).shape == (1, tiny_models.HIDDEN)


@pytest.mark.parametrize("limit", [1, 2, "many", 2.5])
def test_a_declared_limit_that_makes_no_sense_is_refused(
    tiny_copy: Callable[..., Path], limit: Any
) -> None:
    with pytest.raises(InputError, match=r"no room for text|max_seq_length"):
        Encoder.load(tiny_models.declare(tiny_copy(), max_seq_length=limit))


@pytest.mark.parametrize(
    ("option", "value"), [("backend", "tensorrt"), ("precision", "fp8"), ("pooling", "median")]
)
def test_unknown_choices_are_refused_with_the_known_ones(option: str, value: str) -> None:
    with pytest.raises(InputError, match=f"one of .*'{value}'|'{value}'.* one of"):
        LoadOptions("m", **{option: value})  # type: ignore[arg-type]


def test_what_is_kept_to_load_again_leaves_device_and_backend_out() -> None:
    options = LoadOptions("m", pooling="cls", prompts=Prompts("q: "), device="cuda")
    assert options.declared() == {
        "model": "m",
        "pooling": "cls",
        "normalize": None,
        "max_tokens": None,
        "dim": None,
        "prompts": {"query": "q: ", "document": ""},
        "revision": None,
    }


def test_lower_casing_is_not_added_where_there_is_one(tiny_folder: Callable[[str], Path]) -> None:
    load = transformers.AutoTokenizer.from_pretrained
    for architecture, lowers in (("bert", True), ("albert", True), ("clip", True)):
        tokenizer = load(tiny_folder(architecture))
        before = tokenizer.backend_tokenizer.to_str()
        lower_casing(tokenizer)
        assert (tokenizer.backend_tokenizer.to_str() == before) is lowers
    tokenizer = load(tiny_folder("xlnet"))
    lower_casing(tokenizer)
    lower_casing(tokenizer)
    assert tokenizer.tokenize("ABC") == tokenizer.tokenize("abc")
    assert tokenizer.backend_tokenizer.to_str().count('"Lowercase"') == 1


def test_lower_casing_of_a_tokenizer_written_in_python_is_refused(
    tiny_copy: Callable[..., Path],
) -> None:
    folder = tiny_models.declare(tiny_copy("byte_t5"))
    tiny_models.edit_json(folder / "sentence_bert_config.json", do_lower_case=True)
    with pytest.raises(InputError, match="do_lower_case"):
        Encoder.load(folder)


@pytest.mark.parametrize("architecture", ["roberta", "gpt2"])
def test_lower_casing_equals_plain_sentence_transformers(
    tiny_copy: Callable[..., Path], plain: Callable[[Path], Any], architecture: str
) -> None:
    folder = tiny_models.declare(tiny_copy(architecture))
    tiny_models.edit_json(folder / "sentence_bert_config.json", do_lower_case=True)
    if architecture == "gpt2":
        tiny_models.edit_json(folder / "tokenizer_config.json", pad_token="<|endoftext|>")
    texts = ["Two BAKERS", "ΟΔΟΣ και ÉCOLE", "İstanbul"]
    assert abs(Encoder.load(folder).encode(texts) - plain(folder).encode(texts)).max() <= 1e-5


@pytest.mark.parametrize(
    "modules", [("Normalize", "Normalize"), ("Dense", "Normalize", "Normalize")]
)
def test_several_normalizations_at_the_end_are_one(
    tiny_copy: Callable[..., Path], modules: tuple[str, ...]
) -> None:
    folder = tiny_models.declare(tiny_copy(), *modules)
    normalized = Encoder.load(folder).torch.postprocessors
    assert [type(module).__name__ for module in normalized] == list(modules[:-1])
    plain = Encoder.load(folder, normalize=False)
    assert not plain.normalizes
    assert [type(module).__name__ for module in plain.torch.postprocessors] == list(modules[:-2])


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan", None])
@pytest.mark.parametrize("normalized", [False, True])
def test_a_similarity_that_orders_otherwise_is_reported_once(
    tiny_copy: Callable[..., Path],
    caplog: pytest.LogCaptureFixture,
    name: str | None,
    normalized: bool,
) -> None:
    folder = tiny_models.declare(tiny_copy(), *(["Normalize"] if normalized else []))
    tiny_models.edit_json(folder / "config_sentence_transformers.json", similarity_fn_name=name)
    encoder = Encoder.load(folder)
    encoder.encode(["a"])
    encoder.variant(encoder.torch.network.pooling, encoder.torch.postprocessors)
    same = (None, "cosine", "dot", "euclidean") if normalized else (None, "cosine")
    expected = (
        []
        if name in same
        else [
            f"{folder} declares the similarity {name!r}, which orders otherwise than the cosine "
            "that sbertkit searches and scores by"
        ]
    )
    assert warnings_of(caplog) == expected
