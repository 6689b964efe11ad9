"""What pretraining on one's own text brings: the road to search, the tasks, and the notes' claims.

    SBERTKIT_DATA=FOLDER python eval/adaptation.py --base MODEL --wordnet FOLDER --gcide FILE
        [--tables tasks road claims scratch] [--seeds 1 2] [--only KEY ...] [--dry]

--wordnet is the folder of WordNet's data files and --gcide the file gcide.dict.dz (Debian's
wordnet-base and dict-gcide). SBERTKIT_DATA holds nli/, sts/stsb.tsv, retrieval/scifact and
cranfield, and corpora/. Tables:

- tasks: each task for some hundred steps on the glosses of WordNet, from all-MiniLM-L6-v2.
- road: glosses, then NLI, from MODEL; scored on the reverse dictionary (`reverse_dictionary`), on
  SciFact and on Cranfield after each step.
- claims: what is hidden and how, each pretraining a small encoder from random weights for as long,
  then NLI; scored on STS-B dev and on the reverse dictionary.
- scratch: the same encoder for half an hour.

Each run is an entry of results/adaptation.json; the next call measures those that are missing. With
``--dry`` each run has two steps, and nothing is written to results/.
"""

import gzip
import json
import logging
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import reverse_dictionary
import transformers
from recording import (
    WEIGHTS,
    Entry,
    Figures,
    data_folder,
    measure_tables,
    nli_files,
    table_arguments,
)

from sbertkit import (
    AdaptConfig,
    Encoder,
    TrainConfig,
    adapt,
    evaluate_retrieval,
    evaluate_sts,
    train_nli,
)
from sbertkit.arguments import refuses_unknown
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.training.pretraining.from_scratch import FromScratch
from sbertkit.training.pretraining.tasks import MaskedTokens, PretrainingTask

SOURCES = [
    *WEIGHTS,
    "sbertkit/training/pretraining",
    "eval/adaptation.py",
    "eval/reverse_dictionary.py",
]
SEEDS = (1, 2)
CORPORA = ("en_reuters_titles", "en_reuters_bodies", "en_stackoverflow_titles")
DRY_STEPS = 2
TASK_STEPS = 300
ROAD_STEPS = 500
NLI_STEPS = 200
CLAIM_STEPS = 1_500
SCRATCH_STEPS = 9_000
"""About half an hour on two cores."""
RTD_STEPS = 1_000
"""As long as `CLAIM_STEPS` of masked-language modeling: two networks for each step."""

BATCH = 64
TOKENS = 64
"""Tokens per text, of adapt and NLI; glosses have 15 in the mean."""
TASKS = ("mlm", "wwm", "span", "rtd", "simcse", "tsdae", "retromae", "nsp", "sop")
ROAD = ("mlm", "wwm", "tsdae", "simcse", "retromae")
SMALL = {
    "model_type": "bert",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}
VOCABULARY = 8_000

Task = str | PretrainingTask | tuple[str, ...]


@refuses_unknown
@dataclass(frozen=True, slots=True)
class AlwaysMasked(MaskedTokens):
    """Masked-language modeling without random and kept tokens."""

    masked_share: ClassVar[float] = 1.0
    random_share: ClassVar[float] = 0.0


