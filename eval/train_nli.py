"""How good encoders become by NLI training in the same time: sbertkit and sentence-transformers.

    SBERTKIT_DATA=FOLDER python eval/train_nli.py --base MODEL [--only softmax:1 base:mean ...]
    SBERTKIT_DATA=FOLDER python eval/train_nli.py --base MODEL --ablation

FOLDER holds nli/snli/train_part.jsonl.gz, nli/snli/train_part2.jsonl.gz, nli/lingnli/train.jsonl.gz
and sts/stsb.tsv, sts12.tsv, sts13.tsv, sts14.tsv, sick.tsv. Each run is written to
results/train_nli.json (with --ablation results/pooling.json) as an entry; the next call runs those
that are missing or were measured with other code or settings.

Equal time: a calibration run measures the speed, then a new run trains for as many steps as fit
into the minutes, so that its learning rate falls to zero within them. Seconds are from the first
step to the last, without loading, checkpoints and the guard's checks. No run uses a dev set, and
the test sets choose nothing. Nothing else should run meanwhile.
"""

import logging
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import transformers
from peer_training import RANKING, SOFTMAX, PeerRecipe, Trained, train_peer
from recording import RESULTS, WEIGHTS, Entries, Figures, arguments_of, data_folder

from sbertkit import Encoder, TrainConfig, evaluate_sts, train_nli
from sbertkit.data.nli import NliSet, read_nli
from sbertkit.data.sts import read_sts
from sbertkit.metrics import effective_rank, mean_random_cosine, uniformity
from sbertkit.training.ablations import ABLATED_POOLINGS

SEEDS = (1, 2, 3)
BASE_POOLINGS = ("mean", "cls")
ABLATED_OBJECTIVES = ("softmax", "contrastive")
FILES = ("snli/train_part", "snli/train_part2", "lingnli/train")
SETS = ("stsb", "sts12", "sts13", "sts14", "sick")

OUR_SOURCES = [*WEIGHTS, "eval/train_nli.py"]
PEER_SOURCES = ["eval/train_nli.py", "eval/peer_training.py"]

_SHORT = 0.2
"""Share of the calibration steps in the shorter calibration run."""


@dataclass(frozen=True, slots=True)
class Method:
    """A training method.

    Attributes:
        unit: Unit of examples.
        calibration: Steps that measure its speed; sbertkit needs more of them, since its batches of
            similar lengths differ in cost.
        objective: sbertkit's objective; None if the peer trains.
        peer: The peer's recipe, if it trains.
        pooling: Pooling of sbertkit's runs.
    """

    unit: str
    calibration: int
    objective: str | None = None
    peer: PeerRecipe | None = None
    pooling: str = "mean"

    def train(self, base: Path, data: NliSet, folder: Path, *, steps: int, seed: int) -> Trained:
        """Trains the base and saves it in the folder."""
        if self.peer is not None:
            return train_peer(base, data, folder, recipe=self.peer, steps=steps, seed=seed)
        config = TrainConfig(max_steps=steps, seed=seed, device="cpu")
        objective = str(self.objective)
        result = train_nli(
            base, data, folder, pooling=self.pooling, objective=objective, config=config
        )
        record = result.record
        return Trained(
            record["seconds"],
            result.steps,
            record["examples"],
            config.batch_size,
            record["settings"]["learning_rate"],
            record["settings"]["precision"],
            record["max_tokens"],
        )


METHODS = {
    "softmax": Method("pairs", 80, objective="softmax"),
    "contrastive": Method("triplets", 80, objective="contrastive"),
    "peer-softmax": Method("pairs", 60, peer=SOFTMAX),
    "peer-ranking": Method("triplets", 15, peer=RANKING),
    "peer-softmax-bf16": Method("pairs", 60, peer=replace(SOFTMAX, bf16=True)),
    "peer-ranking-bf16": Method("triplets", 15, peer=replace(RANKING, bf16=True)),
}


def steps_within(minutes: float, method: Method, base: Path, data: NliSet, *, seed: int) -> int:
    """How many steps fit into the minutes, by the speed of calibration runs.

    A long run minus a short one, since the first steps of a run cost more than the others.
    """
    counts = max(1, round(_SHORT * method.calibration)), method.calibration
    seconds = []
    for steps in counts:
        with tempfile.TemporaryDirectory() as folder:
            tried = method.train(base, data, Path(folder) / "model", steps=steps, seed=seed)
        seconds.append(tried.seconds)
    each = max(seconds[1] - seconds[0], 0.5 * seconds[1]) / (counts[1] - counts[0])
    start = max(0.0, seconds[1] - each * counts[1])
    return max(1, round((60 * minutes - start) / each))


def summary(method: Method, trained: Trained) -> Figures:
    """The figures of a run."""
    epochs = trained.steps / -(-trained.examples // trained.batch_size)
    return {
        **trained._asdict(),
        "seconds": round(trained.seconds, 1),
        "unit": method.unit,
        "examples_seen": round(epochs * trained.examples),
        "epochs": round(epochs, 3),
    }


def scores(encoder: Encoder, folder: Path, sets: Sequence[str], split: str) -> Figures:
    """Spearman times 100 on STS sets, and the space of the sentences of the first one.

    Args:
        encoder: An encoder with vectors of unit length.
        folder: Folder of the files of the sets.
        sets: Names of the sets.
        split: Split of each set.
    """
    spearman = {}
    for name in sets:
        value = evaluate_sts(encoder, folder / f"{name}.tsv", split=split).spearman
        spearman[name] = None if value is None else round(100 * value, 2)
    pairs = read_sts(folder / f"{sets[0]}.tsv", split=split).pairs
    sentences = dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second))
    vectors = encoder.encode(list(sentences))
    measures = {
        "random_cosine": mean_random_cosine(vectors),
        "uniformity": uniformity(vectors),
        "effective_rank": effective_rank(vectors),
    }
    space = {name: None if value is None else round(value, 4) for name, value in measures.items()}
    return {"spearman": spearman, "space": space}


