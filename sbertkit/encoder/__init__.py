"""Loading sentence encoders and turning texts into vectors."""

from sbertkit.encoder.corpus import encode_corpus
from sbertkit.encoder.encoder import Encoder
from sbertkit.encoder.report import Encoded, EncodeReport

__all__ = ["EncodeReport", "Encoded", "Encoder", "encode_corpus"]
