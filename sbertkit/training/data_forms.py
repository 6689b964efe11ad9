"""What training data looks like to a run, whatever it was read from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbertkit.data.nli_labels import NLI_LABELS


@dataclass(frozen=True, slots=True)
class DataForm:
    """What a row of training data is: a tuple of texts, and a label where the form has labels.

    Attributes:
        name: What rows are called in messages.
        texts: Texts per row; the first two are compared in reports of the space.
        labels: The names of the label numbers, the one whose two texts are most similar first.
        expected_cosines: How the mean cosines of the labels should be ordered, for the model card.
        limits: What users of a model trained on such data should know, for the model card.
    """

    name: str
    texts: int
    labels: tuple[str, ...] = ()
    expected_cosines: str = ""
    limits: str = ""


NLI = DataForm(
    "pairs of premise and hypothesis with a label",
    2,
    NLI_LABELS,
    "It should fall from entailment over neutral to contradiction.",
    "English NLI sets were written by crowd workers: they carry stereotypes about people, and "
    "their labels can often be guessed from one sentence alone. A model trained on them may learn "
    "both.",
)


RANKING = DataForm(
    "pairs of query and document with a label",
    2,
    ("relevant", "other"),
    "It should be higher for relevant documents than for others.",
    "It orders documents; its scores of different queries need not be comparable.",
)


@dataclass(frozen=True, slots=True)
class DataSource:
    """A file or folder that was read.

    Attributes:
        source: The path as it was given.
        sha256: A hash of its content.
        rows: Rows kept.
        skipped: Rows left out since they lack what the form needs.
        other_splits: Rows of other splits, left out.
    """

    source: str
    sha256: str
    rows: int
    skipped: int = 0
    other_splits: int = 0


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Rows to train on.

    Attributes:
        form: What a row is.
        rows: In the order of the sources.
        sources: Where they came from; none for rows that a caller made.
        overlapping: Rows left out since they are in the dev set.
    """

    form: DataForm
    rows: Sequence[tuple[Any, ...]]
    sources: tuple[DataSource, ...] = ()
    overlapping: int = 0

    @property
    def label_numbers(self) -> list[int]:
        """The label of each row; 0 for all where the form has no labels."""
        place = self.form.texts
        return [row[place] if self.form.labels else 0 for row in self.rows]

    @property
    def counts(self) -> dict[str, int]:
        """Rows by the names of their labels."""
        found = Counter(self.label_numbers)
        return {name: found[number] for number, name in enumerate(self.form.labels)}
