"""What is known of an encoder besides its weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
        dim: Size of a vector.
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

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text, truncated to the limit; no prompt is put before."""
        return self.tokenizer.tokenize(texts, self.max_tokens)

    def with_limit(self, max_tokens: int) -> "EncoderSpec":
        """The same with another token limit, which is not checked."""
        options = replace(self.options, max_tokens=max_tokens)
        return replace(self, options=options, max_tokens=max_tokens)
