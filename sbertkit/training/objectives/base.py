"""What a run asks of an objective."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sbertkit.settings import check_settings
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import DataForm, TrainingData

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, Int64, TextTable


@dataclass(frozen=True, slots=True)
class Objective:
    """What training optimizes; its options are the fields of a subclass, each made by `setting`.

    A new objective is a module with a subclass and an entry of `OBJECTIVES`: command line, model
    card and saved records read all else from here. The command line loads the module for its help,
    so that numpy and torch are imported in the methods that compute.

    Attributes:
        name: As users write it.
        data_form: What it is trained on.
        normalize: Whether it is best trained on vectors of unit length.
        learning_rate: Peak learning rate that suits it.
        summary: What happened to the sentences in training, for the model card.
        head_example: Python code that uses the head, for the model card; none without a head.
        task: ``embed`` for encoders of texts, whose vectors it gets; ``rerank`` for models that
            score pairs: the rows of the table are pairs, and vectors their scores (N, 1).
    """

    name: ClassVar[str]
    data_form: ClassVar[DataForm]
    normalize: ClassVar[bool]
    learning_rate: ClassVar[float]
    summary: ClassVar[str]
    head_example: ClassVar[str] = ""
    task: ClassVar[Literal["embed", "rerank"]] = "embed"

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def options(self) -> dict[str, Any]:
        """Its options as JSON can hold them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}

    def with_defaults(self, config: TrainConfig) -> TrainConfig:
        """The settings with this objective's own where they were left to it."""
        rate, normalize = config.learning_rate, config.normalize
        return replace(
            config,
            learning_rate=self.learning_rate if rate is None else rate,
            normalize=self.normalize if normalize is None else normalize,
        )

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """The rows to train on, whose texts get numbers in the table.

        Raises:
            InputError: The data has nothing that this objective can use.
        """
        raise NotImplementedError

    def check_batches(self, examples: "Examples", batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if batches of those rows teach anything; a warning where only some do.

        Raises:
            InputError: None does.
        """

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """What a batch needs beside its vectors.

        Args:
            examples: All rows.
            rows: Those of the batch.
            columns: Which vector each row's texts have, (B, columns).
            texts: The number of the text of each vector, (N,).
        """
        return {}

    def make_head(self, dim: int) -> "nn.Module":
        """A new head for vectors of a size; one with weights is trained and saved, too."""
        from torch import nn

        return nn.Identity()

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean loss of a batch, a number.

        Args:
            vectors: Text vectors in float32, (N, dim).
            batch: ``columns`` (B, columns) and what `collate` gave.
            head: What `make_head` gave, in training.
        """
        raise NotImplementedError
