"""The contrastive objective with in-batch and hard negatives."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sbertkit.data.nli import NLI_LABELS, NliSet
from sbertkit.errors import InputError
from sbertkit.training.examples import NONE, Examples, Int64, TextTable
from sbertkit.training.objectives.base import ObjectiveKind

logger = logging.getLogger(__name__)

_ENTAILMENT = NLI_LABELS.index("entailment")
_CONTRADICTION = NLI_LABELS.index("contradiction")


class Contrastive(nn.Module):
    """Cross-entropy of finding the right text among those of the batch, in both directions.

    For an anchor a with positive p, and C the positives and hard negatives of the batch:
    ``-log(exp(cos(a, p) / t) / sum over c in C of exp(cos(a, c) / t))``; the other direction
    finds a among the anchors of the batch, given p; the loss is the mean of both. Anchor and
    positive are premise and hypothesis of an entailment, the hard negative is a contradiction of
    the same premise. A text that equals the anchor, or that the anchor entails anywhere in the
    data, is never a negative.

    Source: Gao et al. 2021, SimCSE, equation 5 (hard negatives); Radford et al. 2021, CLIP,
        figure 3 (both directions); Henderson et al. 2017, section 4.4 (in-batch negatives).

    Args:
        temperature: t above.
    """

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature
        self._entailed: dict[int, set[int]] = {}

    def examples(self, data: NliSet, table: TextTable) -> Examples:
        """One row an entailment: premise, hypothesis, and a contradiction of the same premise.

        The contradictions of a premise are dealt out to its entailments in turn.

        Raises:
            InputError: No entailment, or those of one premise alone without a contradiction.
        """
        entailed: dict[int, dict[int, None]] = defaultdict(dict)  # as ordered sets
        contradicted: dict[int, dict[int, None]] = defaultdict(dict)
        for pair in data.pairs:
            if pair.label in (_ENTAILMENT, _CONTRADICTION):
                premise, hypothesis = table.numbers((pair.premise, pair.hypothesis))
                kind = entailed if pair.label == _ENTAILMENT else contradicted
                if premise != hypothesis:
                    kind[premise][hypothesis] = None
        rows = []
        for premise, hypotheses in entailed.items():
            negatives = [text for text in contradicted[premise] if text not in hypotheses]
            for place, hypothesis in enumerate(hypotheses):
                negative = negatives[place % len(negatives)] if negatives else NONE
                rows.append((premise, hypothesis, negative))
        texts = np.array(rows, dtype=np.int64).reshape(-1, 3)
        self._check(texts)
        self._entailed = {premise: set(hypotheses) for premise, hypotheses in entailed.items()}
        return Examples(texts, np.zeros(len(texts)), texts[:, 0])

    def collate(
        self, examples: Examples, rows: Sequence[int], columns: Int64, texts: Int64
    ) -> dict[str, Tensor]:
        """Candidates of both directions, which of them count, and the right ones.

        ``candidates`` (C,) are places of positives and hard negatives, ``allowed`` (B, C) says
        which an anchor is told from, ``right`` (B,) where its positive stands; ``anchors`` (A,),
        ``anchors_allowed`` (B, A) and ``right_anchors`` (B,) are the same for the other direction.
        """
        anchors, positives = columns[:, 0], columns[:, 1]
        others = columns[:, 1:]
        candidates, distinct_anchors = np.unique(others[others != NONE]), np.unique(anchors)
        right = np.searchsorted(candidates, positives)
        right_anchors = np.searchsorted(distinct_anchors, anchors)
        allowed = ~self._alike(texts[anchors], texts[candidates])
        back_allowed = ~self._alike(texts[distinct_anchors], texts[positives]).T
        batch = np.arange(len(rows))
        allowed[batch, right] = True
        back_allowed[batch, right_anchors] = True
        arrays = {
            "candidates": candidates,
            "allowed": allowed,
            "right": right,
            "anchors": distinct_anchors,
            "anchors_allowed": back_allowed,
            "right_anchors": right_anchors,
        }
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def loss(self, vectors: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
        """The mean of the losses of both directions."""
        unit = nn.functional.normalize(vectors, dim=1)
        anchors, positives = batch["columns"][:, 0], batch["columns"][:, 1]
        forth = unit[anchors] @ unit[batch["candidates"]].T / self.temperature  # (B, C)
        back = unit[positives] @ unit[batch["anchors"]].T / self.temperature  # (B, A)
        forth = forth.masked_fill(~batch["allowed"], -torch.inf)
        back = back.masked_fill(~batch["anchors_allowed"], -torch.inf)
        return (
            nn.functional.cross_entropy(forth, batch["right"])
            + nn.functional.cross_entropy(back, batch["right_anchors"])
        ) / 2

    def _alike(self, anchors: Int64, texts: Int64) -> npt.NDArray[np.bool_]:
        """Whether each anchor equals or entails each text, (anchors, texts)."""
        alike: npt.NDArray[np.bool_] = anchors[:, None] == texts[None, :]
        for row, anchor in enumerate(anchors.tolist()):
            alike[row] |= np.isin(texts, list(self._entailed.get(anchor, ())))
        return alike

    def _check(self, texts: Int64) -> None:
        if not len(texts):
            raise InputError(
                "the objective contrastive needs pairs labelled entailment, found none; add such "
                "data or choose --objective softmax"
            )
        with_negative = int((texts[:, 2] != NONE).sum())
        if len(np.unique(texts[:, 0])) == 1 and not with_negative:
            raise InputError(
                "the objective contrastive needs something to tell entailments from, found one "
                "premise and no contradiction of it; add data"
            )
        if not with_negative:
            logger.warning(
                "no premise has both an entailment and a contradiction: training on in-batch "
                "negatives alone"
            )


KIND = ObjectiveKind(
    "contrastive",
    lambda _, config: Contrastive(config.temperature),
    normalize=True,
    learning_rate=5e-5,
    unit="triplets",
)
"""The rate is the one of supervised SimCSE (Gao et al. 2021, appendix A)."""
