"""What is asked of an encoder where vectors are all that is needed of it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from sbertkit.arrays import Vectors
from sbertkit.encoder.encoding import Kind
from sbertkit.encoder.report import Encoded, EncodeReport


class RunLike(Protocol):
    """One pass over texts; see `sbertkit.encoder.encoding.EncodingRun`."""

    def vectors(self, texts: Iterable[str], /, *, progress: bool = False) -> Iterator[Vectors]:
        """Vectors of the texts in order, one chunk (n, dim) at a time."""
        ...

    def report(self) -> EncodeReport:
        """What happened to the texts whose vectors have been drawn."""
        ...


class EncoderLike(Protocol):
    """An encoder, or what gives vectors in its place; see `sbertkit.Encoder`."""

    def encode(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Vectors:
        """Vectors (n, dim) of the texts."""
        ...

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        """As `encode`, with a report on the texts."""
        ...

    def start_run(self, *, kind: Kind = "document") -> RunLike:
        """A run for more texts than fit in memory."""
        ...
