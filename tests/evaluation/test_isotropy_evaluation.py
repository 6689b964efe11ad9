"""The space of an encoder on a sample of texts."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sbertkit.data.pseudo_pairs import PseudoPair, all_halves, halves, pseudo_pair
from sbertkit.errors import InputError, InputTypeError, MissingFile
from sbertkit.evaluation import evaluate_isotropy
from sbertkit.metrics import effective_rank, mean_random_cosine

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

TEXTS = [
    f"{who} {does} {where} {number}"
    for number, (who, does, where) in enumerate(
        (who, does, where)
        for who in ("the baker", "a goat", "two trains", "the old kettle")
        for does in ("waits", "sings", "climbs up", "is late")
        for where in ("at noon", "by the harbour", "on the roof of the house")
    )
]


def test_the_measures_are_those_of_the_vectors(tiny_encoder: "Encoder") -> None:
    result = evaluate_isotropy(tiny_encoder, TEXTS)
    plain = tiny_encoder.variant(tiny_encoder.torch.network.pooling, [])
    vectors = plain.encode(TEXTS)
    assert (result.texts, result.documents) == (len(TEXTS), len(TEXTS))
    assert result.before.random_cosine == pytest.approx(mean_random_cosine(vectors), abs=1e-6)
    assert result.before.effective_rank == pytest.approx(effective_rank(vectors), rel=1e-5)
    lengths = np.linalg.norm(vectors, axis=1)
    assert result.before.norm == pytest.approx(lengths.mean(), rel=1e-5)
    assert result.before.norm_deviation == pytest.approx(lengths.std(), rel=1e-3)
    products = vectors @ vectors.T
    pairs = products[np.triu_indices(len(TEXTS), 1)]
    assert result.before.random_dot == pytest.approx(pairs.mean(), rel=1e-5)
    assert sum(result.histogram) == 20_000
    assert len(result.layers) == tiny_encoder.torch.transformer.layer_count + 1


def test_normalization_changes_dot_product_and_distance_but_no_cosine(
    tiny_encoder: "Encoder",
) -> None:
    result = evaluate_isotropy(tiny_encoder, TEXTS)
    before, after = result.before, result.after
    assert before.random_cosine == pytest.approx(after.random_cosine, abs=1e-6)
    assert before.uniformity == pytest.approx(after.uniformity, abs=1e-5)
    assert after.random_dot == pytest.approx(after.random_cosine, abs=1e-5)
    assert (after.norm, after.norm_deviation) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-6))
    assert before.random_distance != pytest.approx(after.random_distance, rel=0.01)
    for name, found in result.frequency.items():
        assert (found.norm is None) == name.endswith("after normalization")
        assert found.items > 0


def test_the_last_layer_is_what_is_pooled(tiny_encoder: "Encoder") -> None:
    result = evaluate_isotropy(tiny_encoder, TEXTS)
    assert result.layers[-1] == pytest.approx(result.before.random_cosine, abs=1e-5)


def test_the_seed_repeats_and_the_result_is_strict_json(tiny_encoder: "Encoder") -> None:
    one = evaluate_isotropy(tiny_encoder, TEXTS, sample=20, seed=1)
    assert one == evaluate_isotropy(tiny_encoder, iter(TEXTS), sample=20, seed=1)
    assert one != evaluate_isotropy(tiny_encoder, TEXTS, sample=20, seed=2)
    assert (one.texts, one.documents) == (20, len(TEXTS))
    content = one.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_a_corpus_file_is_read(tiny_encoder: "Encoder", tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    assert evaluate_isotropy(tiny_encoder, path) == evaluate_isotropy(tiny_encoder, TEXTS)


def test_short_texts_have_no_alignment(tiny_encoder: "Encoder") -> None:
    result = evaluate_isotropy(tiny_encoder, ["one", "two", "three"])
    assert result.before.alignment is None
    assert result.before.random_cosine is not None


@pytest.mark.parametrize(
    ("corpus", "kind", "reason"),
    [
        ([], InputError, "found none"),
        (["", " "], InputError, "found none"),
        (["one", "one"], InputError, "two different texts"),
        (5, InputTypeError, "path or an iterable"),
        ([5], InputTypeError, "row 0"),
    ],
)
def test_a_corpus_that_cannot_be_measured_is_refused(
    tiny_encoder: "Encoder", corpus: Any, kind: type[Exception], reason: str
) -> None:
    with pytest.raises(kind, match=reason):
        evaluate_isotropy(tiny_encoder, corpus)


def test_a_missing_file_and_something_else_than_an_encoder_are_refused(
    tiny_encoder: "Encoder", tmp_path: Path
) -> None:
    with pytest.raises(MissingFile):
        evaluate_isotropy(tiny_encoder, tmp_path / "nowhere.txt")
    with pytest.raises(InputTypeError, match="Encoder"):
        evaluate_isotropy("all-MiniLM-L6-v2", TEXTS)  # type: ignore[arg-type]


def test_frequent_tokens_of_a_trained_encoder_have_short_output_vectors(
    bundled_encoder: "Encoder",
) -> None:
    from sbertkit.encoder.token_vectors import token_vectors

    tokens = token_vectors(bundled_encoder, TEXTS)
    assert tokens.counts.sum() == sum(
        len(token.ids) - 2 for token in bundled_encoder.tokenizer.tokenize(TEXTS, None)
    )
    assert tokens.inputs.shape == tokens.outputs.shape == (len(tokens.counts), 384)
    assert tokens.text_frequency.shape == (len(TEXTS),)


def test_token_vectors_are_the_means_of_their_occurrences(tiny_encoder: "Encoder") -> None:
    import torch

    from sbertkit.encoder.token_vectors import token_vectors

    texts = ["boat goat boat", "goat", "boat"]
    found = token_vectors(tiny_encoder, texts)
    model = tiny_encoder.torch.network.transformer
    sums: dict[int, list[Any]] = {}
    for text in texts:
        tokens = tiny_encoder.tokenizer.tokenize([text], None)
        batch = tiny_encoder.spec.collator.collate(tokens, np.array([0]))
        with torch.inference_mode():
            states = model(
                input_ids=torch.from_numpy(batch.input_ids),
                attention_mask=torch.from_numpy(batch.attention_mask),
            ).last_hidden_state[0]
        inner = slice(1, len(tokens[0].ids) - 1)
        for token, state in zip(tokens[0].ids[inner].tolist(), states[inner], strict=True):
            sums.setdefault(token, []).append(state.numpy())
    for place, token in enumerate(sorted(sums)):
        assert found.counts[place] == len(sums[token])
        np.testing.assert_allclose(
            found.outputs[place], np.mean(sums[token], axis=0), rtol=1e-4, atol=1e-5
        )


# --- halves of texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four", PseudoPair("one two", "three four")),
        ("  a bb  ccc dddd \n", PseudoPair("a bb", "ccc dddd")),
        ("a b c extraordinarily", PseudoPair("a b c", "extraordinarily")),
        ("one two three", None),
        ("extraordinarily", None),
        ("今天天气很好我们出去玩", PseudoPair("今天天气很", "好我们出去玩")),
        ("今天", None),
        ("", None),
    ],
)
def test_a_text_is_split_near_its_middle(text: str, expected: PseudoPair | None) -> None:
    assert halves(text) == expected


def test_texts_that_are_too_short_are_left_out() -> None:
    assert all_halves(["a", "one two three four", ""]) == [PseudoPair("one two", "three four")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The goat stood on the hill. It looked at the rain! Was it cold up there? It was.",
            PseudoPair("It looked at the rain!", "Was it cold up there?"),
        ),
        # Too few sentences, or too short ones: halves.
        (
            "The goat stood there. It rained on it.",
            PseudoPair("The goat stood there.", "It rained on it."),
        ),
        ("One. Two. Three. Four goats.", PseudoPair("One. Two. Three.", "Four goats.")),
        (
            "今天的天气真的很好。我们一起出去玩。晚上再回家吃饭。",
            PseudoPair("我们一起出去玩。", "晚上再回家吃饭。"),
        ),
        ("a goat", None),
    ],
)
def test_a_document_gives_sentences_and_a_short_text_its_halves(
    text: str, expected: PseudoPair | None
) -> None:
    assert pseudo_pair(text) == expected
