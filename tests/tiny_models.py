"""Tiny random models of many architectures, written as the folders that people download."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from tiny_families import FAMILIES
from tiny_parts import (
    BERT_SPECIAL,
    HEADS,
    HIDDEN,
    LAYERS,
    POSITIONS,
    ROBERTA_SPECIAL,
    byte_pairs,
    seeded,
    sizes,
    unigrams,
    word_pieces,
    write,
)
from tiny_parts import TEXTS as TEXTS
from tokenizers import pre_tokenizers

_write = write


def bert(folder: Path, **more: Any) -> Path:
    """WordPiece, absolute positions, token types, a pooler that no vector uses; `more` sizes."""
    vocab = word_pieces(BERT_SPECIAL)
    config = transformers.BertConfig(**sizes(len(vocab), **more))
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.BertModel), tokenizer)


def distilbert(folder: Path) -> Path:
    """No token types in the model, although its tokenizer gives them."""
    vocab = word_pieces(BERT_SPECIAL)
    config = transformers.DistilBertConfig(
        vocab_size=len(vocab),
        dim=HIDDEN,
        n_layers=LAYERS,
        n_heads=HEADS,
        hidden_dim=2 * HIDDEN,
        max_position_embeddings=POSITIONS,
        initializer_range=0.3,
    )
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.DistilBertModel), tokenizer)


def roberta(folder: Path) -> Path:
    """Byte-level BPE; positions are counted from the padding id on, which costs two."""
    vocab, merges = byte_pairs(ROBERTA_SPECIAL)
    config = transformers.RobertaConfig(
        **sizes(len(vocab), max_position_embeddings=POSITIONS + 2, type_vocab_size=1)
    )
    tokenizer = transformers.RobertaTokenizer(vocab=vocab, merges=merges)
    return write(folder, seeded(config, transformers.RobertaModel), tokenizer)


def mpnet(folder: Path) -> Path:
    """WordPiece with RoBERTa's special tokens, position offset and relative biases."""
    vocab = word_pieces(("<s>", "<pad>", "</s>", "[UNK]", "<mask>"))
    config = transformers.MPNetConfig(
        **sizes(len(vocab), max_position_embeddings=POSITIONS + 2, pad_token_id=1)
    )
    tokenizer = transformers.MPNetTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.MPNetModel), tokenizer)


def albert(folder: Path, **more: Any) -> Path:
    """Unigram; one layer shared by all, an embedding smaller than the hidden size."""
    vocab = unigrams(("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"))
    config = transformers.AlbertConfig(**sizes(len(vocab), embedding_size=16, **more))
    tokenizer = transformers.AlbertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.AlbertModel), tokenizer)


def xlnet(folder: Path) -> Path:
    """Relative positions, padding on the left, separator and class token at the end."""
    vocab = unigrams(
        ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")
    )
    config = transformers.XLNetConfig(
        vocab_size=len(vocab),
        d_model=HIDDEN,
        n_layer=LAYERS,
        n_head=HEADS,
        d_inner=2 * HIDDEN,
        initializer_range=0.3,
    )
    tokenizer = transformers.XLNetTokenizer(vocab=vocab)
    return write(folder, seeded(config, transformers.XLNetModel), tokenizer)


def t5(folder: Path) -> Path:
    """A whole encoder-decoder checkpoint, of which the encoder alone is wanted."""
    vocab = unigrams(("<pad>", "</s>", "<unk>"))
    config = transformers.T5Config(
        vocab_size=len(vocab) + 100,
        d_model=HIDDEN,
        d_kv=16,
        d_ff=2 * HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        initializer_factor=0.5,
        decoder_start_token_id=0,
    )
    tokenizer = transformers.T5Tokenizer(vocab=vocab, extra_ids=0, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.T5ForConditionalGeneration), tokenizer)


def byte_t5(folder: Path) -> Path:
    """An encoder whose tokenizer is written in Python: one token a byte, and the end token."""
    config = transformers.T5Config(
        vocab_size=384,
        d_model=HIDDEN,
        d_kv=16,
        d_ff=2 * HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        initializer_factor=0.5,
        decoder_start_token_id=0,
    )
    tokenizer = transformers.ByT5Tokenizer()
    return write(folder, seeded(config, transformers.T5EncoderModel), tokenizer)


def _clip_text_config(vocab: dict[str, int]) -> Any:
    return transformers.CLIPTextConfig(
        **sizes(
            len(vocab),
            projection_dim=16,
            bos_token_id=vocab["<|startoftext|>"],
            eos_token_id=vocab["<|endoftext|>"],
        ),
        initializer_factor=4.0,
    )


def _clip_tokenizer() -> tuple[dict[str, int], Any]:
    vocab, merges = byte_pairs(("<|startoftext|>", "<|endoftext|>"), end_of_word="</w>")
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=POSITIONS)
    return vocab, tokenizer


