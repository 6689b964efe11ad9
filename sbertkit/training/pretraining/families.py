"""The kinds of tokenizers that are trained, and the special tokens that families expect of them."""

from typing import NamedTuple

TOKENIZERS = ("wordpiece", "bpe", "unigram")
"""BERT's kind; byte-level BPE, as RoBERTa's; a unigram language model, as ALBERT's."""


class SpecialTokenSet(NamedTuple):
    """The special tokens of a tokenizer.

    Attributes:
        tokens: In the order of their ids, from 0.
        roles: The token of each role, as transformers names it without ``_token``.
        single: What is put around a text ``$A``, with the token type of each.
        pair: Around two texts.
        padding_side: Where padding goes.
        types: Whether the model takes token types although its config does not say how many.
    """

    tokens: tuple[str, ...]
    roles: dict[str, str]
    single: str
    pair: str
    padding_side: str = "right"
    types: bool = False


_BERT = SpecialTokenSet(
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")},
    "[CLS]:0 $A:0 [SEP]:0",
    "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
)
_ROBERTA = SpecialTokenSet(
    ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    {
        "bos": "<s>",
        "cls": "<s>",
        "eos": "</s>",
        "sep": "</s>",
        "pad": "<pad>",
        "unk": "<unk>",
        "mask": "<mask>",
    },
    "<s>:0 $A:0 </s>:0",
    "<s>:0 $A:0 </s>:0 </s>:0 $B:0 </s>:0",
)
_XLNET = SpecialTokenSet(
    ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"),
    {
        "bos": "<s>",
        "eos": "</s>",
        "cls": "<cls>",
        "sep": "<sep>",
        "pad": "<pad>",
        "unk": "<unk>",
        "mask": "<mask>",
    },
    "$A:0 <sep>:0 <cls>:2",
    "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
    padding_side="left",
    types=True,
)

FAMILIES: dict[str, SpecialTokenSet] = {
    **dict.fromkeys(("bert", "distilbert", "albert", "electra", "ernie", "nomic_bert"), _BERT),
    **dict.fromkeys(("deberta-v2", "modernbert", "big_bird"), _BERT),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"), _ROBERTA),
    "xlnet": _XLNET,
}
"""By model type. Those of RoBERTa's kind count positions from the padding id on, which is 1."""
