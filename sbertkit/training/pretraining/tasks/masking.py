"""What the tasks have in common that mask tokens and predict them."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.base import PretrainingTask, TaskLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from sbertkit.encoder import Encoder
    from sbertkit.encoder.batching import BatchCollator
    from sbertkit.training.examples import Int64
    from sbertkit.training.pretraining.draws import Draws
    from sbertkit.training.pretraining.pieces import Example, Pieces
    from sbertkit.training.pretraining.vocabulary import Vocabulary

LM_HEAD = "masked-lm"
"""The name of the head that predicts tokens, which all these tasks share."""


class Unit(NamedTuple):
    """Tokens that are masked together.

    Attributes:
        places: Where they are in their example, rising, (n,).
        before: The place of the token before the span that they are of.
        after: That of the token after it.
        first: The place of the span's first token.
    """

    places: "Int64"
    before: int
    after: int
    first: int


class Masked(NamedTuple):
    """An example whose tokens were chosen.

    Attributes:
        ids: Token ids with what replaces them, (T,).
        places: Of the chosen ones, (n,).
        spans: `before`, `after` and the distance from `first` of each chosen one, (n, 3).
    """

    ids: "Int64"
    places: "Int64"
    spans: "Int64"


@dataclass(frozen=True, slots=True)
class MaskingTask(PretrainingTask):
    """A task that masks a share of the tokens; a subclass says which ones belong together.

    The number of chosen tokens is the share times the tokens of the example, rounded up or down
    with the probability that keeps the mean, so that the share of many tokens is exact. Of the
    units 80 % become the mask token, 10 % random tokens, 10 % stay: a sequence that is spread
    evenly (the golden ratio's) decides, so that the shares of few units are close to it, too.

    Source: Devlin et al. 2019, BERT, section 3.1 and appendix A.1.

    Attributes:
        masked_share: Share of the units that become the mask token.
        random_share: Share of those that become random tokens.
        with_segments: Whether it may mask pairs of segments that are classified, too.
    """

    mask: float = setting(0.15, "Share of tokens that is predicted.", above=0, maximum=0.9)
    static: int | None = setting(
        None,
        "So many maskings of each example that are drawn once and take turns, as BERT had 10; by "
        "default others in every epoch, as RoBERTa has.",
    )
    vocabulary: "Vocabulary | None" = field(default=None, compare=False)
    similar_to: "dict[int, Int64] | None" = field(default=None, compare=False)

    masked_share: ClassVar[float] = 0.8
    random_share: ClassVar[float] = 0.1
    with_segments: ClassVar[bool] = True
    other_families: ClassVar[dict[str, str]] = {
        "xlnet": "it was pretrained by predicting tokens in a random order and never saw a mask",
    }

    def check_base(self, encoder: "Encoder") -> None:
        """Nothing, if the encoder has a mask token."""
        from sbertkit.training.pretraining.vocabulary import check_mask

        check_mask(encoder)

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if some text has two tokens."""
        pieces.check_two_tokens(self.name)

    def prepared(self, encoder: "Encoder", pieces: "Pieces") -> "MaskingTask":
        """The same with the vocabulary of the encoder, which is not trained yet."""
        from sbertkit.training.pretraining.vocabulary import Vocabulary

        return replace(self, vocabulary=Vocabulary.of(encoder))

    def units(self, words: "Int64", random: "np.random.Generator") -> list[Unit]:
        """The units of an example that are chosen.

        Args:
            words: The number of each token's word; -1 for special tokens, (T,).
            random: Where random numbers come from.
        """
        raise NotImplementedError

    def budget(self, words: "Int64", random: "np.random.Generator") -> int:
        """How many tokens of an example are chosen."""
        return int(self.mask * (words >= 0).sum() + random.random())

    def masked(
        self, ids: "npt.NDArray[np.integer]", words: "Int64", random: "np.random.Generator"
    ) -> Masked:
        """An example with what replaces the chosen tokens."""
        import numpy as np

        from sbertkit.training.pretraining.draws import spread

        if self.vocabulary is None:
            raise InputError(f"the task {self.name} needs a vocabulary; train with adapt")
        own: Int64 = np.array(ids, np.int64)
        replaced, places, spans = own.copy(), [], []
        start = random.random()
        for number, unit in enumerate(self.units(words, random)):
            chance = spread(start, number)
            at = unit.places
            if chance < self.masked_share:
                replaced[at] = self.in_place_of(own[at], random)
            elif chance < self.masked_share + self.random_share:
                replaced[at] = random.choice(self.vocabulary.ordinary, len(at))
            places.append(at)
            ends = np.full(len(at), unit.before), np.full(len(at), unit.after)
            spans.append(np.stack((*ends, at - unit.first), axis=1))
        if not places:
            return Masked(replaced, np.empty(0, np.int64), np.empty((0, 3), np.int64))
        return Masked(replaced, np.concatenate(places), np.concatenate(spans))

    def in_place_of(self, ids: "Int64", random: "np.random.Generator") -> "Int64 | int":
        """What stands for the tokens of a unit that are to be predicted: the mask token."""
        return 0 if self.vocabulary is None else self.vocabulary.mask

    def repeated(self, draws: "Draws") -> "Draws":
        """The draws of an epoch, or with `static` those of one of the first ones."""
        return draws if self.static is None else draws.among(self.static)

    def tensors_of(
        self, examples: "Sequence[Example]", padder: "BatchCollator", draws: "Draws"
    ) -> "dict[str, Tensor]":
        """Padded examples; ``places`` of what is predicted among all B × T tokens, ``targets``."""
        import numpy as np
        import torch

        from sbertkit.training.pretraining.pieces import padded

        made = [self.masked(one.ids, one.words, draws.random(one.ids)) for one in examples]
        replaced = [
            one._replace(ids=m.ids.astype(np.int32)) for one, m in zip(examples, made, strict=True)
        ]
        batch = padded(replaced, padder)
        width = batch["input_ids"].shape[1]
        left = padder.side == "left"
        starts = [
            row * width + (width - len(one.ids) if left else 0) for row, one in enumerate(made)
        ]
        arrays = {
            "places": np.concatenate([s + m.places for s, m in zip(starts, made, strict=True)]),
            "targets": np.concatenate(
                [one.ids[m.places] for one, m in zip(examples, made, strict=True)]
            ).astype(np.int64),
            "spans": np.concatenate(
                [m.spans + np.array((s, s, 0)) for s, m in zip(starts, made, strict=True)]
            ),
        }
        return batch | {name: torch.from_numpy(array) for name, array in arrays.items()}

    def task_head(self, encoder: "Encoder") -> "nn.ModuleDict":
        """The head that predicts tokens."""
        from torch import nn

        from sbertkit.training.pretraining.heads import lm_head

        return nn.ModuleDict({LM_HEAD: lm_head(encoder)})

    def states_loss(
        self, states: "Tensor", network: "nn.Module", batch: "dict[str, Any]", head: "nn.Module"
    ) -> TaskLoss:
        """The mean cross-entropy of the chosen tokens."""
        from sbertkit.training.pretraining.heads import predicted

        return predicted(
            head.get_submodule(LM_HEAD), states[batch["places"]], network, batch["targets"]
        )


def whole_words(words: "Int64", budget: int, random: "np.random.Generator") -> list[Unit]:
    """Words in random order until a number of tokens is reached, each a unit.

    The word that would exceed it is chosen with the probability that keeps the mean.

    Args:
        words: The number of each token's word; -1 for special tokens, (T,).
        budget: The number of tokens.
        random: Where random numbers come from.
    """
    import numpy as np

    left = budget
    starts = np.flatnonzero((words >= 0) & np.r_[True, words[1:] != words[:-1]])
    sizes = np.bincount(words[words >= 0])
    chosen = []
    for word in random.permutation(len(starts)):
        size = int(sizes[words[starts[word]]])
        if size > left and random.random() * size >= left:
            break
        first = int(starts[word])
        places = np.arange(first, first + size)
        chosen.append(Unit(places, first - 1, first + size, first))
        left -= size
        if left <= 0:
            break
    return chosen