class Data:
    """What is trained on and scored with; files are made once, in the work folder."""

    def __init__(self, given: Namespace, work: Path) -> None:
        self.root = data_folder("nli/snli/train_part.jsonl.gz")
        self._given = given
        self._work = work

    @cached_property
    def glosses(self) -> Path:
        """The glosses of WordNet, a line each."""
        found = dict.fromkeys(one.gloss for one in reverse_dictionary.synsets(self._given.wordnet))
        return self._lines("glosses", found)

    @cached_property
    def texts(self) -> Path:
        """Titles, stories, questions and glosses, a line each."""
        found = dict.fromkeys(self.glosses.read_text(encoding="utf-8").splitlines())
        for name in CORPORA:
            found.update(dict.fromkeys(self._corpus(name)))
        return self._lines("texts", found)

    @cached_property
    def stories(self) -> Path:
        """The stories of Reuters as documents, a record each."""
        path = self._work / "stories.jsonl"
        rows = (json.dumps({"text": text}) for text in self._corpus("en_reuters_bodies"))
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        return path

    @cached_property
    def dictionary(self) -> Path:
        """The reverse dictionary."""
        path = self._work / "dictionary"
        reverse_dictionary.write(
            path,
            self._given.wordnet,
            self._given.gcide,
            queries=reverse_dictionary.QUERIES,
            documents=reverse_dictionary.DOCUMENTS,
        )
        return path

    @cached_property
    def small(self) -> Path:
        """The sizes of the small encoder."""
        path = self._work / "sizes.json"
        path.write_text(json.dumps(SMALL), encoding="utf-8")
        return path

    @property
    def nli(self) -> list[Path]:
        """The files of NLI."""
        return nli_files(self.root)

    def stsb(self, folder: str | Path, pooling: str = "mean") -> float:
        """Spearman times 100 on the dev split."""
        encoder = Encoder.load(folder, pooling=pooling, normalize=True, device="cpu")
        found = evaluate_sts(encoder, self.root / "sts/stsb.tsv", split="dev").spearman
        return round(100 * (found or 0.0), 2)

    def ndcg(self, folder: str | Path, *sets: Path) -> Figures:
        """nDCG@10 times 100 by collection."""
        encoder = Encoder.load(folder, pooling="mean", normalize=True, device="cpu")
        found = {}
        for path in sets:
            result = evaluate_retrieval(encoder, path, measures=["nDCG@10"])
            found[path.name] = round(100 * result.measures["nDCG@10"], 2)
        return found

    def _corpus(self, name: str) -> list[str]:
        with gzip.open(self.root / "corpora" / f"{name}.txt.gz", "rt", encoding="utf-8") as file:
            return [" ".join(line.split()) for line in file]

    def _lines(self, name: str, texts: dict[str, None]) -> Path:
        path = self._work / f"{name}.txt"
        path.write_text("".join(f"{text}\n" for text in texts if text), encoding="utf-8")
        return path


@dataclass(frozen=True, slots=True)
class Bench:
    """Data, base, seed, and whether runs are only tried."""

    data: Data
    base: str
    seed: int
    dry: bool

    def adapting(self, steps: int, batch_size: int = BATCH) -> AdaptConfig:
        """The settings of adapt."""
        return AdaptConfig(
            max_steps=DRY_STEPS if self.dry else steps,
            batch_size=batch_size,
            max_tokens=TOKENS,
            seed=self.seed,
            device="cpu",
        )

    @property
    def tuning(self) -> TrainConfig:
        """The settings of NLI."""
        steps = DRY_STEPS if self.dry else NLI_STEPS
        return TrainConfig(max_steps=steps, max_tokens=TOKENS, seed=self.seed, device="cpu")

    def tuned(self, base: str | Path, output: Path) -> Path:
        """The folder of an encoder, trained on NLI."""
        train_nli(base, self.data.nli, output, pooling="mean", config=self.tuning)
        return output

    def run(self, key: str, measure: Callable[[Path], Figures], **settings: object) -> Entry:
        """An entry whose function gets a folder to write to."""

        def measured() -> Figures:
            with tempfile.TemporaryDirectory() as folder:
                return measure(Path(folder))

        return Entry(f"{key}: {self.seed}", {**settings, "nli": self.tuning.identity()}, measured)


def adapted(
    base: str | FromScratch, corpus: Path, output: Path, task: Task, config: AdaptConfig
) -> Figures:
    """Figures of a run of adapt."""
    result = adapt(base, corpus, output, task=task, pooling="mean", config=config)
    measured = result.record["held_out"]
    return {
        "steps": result.steps,
        "seconds": round(result.record["seconds"], 1),
        "held_out": {
            when: {name: round(value, 4) for name, value in measured[when].items()}
            for when in ("before", "after")
        },
    }


def tasks(bench: Bench) -> Iterator[Entry]:
    """Each task from all-MiniLM-L6-v2."""
    data, config = bench.data, bench.adapting(TASK_STEPS)
    for task in TASKS:
        corpus = data.stories if task in ("nsp", "sop") else data.glosses

        def measure(folder: Path, task: str = task, corpus: Path = corpus) -> Figures:
            return adapted(BUNDLED_NAME, corpus, folder / "model", task, config)

        yield bench.run(f"tasks: {task}", measure, adapt=config.identity())


