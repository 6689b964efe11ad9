"""The contrastive objective with in-batch and hard negatives."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.data_forms import NLI, PAIRS, DataForm, TrainingData
from sbertkit.training.objectives.base import Objective

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.arrays import Vectors
    from sbertkit.training.examples import Examples, Int64, TextTable

logger = logging.getLogger(__name__)

_REMEDY = (
    "raise batch_size (--batch-size), add hard negatives or other pairs, or choose another "
    "objective (--objective)"
)


@refuses_unknown
@dataclass(frozen=True, slots=True)
class Contrastive(Objective):
    """Cross-entropy of finding the right text among those of the batch, in both directions.

    For an anchor a with positive p, and C the positives and hard negatives of the batch:
    ``-log(exp(cos(a, p) / t) / sum over c in C of exp(cos(a, c) / t))``; the other direction
    finds a among the anchors of the batch, given p; the loss is the mean of both. Of NLI
    data, anchor and positive are premise and hypothesis of an entailment, the hard negative is a
    contradiction of the same premise. A false negative, a text that equals the anchor or is a
    positive of it anywhere in the data, does not count as a negative.

    With a guide, an encoder with cosines g, no c counts for a with ``g(a, c) > g(a, p)``, and no
    anchor b for p with ``g(b, p) > g(a, p)``. Anchors are compared with no anchors, positives with
    no positives: what sentence-transformers' GISTEmbedLoss calls ``contrast_anchors=False`` and
    ``contrast_positives=False``.

    Source: Gao et al. 2021, SimCSE, equation 5 (hard negatives) and appendix A (learning rate);
        Radford et al. 2021, CLIP, figure 3 (both directions); Henderson et al. 2017, section 4.4
        (in-batch negatives); Solatorio 2024, GISTEmbed, section 3 (guide).
    """

    temperature: float = setting(0.05, "Cosines are divided by it.", above=0)
    hard_negatives: int | None = setting(
        None, "Hard negatives per example at most; by default 1 of NLI data, all of pairs."
    )
    guide: str | None = setting(
        None,
        "An encoder: what it finds nearer to an anchor than its positive is no negative.",
        metavar="MODEL",
    )

    name: ClassVar[str] = "contrastive"
    data_forms: ClassVar[tuple[DataForm, ...]] = (NLI, PAIRS)
    normalize: ClassVar[bool] = True
    learning_rate: ClassVar[float] = 5e-5
    summary: ClassVar[str] = (
        "a text was drawn to the one that belongs to it and pushed away from the others of its "
        "batch and from hard negatives, such as a text that contradicts it"
    )
    formula: ClassVar[str] = "-log(exp(cos(a, p) / t) / sum over c in C of exp(cos(a, c) / t))"
    source: ClassVar[str] = "Gao et al. 2021, SimCSE, equation 5"
    model_option: ClassVar[str] = "guide"

    def model_fingerprint(self) -> str:
        """That of the guide."""
        from sbertkit.training.guide import guide_fingerprint

        return guide_fingerprint(str(self.guide))

    def examples(self, data: TrainingData, table: "TextTable") -> "Examples":
        """One row per positive: anchor, positive, and hard negatives of the anchor.

        The negatives of an anchor are assigned to its positives in turn. Of NLI data a premise is
        the anchor, what it entails the positive, and what contradicts it the negative.

        Raises:
            InputError: No positive of two different texts.
        """
        import numpy as np

        from sbertkit.training.anchors import by_anchor
        from sbertkit.training.examples import NO_TEXT, Examples

        found = by_anchor(data, table)
        limit = self.hard_negatives or data.form.hard_negatives
        rows = []
        for anchor, positives in found.positives.items():
            negatives = found.negatives[anchor]
            for place, positive in enumerate(positives):
                own = _in_turn(negatives, place, len(positives))[:limit]
                rows.append((anchor, positive, *own))
        _check_examples(rows, found.left_out, data.form)
        texts = np.full((len(rows), max(3, *map(len, rows))), NO_TEXT, np.int64)
        for number, row in enumerate(rows):
            texts[number, : len(row)] = row
        guide = None
        if self.guide is not None:
            from sbertkit.training.guide import Guide

            guide = Guide.of(self.guide, texts, table, queries=data.form.queries)
        targets = np.zeros(len(texts))
        return Examples(texts, targets, texts[:, 0], found.never, found.left_out, guide=guide)

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
        import torch

        arrays = _choices(examples, columns, texts)
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


def _in_turn(negatives: list[int], place: int, positives: int) -> list[int]:
    """The share of the positive at a place among so many: one at least, where there is any."""
    own = negatives[place::positives]
    return own if own or not negatives else [negatives[place % len(negatives)]]


def _choices(
    examples: "Examples", columns: "Int64", texts: "Int64"
) -> "dict[str, npt.NDArray[np.generic]]":
    """What `Contrastive.collate` gives, as arrays."""
    import numpy as np

    from sbertkit.training.examples import NO_TEXT

    anchors, positives, others = columns[:, 0], columns[:, 1], columns[:, 1:]
    candidates, distinct_anchors = np.unique(others[others != NO_TEXT]), np.unique(anchors)
    right = np.searchsorted(candidates, positives)
    right_anchors = np.searchsorted(distinct_anchors, anchors)
    allowed = ~_false_negatives(examples, texts[anchors], texts[candidates])
    anchors_allowed = ~_false_negatives(examples, texts[distinct_anchors], texts[positives]).T
    if examples.guide is not None:
        cosines = examples.guide.cosines(texts[anchors], texts[candidates])
        allowed &= _not_above(cosines, right)
        cosines = examples.guide.cosines(texts[distinct_anchors], texts[positives])
        anchors_allowed &= _not_above(cosines.T, right_anchors)
    batch = np.arange(len(columns))
    allowed[batch, right] = True
    anchors_allowed[batch, right_anchors] = True
    return {
        "candidates": candidates,
        "allowed": allowed,
        "right": right,
        "anchors": distinct_anchors,
        "anchors_allowed": anchors_allowed,
        "right_anchors": right_anchors,
    }


def _false_negatives(
    examples: "Examples", anchors: "Int64", texts: "Int64"
) -> "npt.NDArray[np.bool_]":
    """Whether each anchor equals or entails each text, (anchors, texts)."""
    import numpy as np

    found: npt.NDArray[np.bool_] = anchors[:, None] == texts[None, :]
    for row, anchor in enumerate(anchors.tolist()):
        found[row] |= np.isin(texts, list(examples.positives.get(anchor, ())))
    return found


def _not_above(cosines: "Vectors", right: "Int64") -> "npt.NDArray[np.bool_]":
    """Which cosines of each row, (B, C), are at most that of the right one."""
    import numpy as np

    kept: npt.NDArray[np.bool_] = cosines <= cosines[np.arange(len(right)), right][:, None]
    return kept


def _has_negative(examples: "Examples", rows: Sequence[int]) -> bool:
    """Whether a batch of those rows has any text to tell a positive or an anchor from."""
    import numpy as np

    from sbertkit.training.examples import NO_TEXT

    texts = examples.texts[rows]  # (B, columns)
    if examples.guide is not None:
        distinct, places = np.unique(texts, return_inverse=True)
        shift = int(distinct[0] == NO_TEXT)  # so that no text keeps its number
        found = _choices(examples, places.reshape(texts.shape) - shift, distinct[shift:])
        return any(found[name].sum() > len(rows) for name in ("allowed", "anchors_allowed"))
    if (texts[:, 2:] != NO_TEXT).any():  # each is one of its own anchor
        return True
    anchors, positives = set(texts[:, 0].tolist()), set(texts[:, 1].tolist())
    return any(
        anchor != positive and positive not in examples.positives[anchor]
        for anchor in anchors
        for positive in positives
    )


def _check_examples(
    rows: Sequence[tuple[int, ...]], left_out: Mapping[str, int], form: DataForm
) -> None:
    """Refuses no examples; warns of rows left out, and where no example has a hard negative."""
    counted = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    if not rows:
        rest = f" ({counted})" if counted else ""
        raise InputError(
            f"the objective contrastive needs pairs labeled {form.labels[form.positive]} of two "
            f"different texts, found none{rest}; add such data or choose another objective "
            "(--objective)"
        )
    if counted:
        logger.warning("rows that the objective contrastive leaves out: %s", counted)
    if all(len(row) == 2 for row in rows):
        logger.warning("no example has a hard negative: training on in-batch negatives alone")
