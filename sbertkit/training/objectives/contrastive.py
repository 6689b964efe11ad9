"""The contrastive objective with in-batch and hard negatives."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import NLI, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.training.examples import Examples, Int64, TextTable

logger = logging.getLogger(__name__)

_REPEATED = "that repeat earlier ones"
_SAME_TEXT = "whose premise is their hypothesis"
_ENTAILED_TOO = "labeled contradiction whose pair is labeled entailment too"
"""Why rows are left out."""
_REMEDY = (
    "raise batch_size (--batch-size), add contradictions of the same premises or other pairs, or "
    "choose another objective (--objective), softmax"
)


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Contrastive(Objective):
    """Cross-entropy of finding the right text among those of the batch, in both directions.

    For an anchor a with positive p, and C the positives and hard negatives of the batch:
    ``-log(exp(cos(a, p) / t) / sum over c in C of exp(cos(a, c) / t))``; the other direction
    finds a among the anchors of the batch, given p; the loss is the mean of both. Anchor and
    positive are premise and hypothesis of an entailment, the hard negative is a contradiction of
    the same premise. A false negative, a text that equals the anchor or that the anchor entails
    anywhere in the data, does not count as a negative.

    Source: Gao et al. 2021, SimCSE, equation 5 (hard negatives) and appendix A (learning rate);
        Radford et al. 2021, CLIP, figure 3 (both directions); Henderson et al. 2017, section 4.4
        (in-batch negatives).
    """

    temperature: float = setting(0.05, "Cosines are divided by it.", above=0)

    name: ClassVar[str] = "contrastive"
    data_forms: ClassVar[tuple[DataForm, ...]] = (NLI,)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 5e-5
    summary: ClassVar[str] = (
        "a text was drawn to the one that belongs to it and pushed away from the others of its "
        "batch and from hard negatives, such as a text that contradicts it"
    )
    formula: ClassVar[str] = "-log(exp(cos(a, p) / t) / sum over c in C of exp(cos(a, c) / t))"
    source: ClassVar[str] = "Gao et al. 2021, SimCSE, equation 5"

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per entailment: premise, hypothesis, and a contradiction of the same premise.

        The contradictions of a premise are assigned to its entailments in turn. Of entailments and
        contradictions, repeated pairs come once, and those of a text with itself not at all; a pair
        with both labels is an entailment.

        Raises:
            InputError: No entailment of two different texts.
        """
        import numpy as np

        from sbertkit.training.examples import NO_TEXT, Examples

        entailed: dict[int, dict[int, None]] = defaultdict(dict)  # as ordered sets
        contradicted: dict[int, dict[int, None]] = defaultdict(dict)
        left_out = Counter[str]()
        for row, label in zip(data.rows, data.label_numbers, strict=True):
            if label in (data.form.positive, data.form.negative):
                premise, hypothesis = table.numbers(row[:2])
                of_label = entailed if label == data.form.positive else contradicted
                if premise == hypothesis:
                    left_out[_SAME_TEXT] += 1
                elif hypothesis in of_label[premise]:
                    left_out[_REPEATED] += 1
                else:
                    of_label[premise][hypothesis] = None
        rows = []
        for premise, hypotheses in entailed.items():
            negatives = [text for text in contradicted[premise] if text not in hypotheses]
            left_out[_ENTAILED_TOO] += len(contradicted[premise]) - len(negatives)
            for place, hypothesis in enumerate(hypotheses):
                negative = negatives[place % len(negatives)] if negatives else NO_TEXT
                rows.append((premise, hypothesis, negative))
        left_out = +left_out  # without zeros
        _check_examples(rows, left_out)
        texts = np.array(rows, dtype=np.int64)
        positives = {premise: set(hypotheses) for premise, hypotheses in entailed.items()}
        return Examples(texts, np.zeros(len(texts)), texts[:, 0], positives, dict(left_out))

    def check_batches(self, examples: "Examples", batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if each batch has a negative, as `collate` counts them.

        Raises:
            InputError: No batch has one, so that the loss is 0 whatever the vectors are.
        """
        found = [_has_negative(examples, rows) for rows in batches]
        without = found.count(False)
        if without == len(found):
            raise InputError(
                "the objective contrastive needs something to tell entailments from, found no "
                f"negative in any of {without:,} batches ({len(examples):,} examples): each is one "
                f"example, or its premises entail all its hypotheses; {_REMEDY}"
            )
        if without:
            logger.warning(
                "%s of %s batches have no negative, and nothing is learned from them; %s",
                f"{without:,}",
                f"{len(found):,}",
                _REMEDY,
            )

    def collate(
        self, examples: "Examples", rows: Sequence[int], columns: "Int64", texts: "Int64"
    ) -> "dict[str, Tensor]":
        """Candidates of both directions, which of them count, and the right ones.

        ``candidates`` (C,) are the places of positives and hard negatives, ``allowed`` (B, C) says
        which of them count for an anchor, ``right`` (B,) where its positive is; ``anchors`` (A,),
        ``anchors_allowed`` (B, A) and ``right_anchors`` (B,) are the same for the other direction.
        """
        import numpy as np
        import torch

        from sbertkit.training.examples import NO_TEXT

        anchors, positives, others = columns[:, 0], columns[:, 1], columns[:, 1:]
        candidates, distinct_anchors = np.unique(others[others != NO_TEXT]), np.unique(anchors)
        right = np.searchsorted(candidates, positives)
        right_anchors = np.searchsorted(distinct_anchors, anchors)
        allowed = ~_false_negatives(examples, texts[anchors], texts[candidates])
        anchors_allowed = ~_false_negatives(examples, texts[distinct_anchors], texts[positives]).T
        batch = np.arange(len(rows))
        allowed[batch, right] = True
        anchors_allowed[batch, right_anchors] = True
        arrays = {
            "candidates": candidates,
            "allowed": allowed,
            "right": right,
            "anchors": distinct_anchors,
            "anchors_allowed": anchors_allowed,
            "right_anchors": right_anchors,
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def loss(self, vectors: "Tensor", batch: "Mapping[str, Tensor]", head: "nn.Module") -> "Tensor":
        """The mean of the losses of both directions."""
        import torch
        from torch.nn import functional

        unit = functional.normalize(vectors, dim=1)
        anchors, positives = unit[batch["columns"][:, 0]], unit[batch["columns"][:, 1]]
        to_candidates = anchors @ unit[batch["candidates"]].T / self.temperature  # (B, C)
        to_anchors = positives @ unit[batch["anchors"]].T / self.temperature  # (B, A)
        to_candidates = to_candidates.masked_fill(~batch["allowed"], -torch.inf)
        to_anchors = to_anchors.masked_fill(~batch["anchors_allowed"], -torch.inf)
        return (
            functional.cross_entropy(to_candidates, batch["right"])
            + functional.cross_entropy(to_anchors, batch["right_anchors"])
        ) / 2


def _false_negatives(
    examples: "Examples", anchors: "Int64", texts: "Int64"
) -> "npt.NDArray[np.bool_]":
    """Whether each anchor equals or entails each text, (anchors, texts)."""
    import numpy as np

    found: npt.NDArray[np.bool_] = anchors[:, None] == texts[None, :]
    for row, anchor in enumerate(anchors.tolist()):
        found[row] |= np.isin(texts, list(examples.positives.get(anchor, ())))
    return found


def _has_negative(examples: "Examples", rows: Sequence[int]) -> bool:
    """Whether a batch of those rows has any text to tell a positive or an anchor from."""
    from sbertkit.training.examples import NO_TEXT

    texts = examples.texts[rows]  # (B, 3)
    if (texts[:, 2] != NO_TEXT).any():  # each is one of its own anchor
        return True
    anchors, positives = set(texts[:, 0].tolist()), set(texts[:, 1].tolist())
    return any(
        anchor != positive and positive not in examples.positives[anchor]
        for anchor in anchors
        for positive in positives
    )


def _check_examples(rows: Sequence[tuple[int, int, int]], left_out: Mapping[str, int]) -> None:
    """Refuses no examples; warns of rows left out, and where no example has a hard negative."""
    from sbertkit.training.examples import NO_TEXT

    counted = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    if not rows:
        rest = f" ({counted})" if counted else ""
        raise InputError(
            "the objective contrastive needs pairs labeled entailment of two different texts, "
            f"found none{rest}; add such data or choose another objective (--objective), softmax"
        )
    if counted:
        logger.warning("rows that the objective contrastive leaves out: %s", counted)
    if all(negative == NO_TEXT for _, _, negative in rows):
        logger.warning(
            "no premise has both an entailment and a contradiction: training on in-batch "
            "negatives alone"
        )
