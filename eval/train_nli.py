"""How good encoders become by NLI training in the same time: sbertkit and sentence-transformers.

    SBERTKIT_DATA=FOLDER python eval/train_nli.py --base MODEL [--only softmax:1 base:mean ...]
    SBERTKIT_DATA=FOLDER python eval/train_nli.py --base MODEL --ablation

FOLDER holds nli/snli/train_part.jsonl.gz, nli/snli/train_part2.jsonl.gz, nli/lingnli/train.jsonl.gz
and sts/stsb.tsv, sts12.tsv, sts13.tsv, sts14.tsv, sick.tsv. Each run is written to
results/train_nli.json (with --ablation results/pooling.json) when it is done; the next call goes on
with those that are missing or were made with other code or settings.

Equal time: some steps that do not count measure the speed, then a fresh run trains for as many
steps as fit into the minutes, so that its learning rate falls to zero within them. Seconds are
those from the first step to the last, without loading, checkpoints and the guard's looks. No run
sees a dev set, and the test sets choose nothing. Nothing else should run on the cores.
"""

import argparse
import logging
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import transformers
from nli_runs import (
    FILES,
    METHODS,
    OWN_CODE,
    PEER_CODE,
    SETS,
    Method,
    scores,
    steps_within,
    summary,
)
from recording import RESULTS, Pieces, data_folder

from sbertkit import Encoder
from sbertkit.data.nli import NliSet, read_nli
from sbertkit.training.series import ABLATED_POOLINGS

SEEDS = (1, 2, 3)
BASE_POOLINGS = ("mean", "cls")
ABLATED_OBJECTIVES = ("softmax", "contrastive")


class Measurement:
    """Runs from one base on one data set, and where their results go.

    Args:
        arguments: Of the command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        root = data_folder("nli/snli/train_part.jsonl.gz")
        data = read_nli([root / "nli" / f"{name}.jsonl.gz" for name in FILES])
        self._data = NliSet(data.pairs[: arguments.rows], data.sources)
        self._sts = root / "sts"
        self._base: Path = arguments.base
        self._keep: Path | None = arguments.keep
        self._calibration: int | None = arguments.calibration
        # Made at once, since the hashes are to be those of the code that is loaded now.
        self._own = Pieces("train_nli", OWN_CODE, arguments.results)
        self._peers = Pieces("train_nli", PEER_CODE, arguments.results)
        self._poolings = Pieces("pooling", OWN_CODE, arguments.results)
        self._settings = {
            "base": self._base.resolve().name,
            "fingerprint": self._load("mean").fingerprint,
            "rows": len(self._data.pairs),
        }

    def base(self, pooling: str) -> None:
        """The untrained base, on the test sets."""
        key = f"base:{pooling}"
        if self._own.known(key, self._settings) is None:
            figures = scores(self._load(pooling), self._sts, SETS, "test")
            _show(key, figures)
            self._own.add(key, self._settings, figures)

    def run(self, name: str, seed: int, minutes: float) -> None:
        """A method with a seed, on the test sets."""
        method = METHODS[name]
        pieces = self._own if method.peer is None else self._peers
        settings = {**self._settings, "minutes": minutes}
        key = f"{name}:{seed}"
        if pieces.known(key, settings) is not None:
            return
        steps = self._steps_within(minutes, method, seed)
        print(f"{key}: {steps} steps in {minutes:g} minutes", flush=True)
        figures = self._train(key, method, SETS, split="test", steps=steps, seed=seed)
        pieces.add(key, settings, figures)

    def ablate(self, objective: str, pooling: str, minutes: float) -> None:
        """An objective with a pooling, on STS-B dev before and after; poolings do equal steps."""
        pieces = self._poolings
        settings = {**self._settings, "minutes": minutes}
        key = f"{objective}:{pooling}"
        if pieces.known(key, settings) is not None:
            return
        method = replace(METHODS[objective], pooling=pooling)
        others = (pieces.known(f"{objective}:{other}", settings) for other in ABLATED_POOLINGS)
        steps = next((other["steps"] for other in others if other is not None), None)
        if steps is None:
            steps = self._steps_within(minutes, method, SEEDS[0])
        before = scores(self._load(pooling), self._sts, SETS[:1], "dev")
        _show(f"{key} before", before)
        after = self._train(key, method, SETS[:1], split="dev", steps=steps, seed=SEEDS[0])
        pieces.add(key, settings, {**after, "before": before})

    def _train(
        self, key: str, method: Method, sets: tuple[str, ...], *, split: str, steps: int, seed: int
    ) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "model"
            trained = method.train(self._base, self._data, folder, steps=steps, seed=seed)
            encoder = Encoder.load(folder, normalize=True, device="cpu")
            figures = {**summary(method, trained), **scores(encoder, self._sts, sets, split)}
            if self._keep is not None:
                kept = self._keep / key.replace(":", "-")
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept)
        _show(key, figures)
        return figures

    def _steps_within(self, minutes: float, method: Method, seed: int) -> int:
        if self._calibration is not None:
            method = replace(method, calibration=self._calibration)
        return steps_within(minutes, method, self._base, self._data, seed=seed)

    def _load(self, pooling: str) -> Encoder:
        return Encoder.load(self._base, pooling=pooling, normalize=True, device="cpu")


def _show(key: str, figures: dict[str, Any]) -> None:
    trained = {name: figures[name] for name in ("steps", "seconds", "seen") if name in figures}
    print(f"{key}: {trained or ''} {figures['spearman']} {figures['space']}", flush=True)


def keys() -> list[str]:
    """All pieces in their order: a whole comparison with the first seed before the next."""
    runs = [
        f"{name}:{seed}"
        for seed in SEEDS
        for name, method in METHODS.items()
        # bf16 is not what users of the peer get: once, to tell how much is due to it.
        if seed == SEEDS[0] or method.peer is None or not method.peer.bf16
    ]
    return [*(f"base:{pooling}" for pooling in BASE_POOLINGS), *runs]


def ablation_keys() -> list[str]:
    """All pieces of the ablation in their order."""
    return [f"{name}:{pooling}" for name in ABLATED_OBJECTIVES for pooling in ABLATED_POOLINGS]


def main() -> None:
    """Measures what is missing, prints and records."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, required=True, help="a plain model folder")
    parser.add_argument(
        "--only", nargs="+", help="pieces, such as softmax:1, base:cls or softmax:max"
    )
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--ablation", action="store_true", help="poolings in the place of methods")
    parser.add_argument("--ablation-minutes", type=float, default=3.0)
    parser.add_argument("--keep", type=Path, help="where trained models are left")
    parser.add_argument("--rows", type=int, help="only so many rows, to try the script")
    parser.add_argument("--calibration", type=int, help="fewer steps that measure the speed")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    there = ablation_keys() if arguments.ablation else keys()
    unknown = set(arguments.only or ()) - set(there)
    if unknown:
        sys.exit(f"--only: expected of {' '.join(there)}, found {' '.join(sorted(unknown))}")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    measurement = Measurement(arguments)
    for key in arguments.only or there:
        name, _, number = key.partition(":")
        if arguments.ablation:
            measurement.ablate(name, number, arguments.ablation_minutes)
        elif name == "base":
            measurement.base(number)
        else:
            measurement.run(name, int(number), arguments.minutes)


if __name__ == "__main__":
    main()
