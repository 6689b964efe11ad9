"""How far the label-free choice of diagnose agrees with a labelled one.

    SBERTKIT_DATA=FOLDER python eval/diagnosis.py --model MODEL [MODEL ...]

FOLDER holds sts/stsb.tsv and sts/sick.tsv, whose dev splits judge all configurations with labels,
and the corpora of `CORPORA`. Each model and corpus is written to results/diagnosis.json.
"""

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from post_processing import Sentences, applied
from recording import Pieces, data_folder

from sbertkit import Diagnosis, Encoder, diagnose
from sbertkit.data.sts import read_sts
from sbertkit.encoder.fitting import FITS
from sbertkit.encoder.grid import encode_grid
from sbertkit.evaluation.diagnosis import Candidate
from sbertkit.metrics import spearman

CORPORA = {
    "SNLI premises": "nli/snli/dev.jsonl.gz",
    "Reuters titles": "corpora/en_reuters_titles.txt.gz",
    "Stack Overflow titles": "corpora/en_stackoverflow_titles.txt.gz",
}
SETS = ("stsb", "sick")
MEASURED = [
    "sbertkit/evaluation/diagnosis",
    "sbertkit/evaluation/pseudo_pairs.py",
    *(
        f"sbertkit/encoder/{name}.py"
        for name in ("fitting", "grid", "network", "pooling", "tokenization", "transformer")
    ),
]


def corpus(path: Path) -> Path | list[str]:
    """A corpus; of NLI data the premises."""
    if not path.name.endswith(".jsonl.gz"):
        return path
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)["premise"] for line in lines))


class Labelled:
    """Judges configurations with labels: Spearman x 100, the mean over the dev sets.

    Args:
        encoder: Whose configurations they are.
        found: A diagnosis of it.
        root: Where the sets are.
    """

    def __init__(self, encoder: Encoder, found: Diagnosis, root: Path) -> None:
        poolings = list(dict.fromkeys(one.candidate.pooling for one in found.judged))
        self._fit = encode_grid(encoder, found.texts, poolings)
        self._sets = {
            name: Sentences(read_sts(root / f"sts/{name}.tsv", split="dev")) for name in SETS
        }
        self._grids = {
            name: encode_grid(encoder, sentences.texts, poolings)
            for name, sentences in self._sets.items()
        }

    def score(self, candidate: Candidate) -> float:
        """Of a configuration, its step fitted on the texts of the diagnosis."""
        step = None
        if candidate.step is not None:
            step = FITS[candidate.step](self._fit[candidate.pooling])
        scores = [
            sentences.scores(applied(step, self._grids[name][candidate.pooling]))["cosine"]
            for name, sentences in self._sets.items()
        ]
        return float(np.mean([score or 0.0 for score in scores]))


def measure(encoder: Encoder, texts: Path | list[str], root: Path) -> dict[str, Any]:
    """The agreement of a diagnosis with the labels."""
    started = time.perf_counter()
    found = diagnose(encoder, texts)
    seconds = time.perf_counter() - started
    labelled = Labelled(encoder, found, root)
    scores = {one.candidate: labelled.score(one.candidate) for one in found.judged}
    best = max(scores, key=lambda candidate: scores[candidate])
    agreement = spearman([one.score for one in found.judged], list(scores.values()))
    return {
        "pairs": found.pairs,
        "tried": len(found.judged),
        "seconds": round(seconds, 1),
        "rank_correlation": agreement.value,
        "labelled": {
            "as it is": scores[found.current.candidate],
            "first choice": scores[found.best.candidate],
            "recommended": scores[found.recommended.candidate],
            "best": scores[best],
        },
        "first choice": str(found.best.candidate),
        "recommended": str(found.recommended.candidate),
        "best": str(best),
        "gain": found.gain.difference,
        "interval": None if found.gain.interval is None else found.gain.interval._asdict(),
    }


def main() -> None:
    """Measures what is missing, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("sts/stsb.tsv")
    pieces = Pieces("diagnosis", MEASURED)
    for model in arguments.model:
        encoder = Encoder.load(model, device="cpu")
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        for name, place in CORPORA.items():
            key = f"{Path(model).name}:{name}"
            if pieces.known(key, settings) is None:
                figures = measure(encoder, corpus(root / place), root)
                print(key, figures, flush=True)
                pieces.add(key, settings, figures)


if __name__ == "__main__":
    main()
