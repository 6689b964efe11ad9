"""Tables of training: speed, quality in equal time, poolings, the guard, resumed runs."""

import statistics
from collections.abc import Sequence
from typing import Any

from markdown_table import markdown

from sbertkit.training.series import PUBLISHED_POOLINGS

Figures = dict[str, Any]

NOTES = {
    "minilm-mlm": "all-MiniLM-L6-v2 driven back by masked-language modelling; a stand-in, nothing "
    "about never-tuned encoders follows",
}
"""What has to be known of a base, by the name of its folder."""

METHODS = {
    "softmax": "sbertkit, softmax",
    "contrastive": "sbertkit, contrastive",
    "peer-softmax": "sentence-transformers, SoftmaxLoss",
    "peer-ranking": "sentence-transformers, MultipleNegativesRankingLoss",
    "peer-softmax-bf16": "the same, SoftmaxLoss, told to use bf16",
    "peer-ranking-bf16": "the same, MultipleNegativesRankingLoss, told to use bf16",
}
SETS = {"stsb": "STS-B", "sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sick": "SICK"}

_THEIRS = "BERT-base, 940,000 pairs"

PUBLISHED = {
    "published: BERT-base untrained, mean": (46.35, 38.78, 57.98, 57.98, 58.40),
    f"published: SBERT-NLI-base, softmax ({_THEIRS})": (77.03, 70.97, 76.53, 73.19, 72.91),
    f"published: SimCSE supervised, contrastive ({_THEIRS})": (84.25, 75.30, 84.67, 80.19, 80.39),
}
"""By the order of `SETS`.

Source: Reimers & Gurevych 2019, Sentence-BERT, table 1; Gao et al. 2021, SimCSE, table 5.
"""

SPACE = {
    "random_cosine": "cosine of random pairs",
    "uniformity": "uniformity",
    "effective_rank": "effective rank",
}


def train_table(figures: Figures) -> str:
    """Training speed."""
    rows = []
    for name, result in figures.items():
        if not name.startswith("batch_"):
            continue
        rows.append(
            (
                name.removeprefix("batch_"),
                result["sbertkit_pairs_per_second"],
                result["sentence_transformers_pairs_per_second"],
                result["ratio_median"],
                result["sbertkit_fp32_pairs_per_second"],
                result["sentence_transformers_bf16_pairs_per_second"],
                f"{result['sbertkit_loss']:.3f} / {result['sentence_transformers_loss']:.3f}",
            )
        )
    header = (
        "batch",
        "sbertkit, pairs/s",
        "sentence-transformers, pairs/s",
        "ratio (median)",
        "sbertkit in fp32",
        "sentence-transformers in bf16",
        "final loss, ours / theirs",
    )
    return (
        f"{markdown(header, rows)}\n\nMedians of {figures['runs']} alternating runs over "
        f"{figures['rows']:,} pairs; the columns of the other precision are one run each. Final "
        "loss: mean of the last quarter of the steps."
    )


def quality_table(pieces: Figures) -> str:
    """Scores on test sets after equal times of training."""
    groups = {name: _runs(pieces, name) for name in METHODS}
    bases = _runs(pieces, "base")
    rows: list[tuple[object, ...]] = [
        (f"the base, {key.removeprefix('base:')} pooling", *["-"] * 3, *_scores([figures]))
        for key, figures in bases.items()
    ]
    rows += [
        (METHODS[name], *_effort(list(runs.values())), *_scores(list(runs.values())))
        for name, runs in groups.items()
        if runs
    ]
    rows += [
        (name, *["-"] * 3, *(f"{value:.2f}" for value in values))
        for name, values in PUBLISHED.items()
    ]
    header = ("encoder", "batch, peak rate, precision", "seen (passes)", "seconds", *SETS.values())
    spaces = [(f"the base, {key.removeprefix('base:')}", [bases[key]]) for key in bases]
    spaces += [(METHODS[name], list(runs.values())) for name, runs in groups.items() if runs]
    space_rows = [(name, *_space(runs)) for name, runs in spaces]
    return (
        f"{markdown(header, rows)}\n\n{about(pieces)} Spearman x 100, mean ± sample deviation "
        "over the seeds. The spaces, by the sentences of the STS-B test set:\n\n"
        f"{markdown(('encoder', *SPACE.values()), space_rows)}"
    )


