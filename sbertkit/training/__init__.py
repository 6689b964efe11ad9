"""Training of sentence encoders."""

from sbertkit.training.classifier import ClassifiedPair, classify_pairs
from sbertkit.training.config import TrainConfig
from sbertkit.training.nli import train_nli
from sbertkit.training.results import Quality, TrainResult

__all__ = [
    "ClassifiedPair",
    "Quality",
    "TrainConfig",
    "TrainResult",
    "classify_pairs",
    "train_nli",
]
