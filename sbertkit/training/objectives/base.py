"""What a run asks of an objective."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sbertkit.settings import check_settings, settings_of
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import DataForm, TrainingData

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Examples, Int64, TextTable


LORA_RATE = 10
"""The rate of low-rank matrices is that of whole weights, times this.

Source: Schulman et al. 2025, LoRA Without Regret, section "Setting the learning rate"; Hu et al.
    2021, LoRA, table 9, has 4e-4 and 5e-4 for RoBERTa.
"""


@dataclass(frozen=True, slots=True)
class Objective:
    """What training optimizes; its options are the fields of a subclass, each made by `setting`.

    A new objective is a module with a subclass and an entry of `OBJECTIVES`: command line, model
    card and saved records read all else from here. The command line loads the module for its help,
    so that numpy and torch are imported in the methods that compute.

    Attributes:
        name: As users write it.
        data_forms: What it may be trained on.
        normalize: Whether it is best trained on vectors of unit length; None for as the base has.
        learning_rate: Peak learning rate that suits it.
        summary: What happened to the texts in training, for the model card.
        formula: The loss of an example, for the model card.
        source: Where the formula is from, for the model card.
        labels: The classes of its head, if it has one.
        head_example: Python code that uses the head, for the model card; none without a head.
        model_option: The option that names another model, if one does.

    Of a form of data whose task is ``rerank``, models that score pairs are trained: the rows of the
    table are pairs, and vectors their scores (N, 1).
    """

    name: ClassVar[str]
    data_forms: ClassVar[tuple[DataForm, ...]]
    normalize: ClassVar[bool | None]
    learning_rate: ClassVar[float]
    summary: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[str]
    labels: ClassVar[tuple[str, ...]] = ()
    head_example: ClassVar[str] = ""
    model_option: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def options(self) -> dict[str, Any]:
        """Its options as JSON can hold them; a model by name and fingerprint."""
        values: dict[str, Any] = {name: getattr(self, name) for name in settings_of(self)}
        found = {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}
        model = found.get(self.model_option)
        if model is not None:
            from sbertkit.encoder.saving import lineage_name

            found[self.model_option] = lineage_name(str(model))
            found[f"{self.model_option}_fingerprint"] = self.model_fingerprint()
        return found

    def model_fingerprint(self) -> str:
        """The fingerprint of the model that `model_option` names."""
        raise NotImplementedError

    def with_defaults(self, config: TrainConfig) -> TrainConfig:
        """The settings with this objective's own where they were left to it."""
        rate, normalize = config.learning_rate, config.normalize
        usual = self.learning_rate * (1 if config.lora is None else LORA_RATE)
        return replace(
            config,
            learning_rate=usual if rate is None else rate,
            normalize=self.normalize if normalize is None else normalize,
        )

    def loaded(self, config: TrainConfig) -> "Objective":
        """The same with what it has to know of a teacher; itself where it has none.

        Raises:
            InputError: The teacher cannot be loaded.
        """
        return self

    def student(self, encoder: "Encoder") -> "Encoder":
        """The encoder that is trained, made of a base: by default the base itself.

        Raises:
            InputError: The base does not suit the teacher.
        """
        return encoder

    def teacher_texts(self, data: TrainingData) -> Sequence[str]:
        """The distinct texts whose vectors a teacher gives before training; by default none."""
        return ()

    def taught(self, examples: "Examples", vectors: "npt.NDArray[np.float32]") -> "Examples":
        """The rows with what a teacher's vectors of `teacher_texts`, (n, dim), make of targets."""
        return examples

    def heads(self, head: "nn.Module") -> "list[SetHead]":
        """The objectives that have a head of their own: this one, or those of several sets."""
        return [SetHead("", self, head)]

    def set_of(self, batch: "Mapping[str, Any]") -> str:
        """The name of the set that a batch is of; empty where there is one set."""
        return ""

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
        """What a batch needs beside its vectors: by default ``targets``, those of its rows, (B,).

        Args:
            examples: All rows.
            rows: Those of the batch.
            columns: Which vector each row's texts have, (B, columns).
            texts: The number of the text of each vector, (N,).
        """
        import torch

        return {"targets": torch.from_numpy(examples.targets[rows])}

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


class SetHead(NamedTuple):
    """The layer of an objective.

    Attributes:
        name: The set that it is trained on; empty where there is one.
        objective: What it belongs to.
        module: The layer itself.
    """

    name: str
    objective: Objective
    module: "nn.Module"
