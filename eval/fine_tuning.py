"""What objectives, stages, strategies and Matryoshka sizes gain, on equal budgets.

    SBERTKIT_DATA=FOLDER python eval/fine_tuning.py --base MODEL --work FOLDER
        [--tables stages objectives ...] [--seeds 1 2 3] [--only KEY ...] [--dry]

FOLDER holds nli/snli/train_part.jsonl.gz, train_part2.jsonl.gz, nli/lingnli/train.jsonl.gz,
sts/stsb.tsv, sts/stsb_zh_cnsd.tsv, sts/sick.tsv and retrieval/cranfield. Tables:

- stages: NLI, scored pairs, and both after each other, from MODEL and from all-MiniLM-L6-v2.
- objectives: each objective for as many steps, from MODEL.
- chinese: the objectives of scored pairs on the Chinese STS-B. The base knows English alone; most
  Chinese characters are unknown to it, so that the figures compare the objectives and nothing else.
- strategies: how much of the encoder moves, on 1,000, 10,000 and 60,000 rows of NLI.
- matryoshka: vectors truncated to fewer numbers, trained for it or not.

Each run is written to results/fine_tuning.json as an entry; the next call runs those that are
missing or were measured with other code. --work gets the encoders after each training, so that
tables share those of the same data and settings. No run uses a dev set. With ``--dry`` each run has
two steps, and nothing is written to results/.
"""

import hashlib
import json
import logging
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from recording import (
    WEIGHTS,
    Entry,
    Figures,
    data_folder,
    hashes_of,
    measure_tables,
    nli_files,
    table_arguments,
)

from sbertkit import (
    Encoder,
    TrainConfig,
    evaluate_retrieval,
    evaluate_sts,
    train_nli,
    train_pairs,
    train_sts,
)
from sbertkit.data.nli import NliSet, read_nli
from sbertkit.data.ranking import RankingPair, RankingSet
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.metrics import row_cosines
from sbertkit.training.objectives import Objective
from sbertkit.training.objectives.margin_mse import MarginMse

SOURCES = [*WEIGHTS, "eval/fine_tuning.py"]
SEEDS = (1, 2, 3)
DRY_STEPS = 2
STEPS = 200
"""Of 64 examples: about 2 minutes on two cores."""

STS_OBJECTIVES = ("cosent", "cosine", "angle")
SIZES = (384, 192, 96, 48, 24)
EPOCHS = {1_000: 12, 10_000: 4, 60_000: 2}
"""Passes over so many rows of NLI."""

STRATEGIES: dict[str, Figures] = {
    "full": {},
    "frozen 2": {"freeze_layers": 2},
    "frozen 4": {"freeze_layers": 4},
    "decay .95": {"layer_decay": 0.95},
    "decay .9": {"layer_decay": 0.9},
    "decay .8": {"layer_decay": 0.8},
    "LoRA": {"lora": 16},
    "progressive": {
        "unfreeze": {1_000: "0:2,3:4,6:all", 10_000: "0:2,1:4,2:all", 60_000: "0:3,1:all"}
    },
}

Train = Callable[[str, Path, TrainConfig], Any]
"""Trains a base into a folder."""


Stages = list[tuple[Train, TrainConfig]]
"""Trainings, each from the result of the one before."""
Score = Callable[[str], Figures]
"""Figures of the encoder in a folder."""


