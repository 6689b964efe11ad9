"""The settings of published encoders that decide their numbers of parameters.

From the config.json of each repository on the hub, or of a model tuned from it that names it; what
is not given is the default of the configuration in transformers, most often that of BERT base.
"""

from typing import Any

import transformers

BASE: dict[str, Any] = {}
LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
MINI = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
XLMR = {"vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1}
CHINESE = {"vocab_size": 21128}
CASED = {"vocab_size": 28996}
DEBERTA: dict[str, Any] = {
    "vocab_size": 128100,
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
}
ERNIE = {
    "vocab_size": 40000,
    "max_position_embeddings": 2048,
    "type_vocab_size": 4,
    "use_task_id": True,
}
LONG = {**ROBERTA, "max_position_embeddings": 4098, "attention_window": 512}
BIRD = {"vocab_size": 50358, "max_position_embeddings": 4096}

_BERT = transformers.BertConfig
_ROBERTA = transformers.RobertaConfig
_XLMR = transformers.XLMRobertaConfig
_DISTIL = transformers.DistilBertConfig
_ELECTRA = transformers.ElectraConfig
_XLNET = transformers.XLNetConfig
_DEBERTA = transformers.DebertaV2Config
_ERNIE = transformers.ErnieConfig
_MPNET = transformers.MPNetConfig
_LONG = transformers.LongformerConfig
_BIRD = transformers.BigBirdConfig
_MODERN = transformers.ModernBertConfig

CONFIGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sentence-transformers/all-MiniLM-L6-v2": (_BERT, {**MINI, "num_hidden_layers": 6}),
    "sentence-transformers/all-MiniLM-L12-v2": (_BERT, MINI),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": (
        _BERT,
        {**MINI, "vocab_size": 250037},
    ),
    "sentence-transformers/all-mpnet-base-v2": (
        _MPNET,
        {"vocab_size": 30527, "max_position_embeddings": 514},
    ),
    "intfloat/e5-small-v2": (_BERT, MINI),
    "intfloat/e5-base-v2": (_BERT, BASE),
    "intfloat/e5-large-v2": (_BERT, LARGE),
    "intfloat/multilingual-e5-small": (_BERT, {**MINI, "vocab_size": 250037}),
    "intfloat/multilingual-e5-base": (_XLMR, XLMR),
    "intfloat/multilingual-e5-large": (_XLMR, {**LARGE, **XLMR}),
    "BAAI/bge-small-en-v1.5": (_BERT, MINI),
    "BAAI/bge-base-en-v1.5": (_BERT, BASE),
    "BAAI/bge-large-en-v1.5": (_BERT, LARGE),
    "BAAI/bge-small-zh-v1.5": (
        _BERT,
        {
            **CHINESE,
            "hidden_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "intermediate_size": 2048,
        },
    ),
    "BAAI/bge-base-zh-v1.5": (_BERT, CHINESE),
    "BAAI/bge-large-zh-v1.5": (_BERT, {**LARGE, **CHINESE}),
    "BAAI/bge-m3": (_XLMR, {**LARGE, **XLMR, "max_position_embeddings": 8194}),
    "google-bert/bert-base-uncased": (_BERT, BASE),
    "google-bert/bert-large-uncased": (_BERT, LARGE),
    "google-bert/bert-base-cased": (_BERT, CASED),
    "google-bert/bert-base-chinese": (_BERT, CHINESE),
    "google-bert/bert-base-multilingual-cased": (_BERT, {"vocab_size": 119547}),
    "FacebookAI/roberta-base": (_ROBERTA, ROBERTA),
    "FacebookAI/roberta-large": (_ROBERTA, {**LARGE, **ROBERTA}),
    "distilbert/distilbert-base-uncased": (_DISTIL, BASE),
    "distilbert/distilroberta-base": (_ROBERTA, {**ROBERTA, "num_hidden_layers": 6}),
    "distilbert/distilbert-base-multilingual-cased": (_DISTIL, {"vocab_size": 119547}),
    "albert/albert-base-v2": (
        transformers.AlbertConfig,
        {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    ),
    "google/electra-small-discriminator": (_ELECTRA, BASE),
    "google/electra-base-discriminator": (
        _ELECTRA,
        {
            "embedding_size": 768,
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
    ),
    "google/electra-large-discriminator": (_ELECTRA, {**LARGE, "embedding_size": 1024}),
    "SpanBERT/spanbert-base-cased": (_BERT, CASED),
    "SpanBERT/spanbert-large-cased": (_BERT, {**LARGE, **CASED}),
    "xlnet/xlnet-base-cased": (
        _XLNET,
        {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072},
    ),
    "xlnet/xlnet-large-cased": (_XLNET, BASE),
    "microsoft/deberta-v3-small": (
        _DEBERTA,
        {
            **DEBERTA,
            "hidden_size": 768,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
    ),
    "microsoft/deberta-v3-base": (
        _DEBERTA,
        {
            **DEBERTA,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
    ),
    "microsoft/deberta-v3-large": (_DEBERTA, {**DEBERTA, **LARGE}),
    "microsoft/mdeberta-v3-base": (
        _DEBERTA,
        {
            **DEBERTA,
            "vocab_size": 251000,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
        },
    ),
    "hfl/chinese-macbert-base": (_BERT, CHINESE),
    "hfl/chinese-macbert-large": (_BERT, {**LARGE, **CHINESE}),
    "nghuyong/ernie-3.0-base-zh": (_ERNIE, {**ERNIE, "task_type_vocab_size": 3}),
    "nghuyong/ernie-3.0-medium-zh": (
        _ERNIE,
        {**ERNIE, "task_type_vocab_size": 16, "num_hidden_layers": 6},
    ),
    "nghuyong/ernie-3.0-nano-zh": (
        _ERNIE,
        {
            **ERNIE,
            "task_type_vocab_size": 16,
            "hidden_size": 312,
            "num_hidden_layers": 4,
            "num_attention_heads": 12,
            "intermediate_size": 1248,
        },
    ),
    "microsoft/mpnet-base": (_MPNET, {"vocab_size": 30527, "max_position_embeddings": 514}),
    "FacebookAI/xlm-roberta-base": (_XLMR, XLMR),
    "FacebookAI/xlm-roberta-large": (_XLMR, {**LARGE, **XLMR}),
    "allenai/scibert_scivocab_uncased": (_BERT, {"vocab_size": 31090}),
    "emilyalsentzer/Bio_ClinicalBERT": (_BERT, CASED),
    "yiyanghkust/finbert-pretrain": (_BERT, {"vocab_size": 30875}),
    "ProsusAI/finbert": (_BERT, BASE),
    "allenai/longformer-base-4096": (_LONG, LONG),
    "allenai/longformer-large-4096": (_LONG, {**LARGE, **LONG}),
    "google/bigbird-roberta-base": (_BIRD, BIRD),
    "google/bigbird-roberta-large": (_BIRD, {**LARGE, **BIRD}),
    "answerdotai/ModernBERT-base": (_MODERN, BASE),
    "answerdotai/ModernBERT-large": (
        _MODERN,
        {
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "intermediate_size": 2624,
        },
    ),
    "microsoft/MiniLM-L12-H384-uncased": (_BERT, MINI),
    "openai/clip-vit-base-patch32": (transformers.CLIPTextConfig, BASE),
}
