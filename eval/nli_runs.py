"""Training runs of equal time and the scores of what they made: all that decides their results."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measured import WEIGHTS
from nli_peer import RANKING, SOFTMAX, PeerRecipe, Trained, train_peer

from sbertkit import Encoder, TrainConfig, evaluate_sts, train_nli
from sbertkit.data.nli import NliSet
from sbertkit.data.sts import read_sts
from sbertkit.metrics import effective_rank, mean_random_cosine, uniformity

FILES = ("snli/train_part", "snli/train_part2", "lingnli/train")
SETS = ("stsb", "sts12", "sts13", "sts14", "sick")

OWN_CODE = [*WEIGHTS, "eval/nli_runs.py"]
PEER_CODE = ["eval/nli_runs.py", "eval/nli_peer.py"]
"""What decides the results of our runs and of theirs."""

_SHORT = 0.2
"""Share of the calibration steps after which the first look at the clock is taken."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way of training.

    Attributes:
        unit: What it counts.
        calibration: Steps that measure its speed; ours need more of them, since batches of alike
            lengths differ in what they cost.
        objective: Of sbertkit; None where the peer trains.
        peer: The peer's recipe, if it trains.
        pooling: Of sbertkit's runs.
    """

    unit: str
    calibration: int
    objective: str | None = None
    peer: PeerRecipe | None = None
    pooling: str = "mean"

    def train(self, base: Path, data: NliSet, folder: Path, *, steps: int, seed: int) -> Trained:
        """Trains the base for so many steps; the model is in the folder then."""
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
    """How many steps fit into the minutes, by the speed of some that do not count.

    A long run less a short one, since the first steps of a run cost more than the others.
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


def summary(method: Method, trained: Trained) -> dict[str, Any]:
    """A run as figures; ``seen`` is how many pairs or triplets it trained on."""
    passes = trained.steps / -(-trained.examples // trained.batch_size)
    return {
        **trained._asdict(),
        "seconds": round(trained.seconds, 1),
        "unit": method.unit,
        "seen": round(passes * trained.examples),
        "passes": round(passes, 3),
    }


def scores(encoder: Encoder, folder: Path, sets: Sequence[str], split: str) -> dict[str, Any]:
    """Spearman times 100 on STS sets, and how evenly the sentences of the first one are spread.

    Args:
        encoder: Gives vectors of unit length.
        folder: Where the files of the sets are.
        sets: Their names.
        split: Of each.
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
