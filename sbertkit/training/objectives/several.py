"""Several sets with an objective each."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import SEVERAL, DataForm, SetRow, TrainingData
from sbertkit.training.objectives.base import Objective, SetHead

if TYPE_CHECKING:
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, Int64, TextTable

logger = logging.getLogger(__name__)


class SetObjective(NamedTuple):
    """A set's name, the form of its data, and what is optimized on it."""

    name: str
    form: DataForm
    objective: Objective


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Several(Objective):
    """The loss of each batch is that of the set it is of.

    ``L_i(b) for a batch b of set i``, each loss as its own objective has it.

    Source: Liu et al. 2019, Multi-Task Deep Neural Networks for Natural Language Understanding,
        algorithm 1.
    """

    parts: tuple[SetObjective, ...] = ()

    name: ClassVar[str] = "several"
    data_forms: ClassVar[tuple[DataForm, ...]] = (SEVERAL,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 2e-5
    summary: ClassVar[str] = "each batch was of one of several sets, with the objective of that set"
    formula: ClassVar[str] = "L_i(b) for a batch b of set i"
    source: ClassVar[str] = (
        "Liu et al. 2019, Multi-Task Deep Neural Networks for Natural Language Understanding, "
        "algorithm 1"
    )

    @property
    def options(self) -> dict[str, Any]:
        """Form, objective and options of each set, with the name of the set before them."""
        return {
            f"{part.name}: {key}": value
            for part in self.parts
            for key, value in (
                ("form", part.form.key),
                ("objective", part.objective.name),
                *part.objective.options.items(),
            )
        }

    def with_defaults(self, config: TrainConfig) -> TrainConfig:
        """The lowest of the learning rates; unit length where that suits all."""
        own = [part.objective.with_defaults(config) for part in self.parts]
        return replace(
            config,
            learning_rate=min(one.learning_rate or 0.0 for one in own),
            normalize=all(one.normalize for one in own),
        )

    def loaded(self, config: TrainConfig) -> "Several":
        """The same with what its objectives have to know of teachers.

        Raises:
            InputError: A teacher cannot be loaded.
        """
        parts = (part._replace(objective=part.objective.loaded(config)) for part in self.parts)
        return replace(self, parts=tuple(parts))

    def heads(self, head: "nn.Module") -> list[SetHead]:
        """The objective of each set with its head."""
        return [
            SetHead(part.name, part.objective, module)
            for part, module in zip(self.parts, head.children(), strict=True)
        ]

    def set_of(self, batch: "Mapping[str, Any]") -> str:
        """The name of the set that a batch is of."""
        return self.parts[int(batch["set"])].name

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """The examples of each set.

        Raises:
            InputError: A set has nothing that its objective can use.
        """
        from sbertkit.training.examples import joined

        rows: list[list[tuple[Any, ...]]] = [[] for _ in self.parts]
        for row in (SetRow(*one) for one in data.rows):
            rows[row.number].append(row.row)
        found: list[Examples] = []
        left_out: dict[str, int] = {}
        for part, own in zip(self.parts, rows, strict=True):
            with of_set(part.name):
                found.append(part.objective.examples(TrainingData(part.form, own), table))
            left_out |= {f"{why} ({part.name})": n for why, n in found[-1].left_out.items()}
        return replace(joined(found), left_out=left_out)

    def check_batches(self, examples: "Examples", batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if batches of each set teach anything; a warning of sets without a batch.

        Raises:
            InputError: Those of a set teach nothing.
        """
        by_set: list[list[list[int]]] = [[] for _ in self.parts]
        for rows in batches:
            number, own = examples.of_part(rows)
            by_set[number].append(own)
        for part, own_examples, own_batches in zip(self.parts, examples.parts, by_set, strict=True):
            if not own_batches:
                logger.warning("the run is too short for a batch of the set %s", part.name)
                continue
            with of_set(part.name):
                part.objective.check_batches(own_examples, own_batches)

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """What the objective of the set needs, its ``columns``, and the number of the ``set``."""
        import torch

        number, own_rows = examples.of_part(rows)
        own = examples.parts[number]
        columns = columns[:, : own.texts.shape[1]]
        more = self.parts[number].objective.collate(own, own_rows, columns, texts)
        return {**more, "columns": torch.from_numpy(columns), "set": torch.tensor(number)}

    def make_head(self, dim: int) -> "nn.Module":
        """A head for each set."""
        from torch import nn

        return nn.ModuleList(part.objective.make_head(dim) for part in self.parts)

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The loss of the set that the batch is of."""
        of_batch = self.heads(head)[int(batch["set"])]
        return of_batch.objective.loss(vectors, batch, of_batch.module)


@contextmanager
def of_set(name: str) -> Iterator[None]:
    """Puts the name of a set before the messages of refusals in the block.

    Raises:
        InputError: Whatever was refused.
    """
    try:
        yield
    except InputError as error:
        raise InputError(f"the set {name}: {error}") from error