class Data:
    """The data sets, each read once."""

    def __init__(self) -> None:
        self.root = data_folder("nli/snli/train_part.jsonl.gz")

    @cache  # noqa: B019  # one object in a program
    def nli(self, rows: int | None = None) -> NliSet:
        """All rows, or some that are drawn."""
        read = read_nli(nli_files(self.root))
        if rows is None:
            return read
        return NliSet(tuple(random.Random(0).sample(list(read.pairs), rows)), ())

    @cache  # noqa: B019
    def rated(self) -> RankingSet:
        """Entailments and contradictions of the same premises, with the cosines of a teacher."""
        labels: dict[str, set[int]] = {}
        for premise, _, label in self.nli().pairs:
            labels.setdefault(premise, set()).add(label)
        chosen = [
            (premise, hypothesis, 1.0 if label == 0 else 0.0)
            for premise, hypothesis, label in self.nli().pairs
            if label != 1 and {0, 2} <= labels[premise] and premise != hypothesis
        ]
        chosen = list(dict.fromkeys(chosen))
        teacher = Encoder.load(BUNDLED_NAME, device="cpu")
        premises, hypotheses = zip(*(row[:2] for row in chosen), strict=True)
        vectors = teacher.encode([*premises, *hypotheses])
        rows = np.arange(len(chosen))
        scores = row_cosines(vectors, rows, rows + len(rows)).tolist()
        return RankingSet(
            tuple(RankingPair.of(*row, score) for row, score in zip(chosen, scores, strict=True))
        )

    def sts(
        self,
        base: str,
        output: Path,
        config: TrainConfig,
        *,
        objective: str = "cosent",
        file: str = "stsb",
    ) -> Any:
        """Trains on scored pairs."""
        config = replace(config, scale=(0.0, 5.0), split="train")
        return train_sts(
            base, self.root / f"sts/{file}.tsv", output, objective=objective, config=config
        )

    def on_nli(
        self,
        base: str,
        output: Path,
        config: TrainConfig,
        *,
        objective: str = "contrastive",
        rows: int | None = None,
    ) -> Any:
        """Trains on NLI."""
        return train_nli(base, self.nli(rows), output, objective=objective, config=config)

    def on_pairs(
        self, base: str, output: Path, config: TrainConfig, *, objective: str | Objective
    ) -> Any:
        """Trains on triplets of NLI."""
        return train_pairs(base, self.rated(), output, objective=objective, config=config)

    def english(self, folder: str) -> Figures:
        """Spearman times 100 on STS-B and SICK."""
        return scores(
            folder,
            {f"stsb {split}": (self.root / "sts/stsb.tsv", split) for split in ("dev", "test")}
            | {"sick test": (self.root / "sts/sick.tsv", "test")},
        )

    def chinese(self, folder: str) -> Figures:
        """Spearman times 100 on the Chinese STS-B."""
        return scores(
            folder,
            {
                f"stsb {split}": (self.root / "sts/stsb_zh_cnsd.tsv", split)
                for split in ("dev", "test")
            },
        )

    def truncated(self, folder: str) -> Figures:
        """Spearman and nDCG@10 times 100 by the size of the vectors."""
        found = {}
        for size in SIZES:
            encoder = Encoder.load(folder, normalize=True, device="cpu", dim=size)
            sts = evaluate_sts(encoder, self.root / "sts/stsb.tsv", split="test").spearman
            retrieval = evaluate_retrieval(
                encoder, self.root / "retrieval/cranfield", measures=["nDCG@10"]
            )
            found[str(size)] = {
                "stsb test": hundredfold(sts),
                "cranfield": hundredfold(retrieval.measures["nDCG@10"]),
            }
        return {"sizes": found}


def scores(folder: str, sets: dict[str, tuple[Path, str]]) -> Figures:
    """Spearman times 100 of the encoder in a folder on splits of files."""
    encoder = Encoder.load(folder, normalize=True, device="cpu", pooling="mean")
    return {
        "spearman": {
            name: hundredfold(evaluate_sts(encoder, file, split=split).spearman)
            for name, (file, split) in sets.items()
        }
    }


def hundredfold(value: float | None) -> float | None:
    """A score times 100."""
    return None if value is None else round(100 * value, 2)


@dataclass(frozen=True, slots=True)
class Bench:
    """Makes the entries.

    Attributes:
        work: Folder of the trained encoders.
        data: What they are trained on.
        base: The plain encoder.
        config: The settings of its trainings.
    """

    work: Path
    data: Data
    base: str
    config: TrainConfig

    def run(self, key: str, base: str, parts: Stages, score: Score) -> Entry:
        """An entry, with the settings of its trainings."""
        trainings = [config.identity() for _, config in parts]
        settings = {"base": Path(base).name, "trainings": trainings}
        seed = f": {self.config.seed}" if parts else ""
        return Entry(key + seed, settings, partial(self._measure, base, parts, score))

    def _measure(self, base: str, parts: Stages, score: Score) -> Figures:
        """Trains and scores."""
        seconds, steps = 0.0, 0
        name = f"{Path(base).name} {hashes_of(WEIGHTS)}"
        for train, config in parts:
            name += f" {_described(train)} {config.identity()}"
            folder = self.work / hashlib.sha256(name.encode()).hexdigest()[:16]
            if not folder.exists():
                with tempfile.TemporaryDirectory(dir=self.work) as unfinished:
                    train(base, Path(unfinished) / "model", config)
                    (Path(unfinished) / "model").rename(folder)
            base = str(folder)
            manifest = json.loads((folder / "sbertkit.json").read_text(encoding="utf-8"))
            record = manifest["lineage"]
            seconds += record["seconds"]
            steps += record["steps"]
        return {"steps": steps, "seconds": round(seconds, 1), **score(base)}


