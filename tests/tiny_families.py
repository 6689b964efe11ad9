"""Tiny random models of further encoder families, for the table of `tiny_models`."""

from pathlib import Path

import tokenizers
import transformers
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
from tokenizers import pre_tokenizers, processors

WINDOWS = (4, 8)
"""Attention windows of the layers of Longformer; it pads to a multiple of the largest."""

BLOCK = 8
"""Tokens a block of BigBird, whose sparse attention begins above seven blocks."""


def electra(folder: Path) -> Path:
    """A discriminator with its head; an embedding smaller than the hidden size, no pooler."""
    vocab = word_pieces(BERT_SPECIAL)
    config = transformers.ElectraConfig(**sizes(len(vocab), embedding_size=16))
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.ElectraForPreTraining), tokenizer)


def ernie(folder: Path) -> Path:
    """BERT with an embedding of the task, which is the first one for every text."""
    vocab = word_pieces(BERT_SPECIAL)
    config = transformers.ErnieConfig(**sizes(len(vocab), use_task_id=True))
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.ErnieModel), tokenizer)


def nomic_bert(folder: Path) -> Path:
    """Rotary positions and token types, gated layers without dropout."""
    vocab = word_pieces(BERT_SPECIAL)
    config = transformers.NomicBertConfig(**sizes(len(vocab)))
    tokenizer = transformers.BertTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.NomicBertModel), tokenizer)


def deberta_v2(folder: Path) -> Path:
    """Unigram; relative attention in buckets, a convolution over the first layer, no types."""
    vocab = unigrams(("[PAD]", "[CLS]", "[SEP]", "[UNK]"))
    config = transformers.DebertaV2Config(
        **sizes(
            len(vocab) + 1,  # the mask token is added behind the vocabulary
            relative_attention=True,
            position_buckets=8,
            pos_att_type="p2c|c2p",
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            position_biased_input=False,
            conv_kernel_size=3,
            conv_act="gelu",
        )
    )
    tokenizer = transformers.DebertaV2Tokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.DebertaV2Model), tokenizer)


def xlm_roberta(folder: Path) -> Path:
    """Unigram; a language model with its head, without the pooler that the encoder class has."""
    vocab = unigrams(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    config = transformers.XLMRobertaConfig(
        **sizes(len(vocab), max_position_embeddings=POSITIONS + 2, type_vocab_size=1)
    )
    tokenizer = transformers.XLMRobertaTokenizer(vocab=vocab, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.XLMRobertaForMaskedLM), tokenizer)


def longformer(folder: Path) -> Path:
    """Attention in a window, and global attention with weights of its own where it is asked for."""
    vocab, merges = byte_pairs(ROBERTA_SPECIAL)
    config = transformers.LongformerConfig(
        **sizes(
            len(vocab),
            max_position_embeddings=POSITIONS + 2,
            type_vocab_size=1,
            attention_window=list(WINDOWS),
        )
    )
    tokenizer = transformers.RobertaTokenizer(
        vocab=vocab, merges=merges, model_max_length=POSITIONS
    )
    return write(folder, seeded(config, transformers.LongformerForMaskedLM), tokenizer)


def big_bird(folder: Path, positions: int = POSITIONS) -> Path:
    """Unigram; attention in blocks, of which some are random, for texts that are long enough."""
    vocab = unigrams(("<pad>", "</s>", "<s>", "<unk>", "[SEP]", "[MASK]", "[CLS]"))
    config = transformers.BigBirdConfig(
        **sizes(
            len(vocab), max_position_embeddings=positions, block_size=BLOCK, num_random_blocks=1
        )
    )
    tokenizer = transformers.BigBirdTokenizer(vocab=vocab, model_max_length=positions)
    return write(folder, seeded(config, transformers.BigBirdForPreTraining), tokenizer)


def modernbert(folder: Path, positions: int = POSITIONS) -> Path:
    """Byte-level BPE in a tokenizer of no class of its own; windows in every second layer."""
    vocab, merges = byte_pairs(BERT_SPECIAL)
    config = transformers.ModernBertConfig(
        vocab_size=len(vocab),
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=2 * HIDDEN,
        max_position_embeddings=positions,
        initializer_range=0.3,
        layer_types=["full_attention", "sliding_attention"],
        local_attention=8,
        pad_token_id=vocab["[PAD]"],
        cls_token_id=vocab["[CLS]"],
        bos_token_id=vocab["[CLS]"],
        sep_token_id=vocab["[SEP]"],
        eos_token_id=vocab["[SEP]"],
    )
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, vocab[token]) for token in ("[CLS]", "[SEP]")],
    )
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=positions,
        **names,
    )
    return write(folder, seeded(config, transformers.ModernBertForMaskedLM), tokenizer)


def long_t5(folder: Path) -> Path:
    """Attention to a summary of each block of four tokens, which a shorter text does not have."""
    vocab = unigrams(("<pad>", "</s>", "<unk>"))
    config = transformers.LongT5Config(
        vocab_size=len(vocab),
        d_model=HIDDEN,
        d_kv=HIDDEN // HEADS,
        d_ff=2 * HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        local_radius=7,
        global_block_size=4,
        encoder_attention_type="transient-global",
        decoder_start_token_id=0,
    )
    tokenizer = transformers.T5Tokenizer(vocab=vocab, extra_ids=0, model_max_length=POSITIONS)
    return write(folder, seeded(config, transformers.LongT5EncoderModel), tokenizer)


FAMILIES = (electra, ernie, nomic_bert, deberta_v2, xlm_roberta, longformer, big_bird, modernbert)
"""Those whose encoder is what AutoModel gives."""
