"""A new encoder in place of a base: random weights, and a tokenizer trained on the corpus."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sbertkit.arguments import path_text, refuses_unknown
from sbertkit.progress import under_way
from sbertkit.settings import check_settings, setting
from sbertkit.training.pretraining.families import FAMILIES, TOKENIZERS


@refuses_unknown
@dataclass(frozen=True, slots=True)
class FromScratch:
    """A new encoder, which `adapt` takes in place of a base.

    Attributes:
        config: A transformers config file, with ``model_type`` and sizes.

    Raises:
        InputError: A setting out of range.
    """

    config: str | os.PathLike[str]
    tokenizer: str = setting(
        TOKENIZERS[0], "Kind of the tokenizer, which is trained on the corpus.", choices=TOKENIZERS
    )
    vocabulary: int | None = setting(
        None,
        "Tokens of its vocabulary, special ones too; by default vocab_size of the config file.",
    )
    lowercase: bool = setting(False, "The tokenizer drops case.")

    def __post_init__(self) -> None:
        check_settings(self)

    @contextmanager
    def written(self, texts: Sequence[str], *, seed: int, progress: bool = False) -> Iterator[Path]:
        """A folder with the new encoder, for the block; the same for the same texts and seed.

        Args:
            texts: The corpus.
            seed: Decides the weights.
            progress: Whether progress is shown.

        Raises:
            InputError: The config file or the vocabulary is refused.
            StorageError: The disk is full or the like.
        """
        from sbertkit.encoder.new_encoder import read_new_config, write_new_encoder
        from sbertkit.storage import storage_errors
        from sbertkit.training.pretraining.new_tokenizer import for_transformers, train_tokenizer

        path = Path(path_text(self.config))
        config = read_new_config(path, FAMILIES)
        special, size = FAMILIES[config.model_type], self.vocabulary or config.vocab_size
        with under_way(f"training a tokenizer on {len(texts):,} texts", shown=progress):
            backend = train_tokenizer(
                self.tokenizer, texts, special, size, lowercase=self.lowercase
            )
        tokenizer = for_transformers(backend, special, config)
        with storage_errors(tempfile.gettempdir()):
            made = tempfile.TemporaryDirectory(prefix="sbertkit-")
        with made as place:
            folder = Path(place) / f"{config.model_type}-from-scratch"
            with storage_errors(folder):
                write_new_encoder(config, tokenizer, folder, seed=seed, path=path)
            yield folder
