"""Documents as pairs of segments, which are runs of consecutive sentences."""

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sbertkit.data.text_breaks import sentence_ends
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError
from sbertkit.training.examples import Int64
from sbertkit.training.pretraining.draws import Draws
from sbertkit.training.pretraining.pieces import ROOM, SPECIAL, Bare, Example, Pieces, cut, joined

SHORT = 0.1
"""Share of the pairs that are shorter than the model reads.

Source: Devlin et al. 2019, BERT, appendix A.2, and its ``short_seq_prob``; Lan et al. 2020, ALBERT,
    section 4.1.
"""
_TRIES = 64
"""So many segments of other documents are drawn for a pair."""


class Pair(NamedTuple):
    """Two segments of an example, and its class."""

    first: Bare
    second: Bare
    label: int


class _Run(NamedTuple):
    """Consecutive sentences of a document.

    Attributes:
        document: Its number, the same for the same text.
        tokens: All.
        ends: Where each sentence ends, (n,); there are two at least.
    """

    document: int
    tokens: Bare
    ends: Int64

    def sentence(self, number: int) -> npt.NDArray[np.integer]:
        """The token ids of a sentence."""
        start = self.ends[number - 1] if number else 0
        return self.tokens.ids[start : self.ends[number]]

    def divided(self, first: int) -> tuple[Bare, Bare]:
        """The first so many sentences, and the others."""
        at = int(self.ends[first - 1])
        ids, words = self.tokens
        return Bare(ids[:at], words[:at]), Bare(ids[at:], words[at:])


class SegmentPairs(Pieces):
    """Runs of consecutive sentences of documents, of which each becomes a pair of segments.

    A sentence ends where a line does, at the latest; a longer one than half of what the model
    reads is divided between words, so that no pair has to be truncated. A run is as long as the
    model reads, and a share of them shorter.

    Source: ``create_instances_from_document`` of https://github.com/google-research/bert, 2018.

    Args:
        encoder: Whose tokenizer, token limit and form of pairs apply.
        choose: Makes a pair of a numbered run; see `SegmentTask`.

    Raises:
        InputError: The tokenizer does not say where its tokens are, or has no form for pairs.
    """

    def __init__(
        self, encoder: Encoder, choose: "Callable[[SegmentPairs, int, Draws], Pair]"
    ) -> None:
        super().__init__(encoder)
        self._choose = choose
        self._template = encoder.spec.tokenizer.probe_pair()
        self._room = (encoder.max_tokens or ROOM) - len(self._template)
        if self._room < 2:
            raise InputError(
                f"max_tokens (--max-tokens) must leave room for two segments, found "
                f"{encoder.max_tokens}"
            )
        self._documents: dict[str, int] = {}
        self._follows: set[int] = set()
        self._runs: list[_Run] = []
        kinds = getattr(encoder.torch.transformer.model.config, "type_vocab_size", None)
        self._kinds = kinds or None  # a model without token types may say that it has none

    def read(self, texts: Iterable[str]) -> Int64:
        """The numbers of the runs of further documents, in their order."""
        first, single = len(self._runs), 0
        for text in texts:
            document = self._documents.setdefault(text, len(self._documents))
            sentences = list(self._sentences(text))
            self._follows.update(_key(a.ids, b.ids) for a, b in pairwise(sentences))
            runs = self._runs_of(sentences)
            single += not runs
            for run in runs:
                self._add_run(document, run)
        if single:
            self.left_out["since they have a single segment"] = single
        return np.arange(first, len(self._runs))

    def _add_run(self, document: int, sentences: list[Bare]) -> None:
        tokens = joined(sentences)
        before, after = self._template.before, self._template.after
        self._add(tokens, before, (*self._template.between, *after))
        inner = slice(len(before), len(before) + len(tokens.ids))
        view = Bare(self.tokens[-1].ids[inner], self.words[-1][inner])
        self._runs.append(_Run(document, view, np.cumsum([len(one.ids) for one in sentences])))

    def _sentences(self, text: str) -> Iterator[Bare]:
        """The sentences of a document that have tokens."""
        parts = []
        for line in text.splitlines():
            start = 0
            for end in (*sentence_ends(line), len(line)):
                parts.append(line[start:end].strip())
                start = end
        for whole in self._tokenized(filter(None, parts)):
            yield from cut(whole, self._room // 2)

    def _runs_of(self, sentences: list[Bare]) -> list[list[Bare]]:
        """Sentences as runs of two and more; a single one at the end goes to the run before."""
        ids = b"".join(one.ids.tobytes() for one in sentences)
        random = np.random.default_rng(zlib.crc32(ids))
        runs: list[list[Bare]] = []
        used = target = 0
        for one in sentences:
            if not runs or (len(runs[-1]) > 1 and used + len(one.ids) > target):
                runs.append([])
                used, short = 0, random.random() < SHORT
                target = int(random.integers(2, self._room + 1)) if short else self._room
            runs[-1].append(one)
            used += len(one.ids)
        if len(runs) > 1 and len(runs[-1]) == 1 and len(runs[-2]) > 2:
            runs[-1].insert(0, runs[-2].pop())
        return [run for run in runs if len(run) > 1]

    def example(self, number: int, draws: Draws) -> Example:
        """The pair of a run in an epoch."""
        first, second, label = self._choose(self, number, draws)
        template = self._template
        ids, types = template.join(first.ids.astype(np.int32), second.ids.astype(np.int32))
        if self._kinds is not None:
            types = np.minimum(types, self._kinds - 1).astype(np.int8)
        outside = [
            Bare(np.array(part, np.int64), np.full(len(part), SPECIAL))
            for part in (template.before, template.between, template.after)
        ]
        words = joined([outside[0], first, outside[1], second, outside[2]]).words
        return Example(ids, words, types, label)

    def random(self, number: int, draws: Draws) -> np.random.Generator:
        """The random numbers of a run."""
        return draws.random(self.tokens[number].ids)

    def divided(self, number: int, random: np.random.Generator) -> tuple[Bare, Bare]:
        """A run as two segments, the first of which ends at a random sentence."""
        run = self._runs[number]
        return run.divided(int(random.integers(1, len(run.ends))))

    def divided_by_other(
        self, number: int, random: np.random.Generator
    ) -> tuple[Bare, Bare | None]:
        """The first segment of a run, and a second one of another document.

        Second segments are drawn as they are for the runs that they are of, so that they are of
        the same kind, but for those whose first sentence follows the last one of the first segment
        in any document. Of 64 that are drawn the one is taken that is about as long as the own
        second one, so that no length tells the pairs apart. None where none is another.
        """
        run = self._runs[number]
        at = int(random.integers(1, len(run.ends)))
        first, own = run.divided(at)
        best, least = None, sys.maxsize
        for _ in range(_TRIES):
            other = self._runs[int(random.integers(len(self._runs)))]
            start = int(random.integers(1, len(other.ends)))
            difference = abs(len(other.tokens.ids) - int(other.ends[start - 1]) - len(own.ids))
            if difference >= least or other.document == run.document:
                continue
            if _key(run.sentence(at - 1), other.sentence(start)) in self._follows:
                continue
            best, least = other.divided(start)[1], difference
        if best is None:
            return first, None
        room = self._room - len(first.ids)
        return first, Bare(best.ids[:room], best.words[:room])


def _key(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> int:
    """A number for two sentences, one after the other."""
    one, two = (ids.astype(np.int32).tobytes() for ids in (first, second))
    return zlib.crc32(two, zlib.crc32(one))
