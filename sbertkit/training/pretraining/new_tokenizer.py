"""A tokenizer trained on a corpus: the same one for the same corpus."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from sbertkit.errors import InputError
from sbertkit.training.pretraining.families import TOKENIZERS, SpecialTokenSet
from sbertkit.training.pretraining.unigram import MAX_PIECE, train_unigram

_INSIDE = "##"
_MIN_COUNT = 2
"""What occurs once is no piece."""
_SEEDS = 4
"""Pieces that a unigram model chooses from, times its size."""


class _Kind(NamedTuple):
    """A kind of tokenizer.

    Attributes:
        normalizers: What is done to a text first, and where it is lower-cased.
        pre_tokenizer: Divides it into words.
        decoder: From tokens to text.
        trained: The model, from an untrained tokenizer, texts, special tokens and a size.
    """

    normalizers: Callable[[bool], Any]
    pre_tokenizer: Any
    decoder: Any
    trained: Callable[[Any, Sequence[str], SpecialTokenSet, int], Any]


def train_tokenizer(
    kind: str, texts: Sequence[str], special: SpecialTokenSet, size: int, *, lowercase: bool
) -> Any:
    """A tokenizer of the `tokenizers` library, with special tokens around every text.

    Args:
        kind: One of `TOKENIZERS`.
        texts: Of the corpus.
        special: The special tokens.
        size: Tokens of its vocabulary, special ones included.
        lowercase: Whether case is dropped.

    Raises:
        InputError: So many tokens are too few for the characters, or too many for the texts.
    """
    made = _KINDS[kind]
    backend = tokenizers.Tokenizer(models.BPE())
    backend.normalizer = made.normalizers(lowercase)
    backend.pre_tokenizer = made.pre_tokenizer
    backend.model = made.trained(backend, texts, special, size)
    _check_size(backend.get_vocab(), special, size)
    backend.decoder = made.decoder
    backend.add_special_tokens(list(special.tokens))
    around = {role: special.roles[role] for role in ("cls", "sep")}.values()
    backend.post_processor = processors.TemplateProcessing(
        single=special.single,
        pair=special.pair,
        special_tokens=[(token, backend.token_to_id(token)) for token in around],
    )
    return backend


def for_transformers(backend: Any, special: SpecialTokenSet, config: Any) -> Any:
    """A tokenizer as the transformers library has it.

    Args:
        backend: What `train_tokenizer` gave.
        special: Its special tokens.
        config: Of the model, which says whether it takes token types.
    """
    takes_types = special.types or getattr(config, "type_vocab_size", 0) > 1
    names = ["input_ids", *(["token_type_ids"] if takes_types else []), "attention_mask"]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=names,
        padding_side=special.padding_side,
        **{f"{role}_token": token for role, token in special.roles.items()},
    )


def _check_size(vocabulary: dict[str, int], special: SpecialTokenSet, size: int) -> None:
    found = len(vocabulary)
    if found > size:
        raise InputError(
            f"a vocabulary of {size:,} (--vocabulary) is smaller than the alphabet: single "
            f"characters and {len(special.tokens)} special tokens are {found:,}; raise it"
        )
    if found < size:
        raise InputError(
            f"the corpus is too small for a vocabulary of {size:,} (--vocabulary): it yields "
            f"{found:,} tokens that occur {_MIN_COUNT} times or are single characters; lower it, "
            "or add texts"
        )


def _word_pieces(backend: Any, texts: Sequence[str], special: SpecialTokenSet, size: int) -> Any:
    """The model of WordPiece."""
    # The trainer numbers characters inside words by chance, and pairs of one count by number.
    alphabet = _merged(backend, texts, special.tokens, 0, continuing_subword_prefix=_INSIDE)
    first = dict.fromkeys((*special.tokens, *sorted(alphabet.vocabulary)))
    found = _merged(backend, texts, list(first), size, continuing_subword_prefix=_INSIDE)
    return models.WordPiece(found.vocabulary, unk_token=special.roles["unk"])


def _byte_pairs(backend: Any, texts: Sequence[str], special: SpecialTokenSet, size: int) -> Any:
    """The model of byte-level BPE."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    found = _merged(backend, texts, special.tokens, size, initial_alphabet=alphabet)
    return models.BPE(found.vocabulary, found.merges)


def _unigrams(backend: Any, texts: Sequence[str], special: SpecialTokenSet, size: int) -> Any:
    """The model of a unigram language model, whose seeds are the pieces of BPE.

    Source: Kudo 2018, Subword Regularization, section 3.2.
    """
    seeds = _merged(backend, texts, (), _SEEDS * size, max_token_length=MAX_PIECE).vocabulary
    words = Counter[str]()
    for text in texts:
        normal = backend.normalizer.normalize_str(text)
        words.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(normal))
    pieces = train_unigram(words, list(seeds), size - len(special.tokens))
    ranked = sorted(pieces.items(), key=lambda piece: (-piece[1], piece[0]))
    vocabulary = [*((token, 0.0) for token in special.tokens), *ranked]
    return models.Unigram(vocabulary, unk_id=special.tokens.index(special.roles["unk"]))


class _Merged(NamedTuple):
    """What byte-pair encoding gives: tokens by number, and merges in their order."""

    vocabulary: dict[str, int]
    merges: list[tuple[str, str]]


def _merged(
    backend: Any, texts: Sequence[str], first: Sequence[str], size: int, **options: Any
) -> _Merged:
    """The tokens of byte-pair encoding, with some that come first.

    Args:
        backend: Normalizes texts and divides them.
        texts: Of the corpus.
        first: Tokens that have the first numbers.
        size: How many there are to be; single characters are always there.
        options: Of the library's trainer.
    """
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=_MIN_COUNT,
        special_tokens=list(first),
        show_progress=False,
        **options,
    )
    learner = tokenizers.Tokenizer(models.BPE())
    learner.normalizer, learner.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    learner.train_from_iterator(texts, trainer)
    model = json.loads(learner.to_str())["model"]
    vocabulary = dict(sorted(model["vocab"].items(), key=lambda token: token[1]))
    return _Merged(vocabulary, [(one, two) for one, two in model["merges"]])


def _lowered(*steps: Any) -> Callable[[bool], Any]:
    """The steps of a normalizer, and the one that lower-cases where that is wanted."""

    def made(lowercase: bool) -> Any:
        more = [normalizers.Lowercase()] if lowercase else []
        return normalizers.Sequence([*steps, *more])

    return made


_KINDS = dict(
    zip(
        TOKENIZERS,
        (
            _Kind(
                lambda lower: normalizers.BertNormalizer(lowercase=lower, strip_accents=False),
                pre_tokenizers.BertPreTokenizer(),
                decoders.WordPiece(prefix=_INSIDE),
                _word_pieces,
            ),
            _Kind(
                _lowered(normalizers.NFC()),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
                decoders.ByteLevel(),
                _byte_pairs,
            ),
            _Kind(
                _lowered(normalizers.NFKC()),
                pre_tokenizers.Sequence(
                    [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
                ),
                decoders.Metaspace(),
                _unigrams,
            ),
        ),
        strict=True,
    )
)