def pooling_table(pieces: Figures) -> str:
    """Poolings before and after training, by objective."""
    rows = []
    efforts = {}
    for key, after in pieces.items():
        objective, _, pooling = key.partition(":")
        before = after["before"]
        published = PUBLISHED_POOLINGS.get(pooling) if objective == "softmax" else None
        rows.append(
            (
                objective,
                pooling,
                _number(before["spearman"]["stsb"]),
                _number(after["spearman"]["stsb"]),
                *(
                    f"{_number(before['space'][name])} to {_number(after['space'][name])}"
                    for name in SPACE
                ),
                _number(published),
            )
        )
        efforts[objective] = (
            f"{objective}: {after['steps']:,} steps of {after['batch_size']} {after['unit']}"
        )
    header = (
        *("objective", "pooling", "STS-B dev before", "after"),
        *(f"{name}, before to after" for name in SPACE.values()),
        f"published, after ({_THEIRS})",
    )
    minutes = next(iter(pieces.values()))["minutes"]
    return (
        f"{markdown(header, rows)}\n\n{about(pieces)} Spearman x 100, one seed, about "
        f"{minutes:g} minutes each ({'; '.join(efforts.values())}). The spaces are by the "
        "sentences of the STS-B dev set."
    )


def guard_table(pieces: Figures) -> str:
    """Runs made to go wrong, and healthy ones."""
    rows = [
        (
            figures["wrong"] or "nothing",
            figures["objective"],
            figures["data"],
            figures["reason"] if figures["stopped"] else _unstopped(figures),
        )
        for figures in pieces.values()
    ]
    table = markdown(("what is wrong", "objective", "data", "outcome"), rows)
    bad = [figures for figures in pieces.values() if figures["wrong"]]
    healthy = [figures for figures in pieces.values() if not figures["wrong"]]
    first = next(iter(pieces.values()))
    return (
        f"{table}\n\n{sum(f['stopped'] for f in bad)} of {len(bad)} bad runs were stopped, "
        f"{sum(f['stopped'] for f in healthy)} of {len(healthy)} healthy ones. Base "
        f"{_base(first)}; {first['steps']} steps of {first['batch_size']} rows at most."
    )


def resume_table(pieces: Figures) -> str:
    """Killed runs against whole ones."""
    rows = [
        (
            precision,
            figures["steps"],
            ", ".join(str(stop["killed_after_step"]) for stop in figures["breaks"]),
            ", ".join(str(stop["resumed_from_step"]) for stop in figures["breaks"]),
            f"{figures['unequal']:,} of {figures['numbers']:,}",
            f"{figures['largest_difference']:g}",
        )
        for precision, figures in pieces.items()
    ]
    header = (
        *("precision", "steps", "killed after step", "resumed from step"),
        *("weights that differ", "largest difference"),
    )
    return markdown(header, rows)


def _runs(pieces: Figures, name: str) -> Figures:
    return {key: figures for key, figures in pieces.items() if key.partition(":")[0] == name}


def about(pieces: Figures) -> str:
    """The base and the data that the pieces have in common, or each of those they have."""
    bases = sorted({_base(figures) for figures in pieces.values()})
    rows = sorted({figures["rows"] for figures in pieces.values()})
    return f"Base {'; '.join(bases)}. {' or '.join(f'{n:,}' for n in rows)} rows of data."


def _base(figures: Figures) -> str:
    note = NOTES.get(figures["base"])
    return figures["base"] if note is None else f"{figures['base']}: {note}"


def _effort(runs: Sequence[Figures]) -> tuple[str, str, str]:
    """Settings, examples seen and seconds of the runs of a method."""
    first = runs[0]
    seen = round(statistics.mean(run["seen"] for run in runs))
    passes = statistics.mean(run["passes"] for run in runs)
    seconds = statistics.mean(run["seconds"] for run in runs)
    count = "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"
    return (
        f"{first['batch_size']}, {first['learning_rate']:g}, {first['precision']}; {count}",
        f"{seen:,} {first['unit']} ({passes:.2f})",
        f"{seconds:.0f}",
    )


def _scores(runs: Sequence[Figures]) -> list[str]:
    return [_spread([run["spearman"][name] for run in runs], 2) for name in SETS]


def _space(runs: Sequence[Figures]) -> list[str]:
    return [_spread([run["space"][name] for run in runs], 3) for name in SPACE]


def _spread(values: Sequence[float | None], places: int) -> str:
    """Mean ± sample deviation; the mean alone of one run."""
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return "undefined"
    mean = f"{statistics.mean(numbers):.{places}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{places}f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _unstopped(figures: Figures) -> str:
    cosines = figures["label_cosines"]
    shown = ", ".join(f"{name} {value:.2f}" for name, value in cosines.items())
    return (
        f"ran to its end ({figures['looks']} looks; highest cosine of random pairs "
        f"{figures['highest_random_cosine']:.2f}; at the end {shown})"
    )
