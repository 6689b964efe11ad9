"""What pooling, normalization and post-processing do to an encoder's scores and space.

    SBERTKIT_DATA=FOLDER python eval/post_processing.py --model MODEL [MODEL ...]

FOLDER holds sts/stsb.tsv, sts/sick.tsv and nli/snli/train_part.jsonl.gz, whose premises the
post-processing is fitted on. Each model is written to results/post_processing.json.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recording import Pieces, data_folder
from torch import nn

from sbertkit import Encoder
from sbertkit.arrays import Vectors
from sbertkit.data.nli import read_nli
from sbertkit.data.sts import StsSet, read_sts
from sbertkit.encoder.multi_pooling import encode_grid
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.whitening import FITS
from sbertkit.metrics import (
    effective_rank,
    isoscore,
    mean_random_cosine,
    row_similarities,
    spearman,
)

POOLINGS = ("cls", "mean", "max", "eos", "weighted_mean", "first_last")
SETS = ("stsb", "sick")
SIMILARITIES = ("cosine", "dot", "euclidean")
FITTED_ON = 2_000
MEASURED = [
    *(
        f"sbertkit/encoder/{name}.py"
        for name in (
            "multi_pooling",
            "network",
            "pooling",
            "tokenization",
            "transformer",
            "whitening",
        )
    ),
    "sbertkit/metrics",
]


class Sentences:
    """The distinct sentences of a set of pairs, and the pairs as rows of them."""

    def __init__(self, data: StsSet) -> None:
        rows: dict[str, int] = {}
        for pair in data.pairs:
            rows.setdefault(pair.first, len(rows))
            rows.setdefault(pair.second, len(rows))
        self.texts = list(rows)
        self._gold = np.array([pair.score for pair in data.pairs])
        self._left = np.array([rows[pair.first] for pair in data.pairs])
        self._right = np.array([rows[pair.second] for pair in data.pairs])

    def scores(self, vectors: Vectors) -> dict[str, float | None]:
        """Spearman x 100 by each similarity of unnormalized vectors."""
        similarities = row_similarities(vectors, self._left, self._right)
        found = {name: spearman(self._gold, similarities[name]).value for name in SIMILARITIES}
        return {name: None if v is None else round(100 * v, 2) for name, v in found.items()}


def applied(step: nn.Module | None, vectors: Vectors) -> Vectors:
    """The vectors after a step."""
    if step is None:
        return vectors
    with torch.inference_mode():
        result: Vectors = step(torch.from_numpy(vectors)).numpy()
    return result


def figures_of(vectors: dict[str, Vectors], step_name: str | None, sets: Any) -> dict[str, Any]:
    """Scores on each set and the space of the first, after a step fitted on the premises."""
    step = None if step_name is None else FITS[step_name](vectors["fit"])
    after = {name: applied(step, vectors[name]) for name in sets}
    space = after[SETS[0]]
    return {
        "spearman": {name: sets[name].scores(after[name]) for name in sets},
        "random_cosine": mean_random_cosine(space),
        "effective_rank": effective_rank(space),
        "isoscore": isoscore(space),
    }


def main() -> None:
    """Measures what is missing, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("sts/stsb.tsv")
    premises = [pair.premise for pair in read_nli(root / "nli/snli/train_part.jsonl.gz").pairs]
    fit = list(dict.fromkeys(premises))[:FITTED_ON]
    sets = {name: Sentences(read_sts(root / f"sts/{name}.tsv", split="test")) for name in SETS}
    pieces = Pieces("post_processing", MEASURED)
    for model in arguments.model:
        encoder = Encoder.load(model, pooling="mean", device="cpu")
        count = encoder.transformer.layer_count
        poolings = [Pooling.named(name, count) for name in POOLINGS]
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        wanted = [
            (pooling, step)
            for pooling in poolings
            for step in (None, *FITS)
            if pieces.known(_key(model, pooling, step), settings) is None
        ]
        if not wanted:
            continue
        grids = {"fit": encode_grid(encoder, fit, poolings)}
        grids |= {name: encode_grid(encoder, sets[name].texts, poolings) for name in sets}
        for pooling, step in wanted:
            vectors = {name: grid[pooling] for name, grid in grids.items()}
            figures = figures_of(vectors, step, sets)
            print(_key(model, pooling, step), figures["spearman"], flush=True)
            pieces.add(_key(model, pooling, step), settings, figures)


def _key(model: str, pooling: Pooling, step: str | None) -> str:
    return f"{Path(model).name}:{pooling.name}:{step or 'none'}"


if __name__ == "__main__":
    main()
