"""Whether the guard stops runs with a fault, and only those.

    SBERTKIT_DATA=FOLDER python eval/guard.py [--base MODEL] [--only CASE ...]

FOLDER holds nli/<set>/train.jsonl.gz and nli/snli/train_part.jsonl.gz. Each run is an entry of
results/guard.json; the next call runs those that are missing or were measured with other code or
settings. Reasons are recorded as given, except for paths.
"""

import logging
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import transformers
from recording import RESULTS, WEIGHTS, Entries, Figures, arguments_of, data_folder

from sbertkit import TrainConfig, TrainingStopped, train_nli
from sbertkit.data.nli import NLI_LABELS, NliSet, read_nli
from sbertkit.encoder.resolve import BUNDLED_NAME

_LAST_LABEL = len(NLI_LABELS) - 1


@dataclass(frozen=True, slots=True)
class Case:
    """A run.

    Attributes:
        data: The file in nli/.
        objective: The training objective.
        learning_rate: Peak learning rate; None for the objective's default.
        swapped: Whether entailment and contradiction are swapped in the data.
        fault: The fault; None for a healthy run.
    """

    data: str
    objective: str
    learning_rate: float | None = None
    swapped: bool = False
    fault: str | None = None


_COLLAPSE = "learning rate of 0.005"
_INFINITE = "learning rate of 1,000"
_SWAPPED = "entailment and contradiction swapped"

CASES = {
    "collapse-softmax": Case("snli/train_part", "softmax", 5e-3, fault=_COLLAPSE),
    "collapse-contrastive": Case("lingnli/train", "contrastive", 5e-3, fault=_COLLAPSE),
    "nan-softmax": Case("snli/train_part", "softmax", 1e3, fault=_INFINITE),
    "nan-contrastive": Case("lingnli/train", "contrastive", 1e3, fault=_INFINITE),
    "swapped-softmax": Case("snli/train_part", "softmax", swapped=True, fault=_SWAPPED),
    "swapped-contrastive": Case("snli/train_part", "contrastive", swapped=True, fault=_SWAPPED),
    "healthy-snli": Case("snli/train_part", "softmax"),
    "healthy-lingnli": Case("lingnli/train", "contrastive"),
    "healthy-new_protocols": Case("new_protocols/train", "softmax"),
    "healthy-cad_snli": Case("cad_snli/train", "contrastive"),
    "healthy-joci": Case("joci/train", "softmax"),
}


def run(case: Case, base: str, data: NliSet, config: TrainConfig) -> Figures:
    """The outcome of a case: the guard's reason, or how close the run came to its bounds."""
    if case.swapped:
        pairs = tuple(pair._replace(label=_LAST_LABEL - pair.label) for pair in data.pairs)
        data = NliSet(pairs, ())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        try:
            result = train_nli(base, data, path, objective=case.objective, config=config)
        except TrainingStopped as stopped:
            return {"stopped": True, "reason": str(stopped).replace(folder, "FOLDER")}
    cosines = [row["random_cosine"] for row in result.log if "random_cosine" in row]
    return {
        "stopped": False,
        "reason": None,
        "steps": result.steps,
        "checks": len(cosines),
        "max_random_cosine": round(max(cosines), 4),
        "label_cosines": {
            name: round(value, 4) for name, value in result.after.label_cosines.items()
        },
    }


def main() -> None:
    """Runs the missing cases."""
    parser = arguments_of(__doc__)
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
    guard = ["sbertkit/metrics/random_pairs.py", "sbertkit/training/run/guard.py", "eval/guard.py"]
    sources = [*WEIGHTS, *guard]
    entries = Entries("guard", sources, arguments.results)
    settings = {
        "base": Path(arguments.base).resolve().name,
        "steps": arguments.steps,
        "rows": arguments.rows,
        "batch_size": arguments.batch,
    }

    def measure(case: Case) -> Figures:
        data = read_nli(root / f"{case.data}.jsonl.gz")
        data = NliSet(data.pairs[: arguments.rows], data.sources)
        config = TrainConfig(
            max_steps=arguments.steps,
            batch_size=arguments.batch,
            learning_rate=case.learning_rate,
            device="cpu",
        )
        known = {"data": case.data, "objective": case.objective, "fault": case.fault}
        return {**known, **run(case, arguments.base, data, config)}

    for key in arguments.only:
        entries.measure(key, settings, partial(measure, CASES[key]))


if __name__ == "__main__":
    main()
