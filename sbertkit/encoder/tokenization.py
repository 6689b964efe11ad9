"""Texts to token ids: the Rust tokenizer in parallel, with every truncated token counted."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.long_texts import (
    LONG_CHARS,
    Located,
    locate_windows,
    tokenize_growing,
    tokenize_windows,
)
from sbertkit.encoder.pair_tokens import PairTemplate, Probed, kept, probe_template, truncated
from sbertkit.errors import InputError

_TEXTS_PER_CALL = 512
_CHARS_PER_CALL = 1_000_000
"""What the tokenizer gets at once: enough for all cores, little enough to bound memory, since an
encoding before truncation takes some hundred bytes per token."""
_WORD = re.compile(r"\s*\S{1,20}|\s+")
"""What a tokenizer that gives no places gets of a text, one after the other."""


class Tokens(NamedTuple):
    """Token ids of one text.

    Attributes:
        ids: With the special tokens, (T,).
        truncated: How many tokens were truncated.
        exact: Whether `truncated` was counted; for a text of more than 500,000 characters it is
            estimated.
        unknown: How many of `ids` stand for what the vocabulary lacks.
        types: Token types of a pair, (T,); ``None`` for a text, where they are the tokenizer's.
    """

    ids: npt.NDArray[np.int32]
    truncated: int
    exact: bool = True
    unknown: int = 0
    types: npt.NDArray[np.int8] | None = None


class TokenPlaces(NamedTuple):
    """Tokens of a whole text without the special ones.

    Attributes:
        ids: (T,).
        starts: The character that each begins at, never falling, (T,); tokens that begin at one
            character are pieces of it.
    """

    ids: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The tokens that a tokenizer puts around every text, and all their token types."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    before_types: tuple[int, ...]
    text_type: int
    after_types: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def text_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in order, a bounded number of texts and characters at a time."""
    chunk: list[str] = []
    chars = 0
    for text in texts:
        size = len(text) if len(text) <= LONG_CHARS else _CHARS_PER_CALL  # alone
        if chunk and (len(chunk) == _TEXTS_PER_CALL or chars + size > _CHARS_PER_CALL):
            yield chunk
            chunk, chars = [], 0
        chunk.append(text)
        chars += size
    if chunk:
        yield chunk


def _located(encoding: Any) -> Located:
    return encoding.ids, [start for start, _ in encoding.offsets]


def _places(located: Iterable[Located]) -> TokenPlaces:
    """The tokens of a text from those of its pieces."""
    arrays = [(np.array(ids, np.int32), np.array(starts, np.int32)) for ids, starts in located]
    if not arrays:
        return TokenPlaces(np.empty(0, np.int32), np.empty(0, np.int32))
    ids, starts = (np.concatenate(column) for column in zip(*arrays, strict=True))
    return TokenPlaces(ids, np.maximum.accumulate(starts))


