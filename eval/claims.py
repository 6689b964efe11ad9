"""What the study notes behind sbertkit claim, beside what our measurements say of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_table import markdown
from training_tables import about

Figures = dict[str, Any]

MEASUREMENTS = ("train_nli", "pooling")
"""Whose figures the claims take."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the notes.

    Attributes:
        text: In their words, shortened.
        verdict: Ours.
        figures: Puts the figures behind it into words; takes each measurement by its name.
    """

    text: str
    verdict: str
    figures: Callable[[dict[str, Figures]], str]


def _cls_and_mean(results: dict[str, Figures]) -> str:
    untrained = {pooling: results["train_nli"][f"base:{pooling}"] for pooling in ("cls", "mean")}
    before = f"STS-B test, untrained: {_scores(untrained)}"
    return "; ".join([before, *_trained(results["pooling"], "cls")])


def _eos_and_mean(results: dict[str, Figures]) -> str:
    runs = results["pooling"]
    untrained = {pooling: runs[f"softmax:{pooling}"]["before"] for pooling in ("eos", "mean")}
    before = f"STS-B dev, untrained: {_scores(untrained)}"
    return "; ".join([before, *_trained(runs, "eos")])


def _trained(runs: Figures, pooling: str) -> list[str]:
    """A pooling beside the mean after equal steps of each objective."""
    return [
        f"STS-B dev, after {objective} training: "
        + _scores({name: runs[f"{objective}:{name}"] for name in (pooling, "mean")})
        for objective in ("softmax", "contrastive")
    ]


def _scores(runs: dict[str, Figures]) -> str:
    return ", ".join(f"{name} {run['spearman']['stsb']:.2f}" for name, run in runs.items())


CLAIMS: Sequence[Claim] = (
    Claim(
        "BERT's CLS vector is poor for single sentences, mean pooling is better, and better still "
        "once fine-tuned",
        "refined: on this stand-in CLS is the better untrained and after softmax training, mean is "
        "after contrastive training, which lifts both; BERT itself was not to be had",
        _cls_and_mean,
    ),
    Claim(
        "The EOS vector (CLIP's way) behaves much like mean pooling",
        "refuted untrained and after softmax training, where it is far below the mean; after "
        "contrastive training it comes within a point",
        _eos_and_mean,
    ),
)


def claims_table(results: dict[str, Figures]) -> str:
    """Each claim with its verdict and figures.

    Args:
        results: The figures of `MEASUREMENTS` by their names.
    """
    rows = [(claim.text, claim.verdict, claim.figures(results)) for claim in CLAIMS]
    table = markdown(("claim", "verdict", "figures (Spearman x 100)"), rows)
    return f"{table}\n\n{about(results['pooling'])}"