def _described(train: Train) -> str:
    """A method of `Data`, with its arguments."""
    if isinstance(train, partial):
        return f"{_described(train.func)} {sorted(train.keywords.items())}"
    name: str = train.__name__  # type: ignore[attr-defined]
    return name


def stages(bench: Bench) -> Iterator[Entry]:
    """NLI, scored pairs and both, from two bases."""
    data, config = bench.data, bench.config
    ways: dict[str, tuple[Train, ...]] = {
        "untrained": (),
        "NLI": (data.on_nli,),
        "STS": (data.sts,),
        "NLI, STS": (data.on_nli, data.sts),
    }
    for start in (bench.base, BUNDLED_NAME):
        for name, parts in ways.items():
            if name != "untrained" or config.seed == SEEDS[0]:
                yield bench.run(
                    f"stages: {Path(start).name}: {name}",
                    start,
                    [(part, config) for part in parts],
                    data.english,
                )


def objectives(bench: Bench) -> Iterator[Entry]:
    """Each objective for as many steps."""
    data = bench.data
    trains: dict[str, Train] = {
        "softmax": partial(data.on_nli, objective="softmax"),
        "contrastive": data.on_nli,
        "cosent": data.sts,
        **{name: partial(data.sts, objective=name) for name in STS_OBJECTIVES[1:]},
        "triplet": partial(data.on_pairs, objective="triplet"),
        # The teacher's scores are cosines too.
        "margin-mse": partial(data.on_pairs, objective=MarginMse(teacher_scale=1.0)),
    }
    for name, train in trains.items():
        parts: Stages = [(train, bench.config)]
        yield bench.run(f"objectives: {name}", bench.base, parts, data.english)


def chinese(bench: Bench) -> Iterator[Entry]:
    """The objectives of scored pairs, in Chinese."""
    for name in STS_OBJECTIVES:
        train = partial(bench.data.sts, objective=name, file="stsb_zh_cnsd")
        parts: Stages = [(train, bench.config)]
        yield bench.run(f"chinese: {name}", BUNDLED_NAME, parts, bench.data.chinese)


def strategies(bench: Bench) -> Iterator[Entry]:
    """How much of the encoder moves, on data of three sizes."""
    data, config = bench.data, bench.config
    for rows, epochs in EPOCHS.items():
        for name, changes in STRATEGIES.items():
            chosen = {
                key: value[rows] if isinstance(value, dict) else value
                for key, value in changes.items()
            }
            if config.max_steps == DRY_STEPS:
                changed = replace(config, **{**chosen, "unfreeze": None})
            else:
                changed = replace(config, max_steps=None, epochs=epochs, **chosen)
            yield bench.run(
                f"strategies: {rows} rows: {name}",
                bench.base,
                [(partial(data.on_nli, rows=rows), changed)],
                data.english,
            )


def matryoshka(bench: Bench) -> Iterator[Entry]:
    """Truncated vectors, trained for it or not."""
    for name, sizes in (("without", None), ("with", SIZES)):
        changed = replace(bench.config, matryoshka=sizes)
        parts: Stages = [(bench.data.on_nli, changed)]
        yield bench.run(f"matryoshka: {name}", bench.base, parts, bench.data.truncated)


TABLES = {one.__name__: one for one in (stages, objectives, chinese, strategies, matryoshka)}


def main() -> None:
    """Measures the missing entries."""
    parser = table_arguments(__doc__, list(TABLES), SEEDS)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    data = Data()

    def entries_of(table: str, seed: int) -> Iterator[Entry]:
        steps = DRY_STEPS if given.dry else STEPS
        config = TrainConfig(max_steps=steps, seed=seed, device="cpu")
        return TABLES[table](Bench(given.work, data, given.base, config))

    measure_tables("fine_tuning", SOURCES, given, entries_of)


if __name__ == "__main__":
    main()
