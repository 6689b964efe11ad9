"""What the rest of the package asks of an encoder."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol, runtime_checkable

from sbertkit.arrays import Vectors
from sbertkit.encoder.report import Encoded, EncodeReport
from sbertkit.encoder.spec import EncoderSpec

Kind = Literal["document", "query"]


class RunLike(Protocol):
    """One pass over more texts than memory holds; see `sbertkit.encoder.encoding.EncodingRun`."""

    def vectors(self, texts: Iterable[str], /, *, progress: bool = False) -> Iterator[Vectors]:
        """Vectors of the texts in order, one chunk (n, dim) at a time."""
        ...

    def report(self) -> EncodeReport:
        """What happened to the texts whose vectors have been drawn."""
        ...


class EncoderLike(Protocol):
    """An `Encoder`, or something that wraps one, such as a cache of its vectors."""

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        """Vectors (n, dim) of the texts in their order, and the report on them."""
        ...

    def start_run(self, *, kind: Kind = "document") -> RunLike:
        """A run whose vectors come chunk by chunk."""
        ...


@runtime_checkable
class DividingEncoder(EncoderLike, Protocol):
    """An `EncoderLike` with a tokenizer and a limit, by which long texts can be divided."""

    @property
    def spec(self) -> EncoderSpec:
        """What is known of the encoder besides its weights."""
        ...
