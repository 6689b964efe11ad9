"""Whole-word masking: all tokens of a word are predicted together."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sbertkit.arguments import refuses_unknown
from sbertkit.errors import InputError
from sbertkit.settings import setting
from sbertkit.training.pretraining.tasks.masking import MaskingTask, Unit, whole_words

if TYPE_CHECKING:
    import numpy as np

    from sbertkit.encoder import Encoder
    from sbertkit.training.examples import Int64
    from sbertkit.training.pretraining.pieces import Pieces


@refuses_unknown
@dataclass(frozen=True, slots=True)
class MaskedWords(MaskingTask):
    """Whole words are chosen in random order until the share of tokens is reached.

    The loss is that of `MaskedTokens`. The word that would exceed the share is chosen with the
    probability that keeps the mean.

    With `similar` a chosen word of one token is replaced by a similar word in place of the mask
    token, by the cosine of the encoder's own input embeddings; words of several tokens, and those
    without a similar one, by random tokens.

    Source: the whole-word models of Devlin et al., https://github.com/google-research/bert, 2019;
        Cui et al. 2021, Pre-Training with Whole Word Masking for Chinese BERT, section 3 (words of
        Chinese); Cui et al. 2020, MacBERT, section 3.1 (similar words).
    """

    similar: bool = setting(
        False, "Similar words in place of the mask token, as MacBERT; random ones where none is."
    )

    name: ClassVar[str] = "wwm"
    summary: ClassVar[str] = (
        "whole words were replaced, and the encoder learned to predict their tokens from the others"
    )
    formula: ClassVar[str] = "mean over i in M of -log p(x_i; x~)"
    source: ClassVar[str] = "Cui et al. 2021, section 3"

    def check_pieces(self, pieces: "Pieces") -> None:
        """Nothing, if some word has several tokens, or words are replaced by similar ones."""
        if self.similar:
            return
        for words in pieces.words:
            own = words[words >= 0]
            if (own[1:] == own[:-1]).any():
                return
        raise InputError(
            f"the task {self.name} masks whole words, but no word of the corpus has more than one "
            "token; choose --task mlm, which is the same then"
        )

    def prepared(self, encoder: "Encoder", pieces: "Pieces") -> MaskingTask:
        """The same with the vocabulary and, where they are wanted, similar words."""
        made = MaskingTask.prepared(self, encoder, pieces)
        if not self.similar or made.vocabulary is None:
            return made
        import numpy as np

        from sbertkit.training.pretraining.vocabulary import similar_tokens

        used = np.unique(np.concatenate([tokens.ids for tokens in pieces.tokens]))
        return replace(made, similar_to=similar_tokens(encoder, made.vocabulary, used))

    def units(self, words: "Int64", random: "np.random.Generator") -> list[Unit]:
        """Each chosen word is a unit."""
        return whole_words(words, self.budget(words, random), random)

    def in_place_of(self, ids: "Int64", random: "np.random.Generator") -> "Int64 | int":
        """The mask token, or a similar word."""
        if self.similar_to is None or self.vocabulary is None:
            return MaskingTask.in_place_of(self, ids, random)
        near = self.similar_to.get(int(ids[0])) if len(ids) == 1 else None
        chosen = self.vocabulary.ordinary if near is None else near
        return random.choice(chosen, len(ids))