def road(bench: Bench) -> Iterator[Entry]:
    """Glosses, then NLI."""
    data, config = bench.data, bench.adapting(ROAD_STEPS)
    sets = (data.dictionary, data.root / "retrieval/scifact", data.root / "retrieval/cranfield")

    def plain(folder: Path) -> Figures:
        before = data.ndcg(bench.base, *sets)
        tuned = data.ndcg(bench.tuned(bench.base, folder / "nli"), *sets)
        return {"before": before, "tuned": tuned}

    def measure(folder: Path, task: str) -> Figures:
        output = folder / "adapted"
        figures = adapted(bench.base, data.glosses, output, task, config)
        before = data.ndcg(output, *sets)
        tuned = data.ndcg(bench.tuned(output, folder / "nli"), *sets)
        return {**figures, "before": before, "tuned": tuned}

    yield bench.run("road: no adapt", plain)
    for task in ROAD:
        yield bench.run(f"road: {task}", partial(measure, task=task), adapt=config.identity())


def claims(bench: Bench) -> Iterator[Entry]:
    """What is hidden and how, on equal time, from random weights."""
    data, config = bench.data, bench.adapting(CLAIM_STEPS)
    ways: dict[str, tuple[Task, AdaptConfig, Path]] = {
        "mlm": ("mlm", config, data.texts),
        "always [MASK]": (AlwaysMasked(), config, data.texts),
        "static": (MaskedTokens(static=1), config, data.texts),
        "wwm": ("wwm", config, data.texts),
        "span": ("span", config, data.texts),
        "rtd": ("rtd", bench.adapting(RTD_STEPS), data.texts),
        "batches of 16": ("mlm", bench.adapting(CLAIM_STEPS, 16), data.texts),
        "batches of 16, as many texts": (
            "mlm",
            bench.adapting(4 * CLAIM_STEPS, 16),
            data.texts,
        ),
        "a third of the steps": ("mlm", bench.adapting(CLAIM_STEPS // 3), data.texts),
        "stories: mlm": ("mlm", config, data.stories),
        "stories: mlm, nsp": (("mlm", "nsp"), config, data.stories),
        "stories: mlm, sop": (("mlm", "sop"), config, data.stories),
    }
    for name, (task, changed, corpus) in ways.items():
        measure = partial(from_scratch, bench, task, changed, corpus)
        yield bench.run(f"claims: {name}", measure, adapt=changed.identity())


def scratch(bench: Bench) -> Iterator[Entry]:
    """The small encoder for half an hour."""
    config = bench.adapting(SCRATCH_STEPS)
    measure = partial(from_scratch, bench, "mlm", config, bench.data.texts)
    yield bench.run("scratch: mlm", measure, adapt=config.identity())


def from_scratch(
    bench: Bench, task: Task, config: AdaptConfig, corpus: Path, folder: Path
) -> Figures:
    """A small encoder from random weights, then NLI."""
    data = bench.data
    base = FromScratch(data.small, vocabulary=VOCABULARY, lowercase=True)
    output = folder / "model"
    figures = adapted(base, corpus, output, task, config)
    before = {pooling: data.stsb(output, pooling) for pooling in ("cls", "mean")}
    tuned = bench.tuned(output, folder / "nli")
    return {
        **figures,
        "stsb": {**before, "tuned": data.stsb(tuned)},
        "before": data.ndcg(output, data.dictionary),
        "tuned": data.ndcg(tuned, data.dictionary),
    }


TABLES = {one.__name__: one for one in (tasks, road, claims, scratch)}


def main() -> None:
    """Measures the missing entries."""
    parser = table_arguments(__doc__, list(TABLES), SEEDS)
    parser.add_argument("--wordnet", type=Path, required=True)
    parser.add_argument("--gcide", type=Path, required=True)
    given = parser.parse_args()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as work:
        data = Data(given, Path(work))

        def entries_of(table: str, seed: int) -> Iterator[Entry]:
            return TABLES[table](Bench(data, given.base, seed, given.dry))

        measure_tables("adaptation", SOURCES, given, entries_of)


if __name__ == "__main__":
    main()
