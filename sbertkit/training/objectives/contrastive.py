"""The contrastive objective with in-batch and hard negatives."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

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

_REPEATED = "that repeat earlier ones"
_SAME_TEXT = "whose premise is their hypothesis"
_ENTAILED_TOO = "labelled contradiction whose pair is labelled entailment too"
"""Why rows are left out."""
_REMEDY = (
    "raise batch_size (--batch-size), add contradictions of the same premises or other pairs, or "
    "choose --objective softmax"
)


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

        The contradictions of a premise are dealt out to its entailments in turn. Of entailments and
        contradictions, repeated pairs come once, and those of a text with itself not at all; a pair
        with both labels is an entailment.

        Raises:
            InputError: No entailment of two different texts.
        """
        entailed: dict[int, dict[int, None]] = defaultdict(dict)  # as ordered sets
        contradicted: dict[int, dict[int, None]] = defaultdict(dict)
        left_out = Counter[str]()
        for pair in data.pairs:
            if pair.label in (_ENTAILMENT, _CONTRADICTION):
                premise, hypothesis = table.numbers((pair.premise, pair.hypothesis))
                kind = entailed if pair.label == _ENTAILMENT else contradicted
                if premise == hypothesis:
                    left_out[_SAME_TEXT] += 1
                elif hypothesis in kind[premise]:
                    left_out[_REPEATED] += 1
                else:
                    kind[premise][hypothesis] = None
        rows = []
        for premise, hypotheses in entailed.items():
            negatives = [text for text in contradicted[premise] if text not in hypotheses]
            left_out[_ENTAILED_TOO] += len(contradicted[premise]) - len(negatives)
            for place, hypothesis in enumerate(hypotheses):
                negative = negatives[place % len(negatives)] if negatives else NONE
                rows.append((premise, hypothesis, negative))
        texts = np.array(rows, dtype=np.int64).reshape(-1, 3)
        left_out = +left_out  # without zeros
        _check(texts, left_out)
        self._entailed = {premise: set(hypotheses) for premise, hypotheses in entailed.items()}
        return Examples(texts, np.zeros(len(texts)), texts[:, 0], dict(left_out))

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

    def check_batches(self, examples: Examples, batches: Iterable[Sequence[int]]) -> None:
        """Nothing, if each batch has a text to tell a positive or an anchor from, in `allowed`.

        Raises:
            InputError: No batch has one, so that the loss is 0 whatever the vectors are.
        """
        found = [self._has_negative(examples.texts[rows]) for rows in batches]
        idle = found.count(False)
        if idle == len(found):
            raise InputError(
                "the objective contrastive needs something to tell entailments from, found no "
                f"negative in any of {idle:,} batches ({len(examples):,} examples): each is one "
                f"example, or its premises entail all its hypotheses; {_REMEDY}"
            )
        if idle:
            logger.warning(
                "%s of %s batches have no negative, and nothing is learned from them; %s",
                f"{idle:,}",
                f"{len(found):,}",
                _REMEDY,
            )

    def _has_negative(self, texts: Int64) -> bool:
        """Whether anything is allowed in a batch of those rows beside what is right, (B, 3)."""
        if (texts[:, 2] != NONE).any():  # each is one of its own anchor
            return True
        anchors, positives = set(texts[:, 0].tolist()), set(texts[:, 1].tolist())
        return any(
            anchor != positive and positive not in self._entailed[anchor]
            for anchor in anchors
            for positive in positives
        )

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


def _check(texts: Int64, left_out: Mapping[str, int]) -> None:
    """Refuses no examples; warns of rows left out, and where no example has a hard negative."""
    counted = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    if not len(texts):
        rest = f" ({counted})" if counted else ""
        raise InputError(
            "the objective contrastive needs pairs labelled entailment of two different texts, "
            f"found none{rest}; add such data or choose --objective softmax"
        )
    if counted:
        logger.warning("rows that the objective contrastive leaves out: %s", counted)
    if (texts[:, 2] == NONE).all():
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
