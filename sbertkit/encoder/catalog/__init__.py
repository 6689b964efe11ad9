"""A table of pretrained encoders: which one suits a language, a domain, a length or a machine."""

from sbertkit.encoder.catalog.filters import find_known, known_models
from sbertkit.encoder.catalog.models import DOMAINS, KNOWN_MODELS, TASKS, KnownModel

__all__ = ["DOMAINS", "KNOWN_MODELS", "TASKS", "KnownModel", "find_known", "known_models"]