def clip_text(folder: Path) -> Path:
    """The text half of CLIP: causal attention, the end token is also the padding."""
    vocab, tokenizer = _clip_tokenizer()
    config = _clip_text_config(vocab)
    return write(folder, seeded(config, transformers.CLIPTextModel), tokenizer)


def clip(folder: Path) -> Path:
    """The whole of CLIP, of which the text half alone is wanted."""
    vocab, tokenizer = _clip_tokenizer()
    vision = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "image_size": 8,
        "patch_size": 4,
    }
    config = transformers.CLIPConfig(
        text_config=_clip_text_config(vocab).to_dict(), vision_config=vision, projection_dim=16
    )
    return write(folder, seeded(config, transformers.CLIPModel), tokenizer)


def gpt2(folder: Path) -> Path:
    """Causal; its tokenizer has no padding token and puts no special token around a text."""
    vocab, merges = byte_pairs(("<|endoftext|>",))
    config = transformers.GPT2Config(
        vocab_size=len(vocab),
        n_embd=HIDDEN,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=POSITIONS,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
    )
    tokenizer = transformers.GPT2Tokenizer(vocab=vocab, merges=merges, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.GPT2Model), tokenizer)


def llama(folder: Path) -> Path:
    """Causal, rotary positions; a begin token but no end token and none for padding."""
    vocab, merges = byte_pairs(("<s>", "</s>"))
    config = transformers.LlamaConfig(
        **sizes(len(vocab), num_key_value_heads=1, bos_token_id=0, eos_token_id=1)
    )
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        add_bos_token=True,
        add_eos_token=False,
        padding_side="left",
        model_max_length=POSITIONS,
    )
    return write(folder, seeded(config, transformers.LlamaModel), tokenizer)


ARCHITECTURES: dict[str, Callable[[Path], Path]] = {
    function.__name__: function
    for function in (
        bert,
        distilbert,
        roberta,
        mpnet,
        albert,
        xlnet,
        t5,
        byte_t5,
        clip_text,
        clip,
        gpt2,
        llama,
        *FAMILIES,
    )
}
"""Writers of a plain Hugging Face folder, by architecture."""


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def edit_json(path: Path, **changes: Any) -> None:
    """Changes keys of a JSON object on disk; a missing file begins empty."""
    content = read_json(path) if path.is_file() else {}
    write_json(path, {**content, **changes})


def declare(
    folder: Path,
    *modules: str,
    mode: str = "mean",
    max_seq_length: int | None = None,
    prompts: dict[str, str] | None = None,
    default_prompt_name: str | None = None,
) -> Path:
    """Makes a plain folder a sentence-transformers one: Transformer, Pooling, then `modules`.

    Args:
        folder: The plain folder.
        modules: Class names after the pooling: Dense (halves the size), LayerNorm, Normalize, ...
        mode: Name of the pooling mode.
        max_seq_length: The declared limit.
        prompts: The declared prompts.
        default_prompt_name: Which of them goes before every text.
    """
    entries = [("", "Transformer"), ("1_Pooling", "Pooling")]
    size = read_json(folder / "config.json").get("hidden_size", HIDDEN)
    write_json(
        folder / "1_Pooling" / "config.json",
        {"embedding_dimension": size, "pooling_mode": mode, "include_prompt": True},
    )
    for place, name in enumerate(modules, 2):
        path = folder / f"{place}_{name}"
        entries.append((path.name, name))
        size = _write_module(path, name, size)
    write_modules(folder, entries)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length})
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": prompts or {}, "default_prompt_name": default_prompt_name},
    )
    return folder


def write_modules(folder: Path, entries: Sequence[tuple[str, str]]) -> None:
    """Writes modules.json from pairs of folder and class name, with or without its package."""
    content = [
        {
            "idx": place,
            "name": str(place),
            "path": path,
            "type": name if "." in name else f"sentence_transformers.models.{name}",
        }
        for place, (path, name) in enumerate(entries)
    ]
    write_json(folder / "modules.json", content)


def _write_module(path: Path, name: str, size: int) -> int:
    generator = torch.Generator().manual_seed(size)
    if name == "Dense":
        config: dict[str, Any] = {
            "in_features": size,
            "out_features": size // 2,
            "bias": True,
            "activation_function": "torch.nn.modules.activation.Tanh",
        }
        weights = {
            "linear.weight": torch.randn(size // 2, size, generator=generator),
            "linear.bias": torch.randn(size // 2, generator=generator),
        }
        size //= 2
    elif name == "LayerNorm":
        config = {"dimension": size}
        weights = {
            "norm.weight": torch.rand(size, generator=generator) + 0.5,
            "norm.bias": torch.randn(size, generator=generator),
        }
    else:
        config, weights = ({"dropout": 0.5} if name == "Dropout" else {}), {}
    write_json(path / "config.json", config)
    if weights:
        save_file(weights, path / "model.safetensors")
    return size
