"""Positives and hard negatives of each anchor, from data of any form that has them."""

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sbertkit.training.data_forms import TrainingData

if TYPE_CHECKING:
    from sbertkit.training.examples import TextTable

_REPEATED = "that repeat earlier ones"
_SAME_TEXT = "of a text with itself"


class Anchored(NamedTuple):
    """Texts by their anchors, all as numbers of a table.

    Attributes:
        positives: The positives of each anchor, in the order of the data.
        negatives: The hard negatives of each of these anchors.
        never: What is no negative of an anchor: its positives, and itself as a document.
        left_out: Rows that are neither, by the reason.
    """

    positives: dict[int, list[int]]
    negatives: dict[int, list[int]]
    never: dict[int, set[int]]
    left_out: dict[str, int]


def by_anchor(data: TrainingData, table: "TextTable") -> Anchored:
    """The positives and negatives of each anchor, the first text of a row.

    Repeated pairs come once, and those of a text with itself not at all; a pair with both labels
    is a positive.

    Args:
        data: Rows of two texts with a label.
        table: Where the texts get their numbers.
    """
    form = data.form
    of_label: dict[int, dict[int, dict[int, None]]]  # the last as an ordered set
    of_label = {label: defaultdict(dict) for label in (form.positive, form.negative)}
    left_out = Counter[str]()
    itself: dict[int, str] = {}
    for (first, second, *_), label in zip(data.rows, data.label_numbers, strict=True):
        if label in of_label:
            (anchor,) = table.queries([first]) if form.queries else table.numbers([first])
            (text,) = table.numbers([second])
            itself[anchor] = first
            if first == second:
                left_out[_SAME_TEXT] += 1
            elif text in of_label[label][anchor]:
                left_out[_REPEATED] += 1
            else:
                of_label[label][anchor][text] = None
    positives = {anchor: list(texts) for anchor, texts in of_label[form.positive].items() if texts}
    never = {anchor: {*texts} for anchor, texts in positives.items()}
    negatives = {}
    names = form.labels[form.negative], form.labels[form.positive]
    for anchor in positives:
        found = of_label[form.negative].get(anchor, {})
        negatives[anchor] = [text for text in found if text not in never[anchor]]
        both = len(found) - len(negatives[anchor])
        left_out["labeled {} whose pair is labeled {} too".format(*names)] += both
        never[anchor] |= table.known([itself[anchor]])
    return Anchored(positives, negatives, never, dict(+left_out))