class Tokenizer:
    """A Hugging Face tokenizer that counts what it truncates and leaves padding to the batches.

    Args:
        tokenizer: The tokenizer of the transformers library; its truncation and padding settings
            (some tokenizer.json files have their own) are switched off.
        append_end: Append the end token where the tokenizer adds none (pooling ``eos``).
        pairs: Whether it is for pairs of texts, whose special tokens `special` then has.

    Raises:
        InputError: `append_end` for a tokenizer that has no end token or cannot be changed.
    """

    def __init__(self, tokenizer: Any, *, append_end: bool = False, pairs: bool = False) -> None:
        self.hf = tokenizer
        self._fast: Any = getattr(tokenizer, "backend_tokenizer", None)
        if self._fast is not None:
            self._fast.no_truncation()
            self._fast.no_padding()
        self.pair_template = self.probe_pair() if pairs else None
        self.special = self._probe_special_tokens()
        if append_end and not self._ends_with_end_token():
            self._append_end_token()
            self.special = self._probe_special_tokens()
        self.pad_id: int = tokenizer.pad_token_id or 0
        self.unknown_id = self._find_unknown_id()
        self.uses_token_types = "token_type_ids" in tokenizer.model_input_names
        self.truncation_side: Literal["left", "right"] = (
            "left" if tokenizer.truncation_side == "left" else "right"
        )

    def __len__(self) -> int:
        """Number of tokens that it has."""
        return self._fast.get_vocab_size() if self._fast is not None else len(self.hf)

    def tokenize(self, texts: Sequence[str], max_tokens: int | None) -> list[Tokens]:
        """Token ids of each text, at most `max_tokens` of them with the special tokens.

        Raises:
            InputError: The tokenizer has no token for a text.
        """
        room = None if max_tokens is None else max_tokens - len(self.special)
        special = self.special
        before, after = np.array(special.before, np.int32), np.array(special.after, np.int32)
        if len(special) == 0:  # an empty text still has a token
            filler = np.array([self._filler_id()], np.int32)
            return [
                tokens if tokens.ids.size else tokens._replace(ids=filler)
                for tokens in self.tokenize_bare(texts, room)
            ]
        return [
            tokens._replace(ids=np.concatenate((before, tokens.ids, after)))
            for tokens in self.tokenize_bare(texts, room)
        ]

    def tokenize_pairs(
        self, pairs: Sequence[tuple[str, str]], max_tokens: int | None
    ) -> list[Tokens]:
        """Token ids of each pair, at most `max_tokens` of them with the special tokens.

        Each distinct text is tokenized once. The longer text of a pair is truncated first.

        Raises:
            InputError: The tokenizer has no token for a text, or is not for pairs.
        """
        template = self.pair_template
        if template is None:
            raise InputError("the tokenizer was loaded for single texts, not for pairs")
        room = None if max_tokens is None else max_tokens - len(template)
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        known = dict(zip(texts, self.tokenize_bare(texts, room), strict=True))
        return [self._joined(template, known[one], known[two], room) for one, two in pairs]

    def tokenize_bare(self, texts: Sequence[str], room: int | None) -> list[Tokens]:
        """Token ids of each text without the special tokens, at most `room` of them.

        Raises:
            InputError: The tokenizer has no token for a text.
        """
        result: list[Tokens] = []
        with library_errors("the model's tokenizer fails on a text"):
            for chunk in text_chunks(texts):
                if len(chunk[0]) > LONG_CHARS:
                    result.append(self._tokenize_long(chunk[0], room))
                elif self._fast is None:
                    result += [self._tokens(ids, len(ids), room) for ids in self._slow_ids(chunk)]
                else:
                    result += self._tokenize_fast(chunk, room)
        return result

    def _tokenize_fast(self, texts: list[str], room: int | None) -> list[Tokens]:
        result = []
        for encoding in self._fast.encode_batch_fast(texts, add_special_tokens=False):
            count = len(encoding)
            if room is not None and count > room:
                encoding.truncate(room, direction=self.truncation_side)
            result.append(self._tokens(encoding.ids, count, room))
        return result

    def _slow_ids(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self.hf(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _tokenize_long(self, text: str, room: int | None) -> Tokens:
        """As for any text, from no more of it at once than memory has room for."""
        from_end = self.truncation_side == "left"
        if self._fast is None:
            found = tokenize_growing(
                text, room, lambda piece: self._slow_ids([piece])[0], from_end=from_end
            )
        else:
            found = tokenize_windows(text, room, self._ids_and_places, from_end=from_end)
        tokens = self._tokens(found.ids, found.total, room)
        return tokens._replace(exact=found.exact)

    def _ids_and_places(self, text: str) -> Located:
        return _located(self._fast.encode(text, add_special_tokens=False))

    def locate(self, texts: list[str]) -> list[TokenPlaces]:
        """All tokens of each text, and where they are; estimated where the tokenizer gives none.

        Args:
            texts: One chunk of `text_chunks`.

        Raises:
            InputError: The tokenizer has no token for a text.
        """
        with library_errors("the model's tokenizer fails on a text"):
            if self._fast is None:
                return [_places(self._estimated(text)) for text in texts]
            if len(texts[0]) > LONG_CHARS:
                return [_places(locate_windows(texts[0], self._ids_and_places))]
            encodings = self._fast.encode_batch(texts, add_special_tokens=False)
            return [_places([_located(encoding)]) for encoding in encodings]

    def _estimated(self, text: str) -> Iterator[Located]:
        start = 0
        for words in text_chunks(match[0] for match in _WORD.finditer(text)):
            ids: list[int] = []
            starts: list[int] = []
            for word, found in zip(words, self._slow_ids(words), strict=True):
                ids += found
                starts += (start + place * len(word) // len(found) for place in range(len(found)))
                start += len(word)
            yield ids, starts

    def canonical_json(self) -> str:
        """The tokenizer as JSON in a fixed order, without truncation and padding."""
        if self._fast is None:
            content: dict[str, Any] = {
                "class": type(self.hf).__name__,
                "vocab": self.hf.get_vocab(),
                "special": {key: str(value) for key, value in self.hf.special_tokens_map.items()},
            }
        else:
            content = json.loads(self._fast.to_str())
            content.pop("truncation", None)
            content.pop("padding", None)
        return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    def _tokens(self, ids: Sequence[int], count: int, room: int | None) -> Tokens:
        if room is not None and len(ids) > room:
            ids = ids[len(ids) - room :] if self.truncation_side == "left" else ids[:room]
        unknown = 0 if self.unknown_id is None else ids.count(self.unknown_id)
        return Tokens(np.array(ids, dtype=np.int32), count - len(ids), unknown=unknown)

    def _joined(
        self, template: PairTemplate, first: Tokens, second: Tokens, room: int | None
    ) -> Tokens:
        """The tokens of a pair, from those of its texts."""
        counts = [len(one.ids) + one.truncated for one in (first, second)]
        sizes = kept(counts[0], counts[1], room)
        parts = [
            truncated(one.ids, size, self.truncation_side)
            for one, size in zip((first, second), sizes, strict=True)
        ]
        ids, types = template.join(*parts)
        if ids.size == 0:  # two empty texts for a tokenizer without special tokens
            ids, types = np.array([self._filler_id()], np.int32), np.zeros(1, np.int8)
        unknown = first.unknown + second.unknown
        if unknown and sum(sizes) < len(first.ids) + len(second.ids):
            unknown = sum(int((part == self.unknown_id).sum()) for part in parts)
        exact = first.exact and second.exact
        return Tokens(ids, sum(counts) - sum(sizes), exact, unknown, types)

    def _find_unknown_id(self) -> int | None:
        """The token for what the vocabulary lacks; ``None`` for one that lacks nothing."""
        if self._fast is None:
            return self.hf.unk_token_id  # type: ignore[no-any-return]
        model = self._fast.model
        # of a Unigram model, which has no such attribute, the field `unk_id` cannot be read
        names = ("<unk>", "[UNK]") if type(model).__name__ == "Unigram" else (model.unk_token,)
        found = (self._fast.token_to_id(name) for name in names if name)
        return next((token for token in found if token is not None), None)

    def _filler_id(self) -> int:
        for token in (self.hf.eos_token_id, self.hf.unk_token_id, self.hf.pad_token_id):
            if token is not None:
                return int(token)
        return 0

    def probe_pair(self) -> PairTemplate:
        """The form that it has for pairs.

        Raises:
            InputError: It does not put its special tokens around and between the texts.
        """
        return probe_template(
            self._encode_probe(special=False),
            self._encode_probe("a", special=True),
            type(self.hf).__name__,
        )

    def _probe_special_tokens(self) -> SpecialTokens:
        if (pair := self.pair_template) is not None:
            before, _, between, second, after = pair.types
            return SpecialTokens(
                pair.before, (*pair.between, *pair.after), before, second, (*between, *after)
            )
        bare = list(self._encode_probe(special=False).ids)
        whole, types = self._encode_probe(special=True)
        for start in range(len(whole) - len(bare) + 1):
            end = start + len(bare)
            if bare and whole[start:end] == bare:
                return SpecialTokens(
                    tuple(whole[:start]),
                    tuple(whole[end:]),
                    tuple(types[:start]),
                    types[start],
                    tuple(types[end:]),
                )
        raise InputError(
            f"the model's tokenizer ({type(self.hf).__name__}) does not put its special tokens "
            "before and after the text: not supported"
        )

    def _encode_probe(self, second: str | None = None, *, special: bool) -> Probed:
        """The tokens of a short text, or of a pair with a second one."""
        if self._fast is not None:
            encoding = self._fast.encode("a", second, add_special_tokens=special)
            return Probed(encoding.ids, encoding.type_ids)
        encoded = self.hf("a", second, add_special_tokens=special)
        ids = encoded["input_ids"]
        return Probed(ids, encoded.get("token_type_ids", [0] * len(ids)))

    def _ends_with_end_token(self) -> bool:
        ends = {self.hf.eos_token_id, self.hf.sep_token_id, self.hf.cls_token_id} - {None}
        return bool(self.special.after) and self.special.after[-1] in ends

    def _append_end_token(self) -> None:
        from tokenizers import processors

        token = self.hf.eos_token or self.hf.sep_token
        if token is None or self._fast is None:
            raise InputError(
                f"pooling 'eos' needs an end token, and the model's tokenizer "
                f"({type(self.hf).__name__}) has none that can be appended; choose another pooling"
            )
        special = self.special
        before = self.hf.convert_ids_to_tokens(special.before)
        after = [*self.hf.convert_ids_to_tokens(special.after), token]
        kind = special.text_type
        # One template for all: a second one after the old would also go around its special tokens.
        template = [
            *(f"{name}:{type_}" for name, type_ in zip(before, special.before_types, strict=True)),
            f"$A:{kind}",
            *(
                f"{name}:{type_}"
                for name, type_ in zip(after, (*special.after_types, kind), strict=True)
            ),
        ]
        self._fast.post_processor = processors.TemplateProcessing(
            single=template,
            pair=[*template, "$B:1", f"{token}:1"],
            special_tokens=[
                (name, self.hf.convert_tokens_to_ids(name)) for name in {*before, *after}
            ],
        )
