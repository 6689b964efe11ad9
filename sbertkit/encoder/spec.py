"""What is known of an encoder besides its weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbertkit.encoder.batching import BatchCollator
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.tokenization import Tokenizer, Tokens


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """How texts reach a model, and what kind of vector comes out.

    Attributes:
        options: What the encoder was loaded with, enough to load it again.
        name: The model's, also where the encoder is an export of it.
        tokenizer: Its tokenizer.
        collator: Builds its padded batches.
        prompts: What is put before queries and documents.
        max_tokens: Tokens a text may have, special tokens and prompt counted; ``None``: no limit.
        pooling: Name of the pooling.
        normalizes: Whether every vector has unit length.
        dim: Size of a vector; 1 for scores.
        activation: Of a model that scores pairs: what it declares to be applied to its scores.
    """

    options: LoadOptions
    name: str
    tokenizer: Tokenizer
    collator: BatchCollator
    prompts: Prompts
    max_tokens: int | None
    pooling: str
    normalizes: bool
    dim: int
    activation: str | None = None

    @property
    def scores_pairs(self) -> bool:
        """Whether its rows are pairs of texts, each of which gets a score."""
        return self.options.task == "rerank"

    @property
    def output(self) -> str:
        """What an ONNX model of it calls what it gives."""
        return "scores" if self.scores_pairs else "sentence_embedding"

    def tokenize(self, rows: Sequence[Any]) -> list[Tokens]:
        """The tokens of each text or pair, truncated to the limit; no prompt is put before."""
        if self.scores_pairs:
            return self.tokenizer.tokenize_pairs(rows, self.max_tokens)
        return self.tokenizer.tokenize(rows, self.max_tokens)

    def rows_of(self, texts: Sequence[str]) -> list[Any]:
        """Texts as its rows: each as a document, or after the one before as its query."""
        if self.scores_pairs:
            queries = [text or texts[0] for text in (*texts[-1:], *texts[:-1])]
            return list(zip(queries, texts, strict=True))
        return list(texts)

    def prompted(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Rows, all texts documents, with the prompts before them."""
        query, document = self.prompts
        if not (query if self.scores_pairs else document):
            return rows
        if self.scores_pairs:
            return [(query + one, document + two) for one, two in rows]
        return [document + text for text in rows]

    def with_limit(self, max_tokens: int) -> "EncoderSpec":
        """The same with another token limit, which is not checked."""
        options = replace(self.options, max_tokens=max_tokens)
        return replace(self, options=options, max_tokens=max_tokens)
