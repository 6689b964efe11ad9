"""What tiny random models are made of: sizes, vocabularies, texts; nothing is fetched.

Weights come from a fixed seed. Every vocabulary has every character of `CHARACTERS`, so that
different texts get different tokens.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import pre_tokenizers

HIDDEN = 32
LAYERS = 2
HEADS = 2
POSITIONS = 64

TEXTS = (
    "A heron stands in the shallow water.",
    "",
    "Two bakers argue about salt",
    "x",
    "the quick fox jumps over a lazy dog, then sleeps.",
    "Ωμέγα και άλφα",
    "numbers 1 2 3 and 4567",
    "two bakers argue about Salt!",
)
"""Texts of quite different lengths, none longer than `POSITIONS` tokens in any model."""

_RANGES = (
    (0x21, 0x7E),  # ASCII
    (0xA1, 0x17F),  # Latin letters with marks
    (0x370, 0x3FF),  # Greek
    (0x400, 0x45F),  # Cyrillic
    (0x5D0, 0x5EA),  # Hebrew
    (0x620, 0x652),  # Arabic
    (0x3041, 0x30FE),  # kana
    (0x4E00, 0x4EFF),  # some Han
    (0x1F600, 0x1F64F),  # faces
)
CHARACTERS = [
    chr(point)
    for first, last in _RANGES
    for point in range(first, last + 1)
    if chr(point).isprintable()
] + ["\ufffd"]
_PIECES = ["the", "an", "in", "er", "ing", "ed", "and", "a\u0301"]


def seeded(config: Any, model_class: Any) -> Any:
    torch.manual_seed(20_240)
    return model_class(config).eval()


def write(folder: Path, model: Any, tokenizer: Any) -> Path:
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        model.save_pretrained(folder)
    finally:
        if bars:
            transformers.utils.logging.enable_progress_bar()
    tokenizer.save_pretrained(folder)
    return folder


def sizes(vocabulary: int, **more: Any) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 2 * HIDDEN,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.3,
        **more,
    }


def word_pieces(special: Sequence[str]) -> dict[str, int]:
    tokens = [*special, *CHARACTERS, *(f"##{char}" for char in CHARACTERS)]
    tokens += [*_PIECES, *(f"##{piece}" for piece in _PIECES)]
    return {token: place for place, token in enumerate(dict.fromkeys(tokens))}


def byte_pairs(special: Sequence[str], end_of_word: str = "") -> tuple[dict[str, int], list[Any]]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    # A merge by rank; the pieces inside words first.
    merges = [("t", "h"), ("i", "n"), ("e", "r"), ("Ġ", "a")]
    tokens = [*special, *letters, *("".join(merge) for merge in merges)]
    if end_of_word:
        tokens += [letter + end_of_word for letter in letters]
        merges += [("e", "r" + end_of_word)]
        tokens += ["er" + end_of_word]
    return {token: place for place, token in enumerate(dict.fromkeys(tokens))}, merges


def unigrams(special: Sequence[str]) -> list[tuple[str, float]]:
    pieces = [(token, 0.0) for token in special]
    pieces += [(char, -8.0) for char in ("▁", *CHARACTERS)]
    pieces += [(piece, -5.0) for piece in dict.fromkeys(("▁a", "▁the", *_PIECES))]
    return pieces


BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
