"""The table of pretrained encoders, read from models.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sbertkit.encoder.prompts import Prompts, known_prompts
from sbertkit.schema import to_dict


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A published encoder.

    Attributes:
        name: On the Hugging Face hub.
        family: The architecture's usual name.
        parameters: Of the encoder as transformers builds it; heads are not counted.
        dim: Size of a vector.
        layers: Number of layers.
        tokenizer: The kind of its subwords.
        tasks: What it was pretrained with, by the names of `TASKS`.
        pooling: The pooling that suits it, by the names of `Encoder.load`.
        languages: ISO 639 codes, of two letters where there is one.
        domain: What it was trained on, by the names of `DOMAINS`.
        note: What else is worth knowing, in a line.
        sources: Where the facts were found.
        ready: Whether it was trained to give vectors of texts; else it is a base to be tuned.
        positions: Tokens that its positions allow, special ones counted; None for no limit.
        declared_max_tokens: The limit that its folder declares, where it is lower.
        licence: As its authors state it; None where they were not found to.
        weights: ``bin`` where the hub had no safetensors, which must be converted first.
    """

    name: str
    family: str
    parameters: int
    dim: int
    layers: int
    tokenizer: str
    tasks: tuple[str, ...]
    pooling: str
    languages: tuple[str, ...]
    domain: str
    note: str
    sources: tuple[str, ...]
    ready: bool = False
    positions: int | None = None
    declared_max_tokens: int | None = None
    licence: str | None = None
    weights: str | None = None

    @property
    def max_tokens(self) -> int | None:
        """Tokens that a text may have, special ones counted; None for no limit."""
        return self.declared_max_tokens or self.positions

    @property
    def prompts(self) -> Prompts:
        """What it needs before queries and documents; empty for most."""
        return known_prompts(self.name) or Prompts()

    def to_dict(self) -> dict[str, Any]:
        """The entry as strict JSON can hold it."""
        return {
            **to_dict(self),
            "max_tokens": self.max_tokens,
            "prompts": self.prompts._asdict(),
        }


def _read() -> dict[str, Any]:
    text = files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _model(name: str, entry: dict[str, Any], groups: Mapping[str, str]) -> KnownModel:
    languages = entry.pop("languages")
    if isinstance(languages, str):
        languages = groups[languages].split()
    return KnownModel(
        name=name,
        languages=tuple(languages),
        tasks=tuple(entry.pop("tasks")),
        sources=tuple(entry.pop("sources")),
        declared_max_tokens=entry.pop("max_tokens", None),
        **entry,
    )


_TABLE = _read()

TASKS: Mapping[str, str] = _TABLE["tasks"]
"""What encoders are pretrained with, and what that means."""

DOMAINS: Mapping[str, str] = _TABLE["domains"]
"""What they are pretrained on."""

LANGUAGE_NAMES: Mapping[str, str] = _TABLE["names"]
"""English names of languages in lower case, by their codes."""

KNOWN_MODELS = tuple(
    sorted(
        (_model(name, entry, _TABLE["languages"]) for name, entry in _TABLE["models"].items()),
        key=lambda one: (not one.ready, one.parameters, one.name),
    )
)
"""Those that give vectors of texts as they are, then the bases, the smaller first."""
