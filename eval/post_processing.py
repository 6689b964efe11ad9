"""How pooling, normalization and post-processing change an encoder's scores and space.

    SBERTKIT_DATA=FOLDER python eval/post_processing.py --model MODEL [MODEL ...]

FOLDER holds sts/stsb.tsv, sts/sick.tsv and nli/snli/train_part.jsonl.gz, on whose premises the
post-processors are fitted. Each configuration is an entry of results/post_processing.json.
"""

from functools import partial
from pathlib import Path

import numpy as np
import torch
from recording import Entries, Figures, arguments_of, data_folder
from torch import nn

from sbertkit import Encoder
from sbertkit.arrays import Vectors
from sbertkit.data.distinct import distinct_texts
from sbertkit.data.nli import read_nli
from sbertkit.data.sts import StsSet, read_sts
from sbertkit.encoder.multi_pooling import encode_poolings
from sbertkit.encoder.pooling import Pooling
from sbertkit.encoder.whitening import FITTERS
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
ENCODER_SOURCES = [
    f"sbertkit/encoder/{name}.py"
    for name in (
        "multi_pooling",
        "network",
        "pooling",
        "tokenization",
        "transformer",
        "whitening",
    )
]
SOURCES = [*ENCODER_SOURCES, "sbertkit/metrics"]


class Sentences:
    """The distinct sentences of a set of pairs, and the pairs as rows of them."""

    def __init__(self, data: StsSet) -> None:
        self.texts, self._rows = distinct_texts((pair.first, pair.second) for pair in data.pairs)
        self._gold = np.array([pair.score for pair in data.pairs])

    def scores(self, vectors: Vectors) -> dict[str, float | None]:
        """Spearman times 100 by each similarity of unnormalized vectors."""
        similarities = row_similarities(vectors, *self._rows.T)
        found = {name: spearman(self._gold, similarities[name]).value for name in SIMILARITIES}
        return {name: None if v is None else round(100 * v, 2) for name, v in found.items()}


def applied(postprocessor: nn.Module | None, vectors: Vectors) -> Vectors:
    """The vectors after a post-processor."""
    if postprocessor is None:
        return vectors
    with torch.inference_mode():
        result: Vectors = postprocessor(torch.from_numpy(vectors)).numpy()
    return result


def measure(vectors: dict[str, Vectors], name: str | None, sets: dict[str, Sentences]) -> Figures:
    """Scores on each set and the space of the first, after a post-processor fitted on premises."""
    postprocessor = None if name is None else FITTERS[name](vectors["fit"])
    after = {name: applied(postprocessor, vectors[name]) for name in sets}
    space = after[SETS[0]]
    return {
        "spearman": {name: sets[name].scores(after[name]) for name in sets},
        "random_cosine": mean_random_cosine(space),
        "effective_rank": effective_rank(space),
        "isoscore": isoscore(space),
    }


def main() -> None:
    """Measures the missing configurations."""
    parser = arguments_of(__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("sts/stsb.tsv")
    premises = [pair.premise for pair in read_nli(root / "nli/snli/train_part.jsonl.gz").pairs]
    fit = list(dict.fromkeys(premises))[:FITTED_ON]
    sets = {name: Sentences(read_sts(root / f"sts/{name}.tsv", split="test")) for name in SETS}
    entries = Entries("post_processing", SOURCES)
    for model in arguments.model:
        encoder = Encoder.load(model, pooling="mean", device="cpu")
        count = encoder.torch.transformer.layer_count
        poolings = [Pooling.named(name, count) for name in POOLINGS]
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        wanted = [
            (pooling, postprocessor)
            for pooling in poolings
            for postprocessor in (None, *FITTERS)
            if entries.known(_key(model, pooling, postprocessor), settings) is None
        ]
        if not wanted:
            continue
        grids = {"fit": encode_poolings(encoder, fit, poolings)}
        grids |= {name: encode_poolings(encoder, sets[name].texts, poolings) for name in sets}
        for pooling, postprocessor in wanted:
            vectors = {name: grid[pooling] for name, grid in grids.items()}
            key = _key(model, pooling, postprocessor)
            entries.measure(key, settings, partial(measure, vectors, postprocessor, sets))


def _key(model: str, pooling: Pooling, postprocessor: str | None) -> str:
    return f"{Path(model).name}:{pooling.name}:{postprocessor or 'none'}"


if __name__ == "__main__":
    main()
