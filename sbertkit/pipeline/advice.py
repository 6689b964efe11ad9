"""What follows from the scores of a recipe."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sbertkit.formatting import percent, percent_interval
from sbertkit.pipeline.results import ADAPT, BASE, DIAGNOSE, TRAIN, ScoredEncoder

_NARROW = 0.5
"""Mean cosine of random texts above which a space is narrow."""


def choose_encoder(encoders: Sequence[ScoredEncoder]) -> ScoredEncoder:
    """The encoder to search with: the last one, or the base if that finds more."""
    base, *_, last = encoders
    return base if last.is_better is False else last


def advice_of(
    encoders: Sequence[ScoredEncoder], index: Mapping[str, Any], task: str
) -> Iterator[str]:
    """What to do next, in sentences."""
    by_step = {one.step: one for one in encoders}
    yield from _after_adapting(by_step, task)
    if TRAIN in by_step:
        yield from _after_training(by_step)
    if DIAGNOSE in by_step:
        yield f"Pooling and post-processing: {by_step[DIAGNOSE].facts['advice']}."
        yield from _verdict(by_step[BASE], encoders[-1])
    if index.get("recall") is not None:
        yield (
            f"The index finds {percent(index['recall'])} % of the 10 nearest documents; for more, "
            "run sbertkit tune with a higher --recall."
        )


def _after_adapting(by_step: Mapping[str, ScoredEncoder], task: str) -> Iterator[str]:
    adapted = by_step.get(ADAPT)
    if adapted is None:
        return
    held_out = adapted.facts.get("held_out") or {}
    if held_out:
        before, after = (held_out[side]["held_out_loss"] for side in ("before", "after"))
        if after >= before:
            yield (
                f"adapt learned nothing that lasts: the loss on texts held out went from "
                f"{before:.3f} to {after:.3f}; give it more texts, or fewer steps (--adapt-steps)."
            )
    if task == "simcse":
        yield (
            "simcse alone gains nothing for search in published comparisons (mean nDCG@10 of six "
            "domains 45.0, without it 45.2, tsdae 49.2; Wang et al. 2022, GPL, table 2): compare "
            "with --task tsdae."
        )
    elif adapted.is_better is False and TRAIN not in by_step:
        yield (
            "After adapt the encoder finds less: predicting tokens narrows the space of text "
            "vectors, which train-nli opens again; what counts is the score after it."
        )


def _after_training(by_step: Mapping[str, ScoredEncoder]) -> Iterator[str]:
    trained = by_step[TRAIN]
    cosine = trained.random_cosine
    if cosine is not None and cosine > _NARROW:
        yield (
            f"Two random texts have the cosine {cosine:.2f} after train-nli: the space is narrow; "
            "train longer (--nli-steps), or take the whitening that diagnose tries."
        )


def _verdict(base: ScoredEncoder, last: ScoredEncoder) -> Iterator[str]:
    interval = percent_interval(None if last.gain is None else last.gain.interval, sign="+")
    figures = (
        f"{percent(last.accuracy)} % of the parts of your texts find each other, with the base "
        f"{percent(base.accuracy)} % (95 % interval of the gain: {interval} points)"
    )
    if last.is_better:
        yield f"Take {last.model}: {figures}."
    elif last.is_better is False:
        yield (
            f"Keep the base: {figures}; the index has the base's vectors. Leave adapt out (--task "
            "none), or average both by sbertkit merge, which often keeps the best of each."
        )
    else:
        yield (
            f"No difference is shown on your texts: {figures}; let labeled queries decide (--eval)."
        )
    lost = [
        name
        for name, value in last.ndcg.items()
        if value is not None and value < (base.ndcg.get(name) or 0.0)
    ]
    if lost:
        yield (
            f"nDCG@10 fell on {', '.join(lost)}: weigh that against the rest, or merge with the "
            "base (sbertkit merge)."
        )
