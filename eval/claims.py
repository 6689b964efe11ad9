"""What the study notes behind sbertkit claim, beside what our measurements say of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_table import markdown
from training_tables import about

Figures = dict[str, Any]

MEASUREMENTS = ("train_nli", "pooling", "isotropy", "post_processing")
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


def _frequency(results: dict[str, Figures]) -> str:
    parts = []
    for key, figures in results["isotropy"].items():
        found = figures["frequency"]
        told = ", ".join(
            f"{name} {found[name]['norm']:+.2f} / {found[name]['centre']:+.2f}"
            for name in ("input tokens", "output tokens", "texts")
        )
        parts.append(f"{key.replace(':', ', ')}: {told}")
    return (
        f"rank correlation of length / distance from the centre with frequency: {'; '.join(parts)}"
    )


def _normalization(results: dict[str, Figures]) -> str:
    runs = results["post_processing"]
    parts = []
    for model in dict.fromkeys(key.split(":")[0] for key in runs):
        plain, layered = (runs[f"{model}:mean:{step}"] for step in ("none", "layer_norm"))
        stsb, after = (one["spearman"]["stsb"] for one in (plain, layered))
        parts.append(
            f"{model}, STS-B test, mean: dot {stsb['dot']:.2f} and Euclidean "
            f"{stsb['euclidean']:.2f} before, {stsb['cosine']:.2f} both after L2, as the cosine "
            f"before and after; layer normalization: cosine {after['cosine']:.2f}, dot "
            f"{after['dot']:.2f}, cosine of random pairs {plain['random_cosine']:.3f} -> "
            f"{layered['random_cosine']:.3f}"
        )
    return "; ".join(parts)


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
        "Pretrained spaces are anisotropic: frequent words have short vectors near the centre, "
        "rare ones lie at the edge, so that the cosine follows word frequency",
        "refined: tokens do not follow it (weak correlations of either sign); texts of frequent "
        "words do lie nearer the centre in all four spaces, yet are as often longer as shorter, "
        "and normalization does not undo it",
        _frequency,
    ),
    Claim(
        "L2 normalization of pooled vectors removes the influence of the norm; layer normalization "
        "steadies the distribution",
        "confirmed for dot product and Euclidean distance, which then order pairs as the cosine "
        "does; the cosine itself, and with it anisotropy, L2 cannot change; layer normalization "
        "makes lengths alike, which does the same, and next to nothing more",
        _normalization,
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
