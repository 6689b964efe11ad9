"""Every encoder family in training; what only one family has, and what does not suit a pooling."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_families
import tiny_models
import tiny_parts
import torch
import transformers
from safetensors.torch import load_file
from test_pooling import POOLINGS, pool_one

from sbertkit.encoder import Encoder
from sbertkit.encoder.pooling import Pooling
from sbertkit.errors import InputError

SAME = 1e-5
TEXTS = [text for text in tiny_models.TEXTS if text] + ["cut " * 80]
WITHOUT_DROPOUT = ("albert", "clip_text", "clip", "llama", "nomic_bert", "modernbert")
"""Families whose settings have no dropout unless a checkpoint asks for it."""


def vectors_of(encoder: Encoder, texts: list[str]) -> torch.Tensor:
    """The vectors of one padded batch, with gradients."""
    tokens = encoder.tokenizer.tokenize(texts, encoder.max_tokens or tiny_models.POSITIONS)
    batch = encoder.spec.collator.collate(tokens, np.arange(len(texts)))
    vectors: torch.Tensor = encoder.torch.network(
        torch.from_numpy(batch.input_ids),
        torch.from_numpy(batch.attention_mask),
        None if batch.token_type_ids is None else torch.from_numpy(batch.token_type_ids),
    )
    return vectors


@contextmanager
def training(encoder: Encoder) -> Iterator[None]:
    """Training mode with gradients for all parameters, also those that should get none."""
    encoder.torch.network.train().requires_grad_(requires_grad=True)
    try:
        yield
    finally:
        encoder.torch.network.eval().requires_grad_(requires_grad=False)


def backward(encoder: Encoder, *, half: bool) -> dict[str, torch.Tensor]:
    """The gradients, by name, of a loss that depends on every number of every vector."""
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        vectors = vectors_of(encoder, TEXTS)
    weights = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(3))
    (vectors * weights).sum().backward()  # type: ignore[no-untyped-call]
    return {
        name: parameter.grad
        for name, parameter in encoder.torch.network.named_parameters()
        if parameter.grad is not None
    }


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "eos", "first_last"])
@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_just_the_tensors_that_reach_a_vector_get_finite_gradients(
    tiny_folder: Callable[[str], Path], architecture: str, pooling: str, half: bool
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling=pooling)
    before = encoder.encode(TEXTS)  # nothing that it leaves behind may stop a gradient
    with training(encoder):
        gradients = backward(encoder, half=half)
    assert gradients.keys() == encoder.torch.used_parameters.keys()
    assert [name for name, gradient in gradients.items() if not gradient.isfinite().all()] == []
    assert np.array_equal(encoder.encode(TEXTS), before)


def test_a_tensor_that_only_longer_texts_use_is_among_them(tmp_path: Path) -> None:
    encoder = Encoder.load(tiny_families.long_t5(tmp_path / "long"), pooling="mean")
    with training(encoder):
        gradients = backward(encoder, half=False)
    assert any("global_relative_attention_bias" in name for name in gradients)
    assert gradients.keys() == encoder.torch.used_parameters.keys()


def other_states() -> tuple[Any, ...]:
    """Where the global generators of Python and numpy are."""
    numpys: Any = np.random.get_state()
    return random.getstate(), numpys[1].tolist(), *numpys[2:]


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_training_is_random_through_the_generator_of_torch_alone(
    tiny_folder: Callable[[str], Path], architecture: str
) -> None:
    encoder = Encoder.load(tiny_folder(architecture), pooling="mean")

    def run(seed: int, others: int) -> torch.Tensor:
        torch.manual_seed(seed)
        random.seed(others)
        np.random.seed(others)
        before = other_states()
        with training(encoder):
            vectors = vectors_of(encoder, TEXTS)
        assert other_states() == before
        return vectors

    vectors = run(1, 1)
    assert torch.equal(run(1, 2), vectors)
    assert torch.equal(run(2, 1), vectors) == (architecture in WITHOUT_DROPOUT)


@pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
def test_without_dropout_training_mode_gives_the_same_vectors_padding_included(
    tiny_copy: Callable[..., Path], architecture: str
) -> None:
    folder = tiny_copy(architecture)
    config = tiny_models.read_json(folder / "config.json")
    rates = {name: 0.0 for name, rate in config.items() if "drop" in name and rate}
    assert rates or architecture in WITHOUT_DROPOUT
    tiny_models.edit_json(folder / "config.json", **rates)
    for pooling in ("mean", "eos"):
        encoder = Encoder.load(folder, pooling=pooling, max_tokens=tiny_models.POSITIONS)
        expected = np.array([encoder.encode(text) for text in TEXTS])
        with training(encoder):
            found = vectors_of(encoder, TEXTS).detach().numpy()
        assert np.abs(found - expected).max() <= SAME


@pytest.mark.parametrize("pooling", POOLINGS)
def test_half_precision_is_pooled_in_single_precision(pooling: str) -> None:
    # 600 tokens: a bfloat16 has no room for whole numbers above 256.
    drawn = torch.randn((3, 1, 600, 4), generator=torch.Generator().manual_seed(5)) + 2
    hidden = list(drawn.to(torch.bfloat16))
    kind = Pooling.named(pooling, 2)
    found = kind(hidden[-1], hidden, torch.ones((1, 600), dtype=torch.int64))
    assert found.dtype == torch.float32
    expected = pool_one(pooling, [state[0].float().numpy() for state in hidden])
    assert np.abs(found[0].numpy() - expected).max() <= 1e-4 * np.abs(expected).max()


def test_attention_in_random_blocks_becomes_full_and_that_is_logged_once(
    tiny_folder: Callable[[str], Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    long, short = "cut " * 80, "x"  # with 64 tokens the library would take the sparse blocks
    assert tiny_models.POSITIONS > 7 * tiny_families.BLOCK
    folder = tiny_folder("big_bird")
    encoder = Encoder.load(folder, pooling="mean", normalize=False)
    assert [record.name for record in caplog.records] == ["sbertkit.encoder.torch_model"]
    assert "using full attention" in caplog.text
    caplog.clear()
    first = encoder.encode(long)
    encoder.encode(short)
    assert np.array_equal(encoder.encode(long), first)
    encoder.save(tmp_path / "saved")
    again = Encoder.load(tmp_path / "saved")
    assert np.array_equal(again.encode(long), first)
    assert {record.name for record in caplog.records} == {"sbertkit.encoder.encoding"}  # the cut
    assert "Attention type" not in capfd.readouterr().err
    library = transformers.BigBirdModel.from_pretrained(folder, attention_type="original_full")
    inputs = transformers.AutoTokenizer.from_pretrained(folder)(
        long, return_tensors="pt", truncation=True, max_length=tiny_models.POSITIONS
    )
    with torch.no_grad():
        expected = library.eval()(**inputs).last_hidden_state[0].mean(dim=0).numpy()
    assert np.abs(first - expected).max() <= SAME


def test_padding_to_a_window_is_not_spoken_of(
    tiny_folder: Callable[[str], Path],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    transformers.utils.logging.warning_once.cache_clear()
    folder = tiny_folder("longformer")
    capfd.readouterr()
    encoder = Encoder.load(folder, pooling="mean")
    encoder.encode(["x", "two bakers argue"])
    assert capfd.readouterr().err == ""
    assert caplog.records == []


def test_windows_of_attention_matter(tiny_copy: Callable[..., Path]) -> None:
    """Else the other tests would say nothing on models with windows."""
    for architecture, windows in (
        ("longformer", {"attention_window": [64, 64]}),
        ("modernbert", {"local_attention": 128}),
    ):
        folder = tiny_copy(architecture)
        before = Encoder.load(folder, pooling="mean").encode(TEXTS)
        tiny_models.edit_json(folder / "config.json", **windows)
        assert np.abs(Encoder.load(folder, pooling="mean").encode(TEXTS) - before).max() > 1e-2


def test_layers_that_share_their_weights_stay_one(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    encoder = Encoder.load(tiny_folder("albert"), pooling="mean")
    assert encoder.torch.transformer.layer_count == tiny_parts.LAYERS
    names = encoder.torch.used_parameters
    groups = {".".join(name.split(".")[:6]) for name in names if "layers" in name}
    assert groups == {"transformer.encoder.albert_layer_groups.0.albert_layers.0"}
    encoder.save(tmp_path / "saved")
    published = load_file(tiny_folder("albert") / "model.safetensors")
    assert load_file(tmp_path / "saved" / "model.safetensors").keys() == published.keys()


def funnel(folder: Path) -> Path:
    """Its later layers are shorter, so that they have no average."""
    vocab = tiny_parts.word_pieces(tiny_parts.BERT_SPECIAL)
    config = transformers.FunnelConfig(
        vocab_size=len(vocab), d_model=32, n_head=2, d_head=16, d_inner=64, block_sizes=[1, 1]
    )
    tokenizer = transformers.BertTokenizer(vocab=vocab)
    return tiny_parts.write(folder, tiny_parts.seeded(config, transformers.FunnelModel), tokenizer)


def reformer(folder: Path) -> Path:
    """Its token vectors are twice as long as its settings say."""
    vocab = tiny_parts.word_pieces(tiny_parts.BERT_SPECIAL)
    config = transformers.ReformerConfig(
        vocab_size=len(vocab),
        hidden_size=32,
        num_attention_heads=2,
        attention_head_size=16,
        attn_layers=["local"],
        axial_pos_embds=False,
        max_position_embeddings=64,
        local_attn_chunk_length=8,
        is_decoder=False,
    )
    tokenizer = transformers.BertTokenizer(vocab=vocab)
    return tiny_parts.write(
        folder, tiny_parts.seeded(config, transformers.ReformerModel), tokenizer
    )


@pytest.mark.parametrize(("write", "pooling"), [(funnel, "first_last"), (reformer, "mean")])
def test_a_model_that_does_not_suit_the_pooling_is_refused_in_one_line(
    tmp_path: Path, write: Callable[[Path], Path], pooling: str
) -> None:
    folder = write(tmp_path / "model")
    with pytest.raises(
        InputError, match=rf"gives no vector of size 32 with pooling '{pooling}'"
    ) as no:
        Encoder.load(folder, pooling=pooling)
    assert "\n" not in str(no.value)


@pytest.mark.parametrize("architecture", ["electra", "xlm_roberta", "longformer", "modernbert"])
def test_a_language_model_with_its_head_is_the_encoder_below_it(
    tiny_folder: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    folder = tiny_folder(architecture)
    assert not tiny_models.read_json(folder / "config.json")["architectures"][0].endswith("Model")
    encoder = Encoder.load(folder, pooling="mean")
    encoder.save(tmp_path / "saved")
    saved: Any = load_file(tmp_path / "saved" / "model.safetensors")
    names = {f"transformer.{name}" for name in saved}
    assert encoder.torch.used_parameters.keys() <= names
    assert not [name for name in names if "head" in name or "pooler" in name]