class Measurement:
    """Runs from one base on one data set.

    Args:
        arguments: The arguments of the command line.
    """

    def __init__(self, arguments: Namespace) -> None:
        root = data_folder("nli/snli/train_part.jsonl.gz")
        data = read_nli([root / "nli" / f"{name}.jsonl.gz" for name in FILES])
        self._data = NliSet(data.pairs[: arguments.rows], data.sources)
        self._sts = root / "sts"
        self._base: Path = arguments.base
        self._keep: Path | None = arguments.keep
        self._calibration: int | None = arguments.calibration
        # Opened now, since the hashes are those of the code that is loaded.
        self._ours = Entries("train_nli", OUR_SOURCES, arguments.results)
        self._peers = Entries("train_nli", PEER_SOURCES, arguments.results)
        self._poolings = Entries("pooling", OUR_SOURCES, arguments.results)
        self._settings = {
            "base": self._base.resolve().name,
            "fingerprint": self._load("mean").fingerprint,
            "rows": len(self._data.pairs),
        }

    def base(self, pooling: str) -> None:
        """The untrained base, on the test sets."""

        def measure() -> Figures:
            return scores(self._load(pooling), self._sts, SETS, "test")

        self._ours.measure(f"base:{pooling}", self._settings, measure)

    def run(self, name: str, seed: int, minutes: float) -> None:
        """A method with a seed, on the test sets."""
        method, key = METHODS[name], f"{name}:{seed}"
        entries = self._ours if method.peer is None else self._peers

        def measure() -> Figures:
            steps = self._steps_within(minutes, method, seed)
            print(f"{key}: {steps} steps in {minutes:g} minutes", flush=True)
            return self._train(key, method, SETS, split="test", steps=steps, seed=seed)

        entries.measure(key, {**self._settings, "minutes": minutes}, measure)

    def ablate(self, objective: str, pooling: str, minutes: float) -> None:
        """An objective with a pooling, on STS-B dev before and after; poolings do equal steps."""
        settings = {**self._settings, "minutes": minutes}
        key = f"{objective}:{pooling}"
        method = replace(METHODS[objective], pooling=pooling)

        def measure() -> Figures:
            names = (f"{objective}:{other}" for other in ABLATED_POOLINGS)
            others = (self._poolings.known(name, settings) for name in names)
            steps = next((other["steps"] for other in others if other is not None), None)
            if steps is None:
                steps = self._steps_within(minutes, method, SEEDS[0])
            before = scores(self._load(pooling), self._sts, SETS[:1], "dev")
            after = self._train(key, method, SETS[:1], split="dev", steps=steps, seed=SEEDS[0])
            return {**after, "before": before}

        self._poolings.measure(key, settings, measure)

    def _train(
        self, key: str, method: Method, sets: tuple[str, ...], *, split: str, steps: int, seed: int
    ) -> Figures:
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent) / "model"
            trained = method.train(self._base, self._data, folder, steps=steps, seed=seed)
            encoder = Encoder.load(folder, normalize=True, device="cpu")
            figures = {**summary(method, trained), **scores(encoder, self._sts, sets, split)}
            if self._keep is not None:
                kept = self._keep / key.replace(":", "-")
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept)
        return figures

    def _steps_within(self, minutes: float, method: Method, seed: int) -> int:
        if self._calibration is not None:
            method = replace(method, calibration=self._calibration)
        return steps_within(minutes, method, self._base, self._data, seed=seed)

    def _load(self, pooling: str) -> Encoder:
        return Encoder.load(self._base, pooling=pooling, normalize=True, device="cpu")


def keys() -> list[str]:
    """All entries in their order: the whole comparison for one seed before the next."""
    runs = [
        f"{name}:{seed}"
        for seed in SEEDS
        for name, method in METHODS.items()
        # bf16 is not the peer's default: measured once, to show its share.
        if seed == SEEDS[0] or method.peer is None or not method.peer.bf16
    ]
    return [*(f"base:{pooling}" for pooling in BASE_POOLINGS), *runs]


def ablation_keys() -> list[str]:
    """All entries of the ablation in their order."""
    return [f"{name}:{pooling}" for name in ABLATED_OBJECTIVES for pooling in ABLATED_POOLINGS]


def main() -> None:
    """Measures the missing entries."""
    parser = arguments_of(__doc__)
    parser.add_argument("--base", type=Path, required=True, help="a plain model folder")
    parser.add_argument(
        "--only", nargs="+", help="entries, such as softmax:1, base:cls or softmax:max"
    )
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument(
        "--ablation", action="store_true", help="compare poolings instead of methods"
    )
    parser.add_argument("--ablation-minutes", type=float, default=3.0)
    parser.add_argument("--keep", type=Path, help="folder in which trained models are kept")
    parser.add_argument("--rows", type=int, help="use only the first rows, to try the script")
    parser.add_argument("--calibration", type=int, help="fewer steps that measure the speed")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    known = ablation_keys() if arguments.ablation else keys()
    unknown = set(arguments.only or ()) - set(known)
    if unknown:
        sys.exit(f"--only: expected of {' '.join(known)}, found {' '.join(sorted(unknown))}")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    measurement = Measurement(arguments)
    for key in arguments.only or known:
        name, _, number = key.partition(":")
        if arguments.ablation:
            measurement.ablate(name, number, arguments.ablation_minutes)
        elif name == "base":
            measurement.base(number)
        else:
            measurement.run(name, int(number), arguments.minutes)


if __name__ == "__main__":
    main()
