"""What training data looks like to a run, whatever it was read from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sbertkit.data.nli_labels import NLI_LABELS


@dataclass(frozen=True, slots=True)
class DataForm:
    """What a row of training data is: a tuple of texts, and a label where the form has labels.

    Attributes:
        key: As saved records have it.
        name: What rows are called in messages.
        texts: Texts per row; the first two are compared in reports of the space.
        task: ``embed`` where encoders of texts are trained on it, ``rerank`` where models that
            score pairs are.
        labels: The names of the label numbers, the one whose two texts are most similar first.
        positive: The label of a text that belongs to the other one of its row.
        negative: The label of a hard negative.
        hard_negatives: How many an example has; None for all.
        queries: Whether the first text of a row is a query, where encoders tell them apart.
        ordered: Whether labels in another order are a fault of the data.
        groups: The labels of each of several sets whose labels are ordered.
        settings: The settings of `TrainConfig` that not all forms have.
        expected_cosines: How the mean cosines of the labels should be ordered, for the model card.
        limits: What users of a model trained on such data should know, for the model card.
    """

    key: str
    name: str
    texts: int
    task: Literal["embed", "rerank"] = "embed"
    labels: tuple[str, ...] = ()
    positive: int = 0
    negative: int = 1
    hard_negatives: int | None = None
    queries: bool = False
    ordered: bool = True
    groups: tuple[tuple[str, ...], ...] = ()
    settings: tuple[str, ...] = ()
    expected_cosines: str = ""
    limits: str = ""

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """Labels whose order counts, each time that of the most similar texts first."""
        return self.groups or ((self.labels,) if self.ordered and self.labels else ())


NLI = DataForm(
    "nli",
    "pairs of premise and hypothesis with a label",
    2,
    labels=NLI_LABELS,
    positive=NLI_LABELS.index("entailment"),
    negative=NLI_LABELS.index("contradiction"),
    hard_negatives=1,
    settings=("normalize", "matryoshka", "merge_base", "labels"),
    expected_cosines="It should fall from entailment over neutral to contradiction.",
    limits="English NLI sets were written by crowd workers: they carry stereotypes about people, "
    "and their labels can often be guessed from one sentence alone. A model trained on them may "
    "learn both.",
)

SCORED = DataForm(
    "scored",
    "scored pairs of sentences",
    2,
    labels=("score above the mean", "other score"),
    settings=("normalize", "matryoshka", "merge_base", "scale"),
    expected_cosines="It should be higher for scores above the mean.",
    limits="Scores of similarity are opinions: people who were asked otherwise may disagree.",
)

PAIRS = DataForm(
    "pairs",
    "pairs of anchor and positive or negative",
    2,
    labels=("positive", "negative"),
    queries=True,
    ordered=False,  # hard negatives are those that the base finds nearer than a positive
    settings=("normalize", "matryoshka", "merge_base"),
    expected_cosines="It should be higher for positives than for negatives.",
    limits="What is near is what the pairs paired: such as questions with answers, or sentences "
    "with paraphrases.",
)

RANKING = DataForm(
    "ranking",
    "pairs of query and document with a label",
    2,
    task="rerank",
    labels=("relevant", "other"),
    expected_cosines="It should be higher for relevant documents than for others.",
    limits="It orders documents; its scores of different queries need not be comparable.",
)

_TEACHER_LIMITS = "What it knows is what its teacher knew of such texts, its mistakes too."

TEXTS = DataForm("texts", "texts", 1, settings=("normalize", "merge_base"), limits=_TEACHER_LIMITS)

TEXT_PAIRS = DataForm(
    "text-pairs",
    "pairs of texts",
    2,
    settings=("normalize", "matryoshka", "merge_base"),
    limits=_TEACHER_LIMITS,
)

PARALLEL = DataForm(
    "parallel",
    "sentences with a translation",
    2,
    labels=("translation",),
    settings=("normalize", "merge_base"),
    expected_cosines="It should rise towards 1.",
    limits=_TEACHER_LIMITS,
)

UNLABELED = DataForm(
    "unlabeled",
    "texts without labels",
    1,
    settings=("merge_base", "batch_tokens"),
    limits="It was trained to predict tokens, not to place texts of similar meaning near each "
    "other: train it on pairs afterwards.",
)

DISTILLED = (TEXTS, TEXT_PAIRS, PARALLEL)
"""The forms of data that `distill` takes."""

SEVERAL = DataForm(
    "several",
    "several sets",
    2,
    ordered=False,
    settings=("normalize", "matryoshka", "merge_base", "labels", "scale", "sampling"),
)
"""Rows of other forms, each a `SetRow`; their labels are those of each set."""

FORMS = {form.key: form for form in (NLI, SCORED, PAIRS, RANKING, *DISTILLED, UNLABELED, SEVERAL)}
FORM_SETTINGS = tuple(dict.fromkeys(name for form in FORMS.values() for name in form.settings))


class ScoredPair(NamedTuple):
    """A row of `SCORED`.

    Attributes:
        first: A sentence.
        second: Another one.
        group: 0 for a score above the mean of all rows, 1 for another.
        score: How similar they are, from 0 to 1.
    """

    first: str
    second: str
    group: int
    score: float


class SetRow(NamedTuple):
    """A row of `SEVERAL`.

    Attributes:
        first: The first text of the row.
        second: The second one.
        label: The number of its label among those of all sets.
        number: The number of its set.
        row: The row itself, in the form of its set.
    """

    first: str
    second: str
    label: int
    number: int
    row: tuple[Any, ...]


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
        held_out: Further rows, which are not trained on.
    """

    form: DataForm
    rows: Sequence[tuple[Any, ...]]
    sources: tuple[DataSource, ...] = ()
    overlapping: int = 0
    held_out: Sequence[tuple[Any, ...]] = ()

    @property
    def label_numbers(self) -> list[int]:
        """The label of each row; 0 for all where the form has no labels."""
        place = self.form.texts
        return [row[place] if self.form.labels else 0 for row in self.rows]

    @property
    def first_texts(self) -> list[int]:
        """A number for the first text of each row, the same for the same text."""
        numbers: dict[str, int] = {}
        return [numbers.setdefault(row[0], len(numbers)) for row in self.rows]

    @property
    def counts(self) -> dict[str, int]:
        """Rows by the names of their labels."""
        found = Counter(self.label_numbers)
        return {name: found[number] for number, name in enumerate(self.form.labels)}
