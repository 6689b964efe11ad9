"""Whether the guard stops runs that are made to go wrong, and lets healthy ones alone.

    SBERTKIT_DATA=FOLDER python eval/guard_runs.py [--base MODEL] [--only CASE ...]

FOLDER holds nli/<set>/train.jsonl.gz and nli/snli/train_part.jsonl.gz. Each run is written to
results/guard.json when it is done; the next call goes on with those that are missing or were made
with other code or settings. The reasons are recorded as they were given, but for paths.
"""

import argparse
import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from measured import GUARD
from recording import RESULTS, Pieces, data_folder

from sbertkit import TrainConfig, TrainingStopped, train_nli
from sbertkit.data.nli import NLI_LABELS, NliSet, read_nli
from sbertkit.encoder.resolve import BUNDLED_NAME

_LAST_LABEL = len(NLI_LABELS) - 1


@dataclass(frozen=True, slots=True)
class Case:
    """A run.

    Attributes:
        data: Its file below nli/.
        objective: What it optimizes.
        learning_rate: Peak; None for the objective's own.
        swapped: Whether entailment and contradiction are exchanged in the data.
        wrong: What is wrong with it; None for a healthy run.
    """

    data: str
    objective: str
    learning_rate: float | None = None
    swapped: bool = False
    wrong: str | None = None


_COLLAPSE = "learning rate of 0.005"
_INFINITE = "learning rate of 1,000"
_SWAPPED = "entailment and contradiction swapped"

CASES = {
    "collapse-softmax": Case("snli/train_part", "softmax", 5e-3, wrong=_COLLAPSE),
    "collapse-contrastive": Case("lingnli/train", "contrastive", 5e-3, wrong=_COLLAPSE),
    "nan-softmax": Case("snli/train_part", "softmax", 1e3, wrong=_INFINITE),
    "nan-contrastive": Case("lingnli/train", "contrastive", 1e3, wrong=_INFINITE),
    "swapped-softmax": Case("snli/train_part", "softmax", swapped=True, wrong=_SWAPPED),
    "swapped-contrastive": Case("snli/train_part", "contrastive", swapped=True, wrong=_SWAPPED),
    "healthy-snli": Case("snli/train_part", "softmax"),
    "healthy-lingnli": Case("lingnli/train", "contrastive"),
    "healthy-new_protocols": Case("new_protocols/train", "softmax"),
    "healthy-cad_snli": Case("cad_snli/train", "contrastive"),
    "healthy-joci": Case("joci/train", "softmax"),
}


def run(case: Case, base: str, data: NliSet, config: TrainConfig) -> dict[str, Any]:
    """What came of a case: the guard's reason, or how near the run came to it."""
    if case.swapped:
        pairs = tuple(pair._replace(label=_LAST_LABEL - pair.label) for pair in data.pairs)
        data = NliSet(pairs, ())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model"
        try:
            result = train_nli(base, data, place, objective=case.objective, config=config)
        except TrainingStopped as stopped:
            return {"stopped": True, "reason": str(stopped).replace(folder, "FOLDER")}
    cosines = [row["random_cosine"] for row in result.log if "random_cosine" in row]
    return {
        "stopped": False,
        "reason": None,
        "steps": result.steps,
        "looks": len(cosines),
        "highest_random_cosine": round(max(cosines), 4),
        "label_cosines": {
            name: round(value, 4) for name, value in result.after.label_cosines.items()
        },
    }


def main() -> None:
    """Runs what is missing, prints and records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default=BUNDLED_NAME)
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", default=list(CASES))
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    root = data_folder("nli/snli/train_part.jsonl.gz") / "nli"
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    pieces = Pieces("guard", [*GUARD, "eval/guard_runs.py"], arguments.results)
    settings = {
        "base": Path(arguments.base).resolve().name,
        "steps": arguments.steps,
        "rows": arguments.rows,
        "batch_size": arguments.batch,
    }
    for key in arguments.only:
        if pieces.known(key, settings) is not None:
            continue
        case = CASES[key]
        data = read_nli(root / f"{case.data}.jsonl.gz")
        data = NliSet(data.pairs[: arguments.rows], data.sources)
        config = TrainConfig(
            max_steps=arguments.steps,
            batch_size=arguments.batch,
            learning_rate=case.learning_rate,
            device="cpu",
        )
        figures = {
            "data": case.data,
            "objective": case.objective,
            "wrong": case.wrong,
            **run(case, arguments.base, data, config),
        }
        print(f"{key}: {figures['reason'] or 'not stopped'}", flush=True)
        pieces.add(key, settings, figures)


if __name__ == "__main__":
    main()
