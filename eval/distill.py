"""What all-MiniLM-L6-v2 keeps when it is distilled to fewer layers: scores and encoding speed.

    SBERTKIT_DATA=FOLDER python eval/distill.py --output WORK [--layers 4 3 2] [--texts 80000]
        [--epochs 1] [--runs 5] [--dry]

FOLDER holds the files of `nli_files`, sts/stsb.tsv, sts/sick.tsv and retrieval/scifact. Texts are
the sentences of the NLI files, of the train splits of both STS files and the glosses of the bundled
demo corpus, each once; the sentences of STS-B's test split are left out, SciFact is not among them.
The dev split of STS-B chooses the checkpoint.

WORK, outside the project, gets the texts and a model for each size; the next call resumes what was
interrupted and keeps what is done. Each size is an entry of results/distill.json: STS-B test,
SciFact nDCG@10, and the speed on 6,000 glosses, in turns with the teacher's. Nothing else should
run meanwhile.
"""

import random
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from recording import (
    VECTORS,
    WEIGHTS,
    Entries,
    Figures,
    alternate,
    arguments_of,
    data_folder,
    median_ratio,
    nli_files,
)

from sbertkit import Encoder, TrainConfig, distill, evaluate_retrieval, evaluate_sts
from sbertkit.data import read_corpus
from sbertkit.data.nli import read_nli
from sbertkit.data.sts import read_sts
from sbertkit.data.wordnet import demo_corpus
from sbertkit.encoder.layers import with_layers

MODEL = "all-MiniLM-L6-v2"
STS_FILES = ("stsb", "sick")
SPEED_TEXTS = 6_000
SOURCES = [*WEIGHTS, *VECTORS, "sbertkit/encoder/layers.py", "eval/distill.py"]


def sentences(root: Path) -> Iterator[str]:
    """All texts, some of them several times."""
    for pair in read_nli(nli_files(root)).pairs:
        yield from pair[:2]
    for name in STS_FILES:
        for one in read_sts(root / "sts" / f"{name}.tsv", split="train").pairs:
            yield from (one.first, one.second)
    yield from glosses()


def glosses() -> list[str]:
    """The glosses of the demo corpus."""
    return [found.document.text for found in read_corpus(demo_corpus())]


def written_texts(root: Path, path: Path, count: int) -> Path:
    """The file of the texts, a line each, written where it is not there yet."""
    if not path.is_file():
        held_out = {
            text
            for one in read_sts(root / "sts" / "stsb.tsv", split="test").pairs
            for text in (one.first, one.second)
        }
        found = dict.fromkeys(" ".join(text.split()) for text in sentences(root))
        texts = [text for text in found if text and text not in held_out]
        random.Random(0).shuffle(texts)
        staged = path.with_suffix(".tmp")
        staged.write_text("".join(f"{text}\n" for text in texts[:count]), encoding="utf-8")
        staged.replace(path)
    return path


def scores(encoder: Encoder, root: Path, *, dry: bool) -> Figures:
    """STS-B test and SciFact."""
    sts = evaluate_sts(encoder, root / "sts" / "stsb.tsv", split="test").spearman
    figures: Figures = {"stsb": sts, "ndcg": None}
    if not dry:
        found = evaluate_retrieval(encoder, root / "retrieval" / "scifact", measures=("nDCG@10",))
        figures["ndcg"] = found.measures["nDCG@10"]
    return figures


def speeds(teacher: Encoder, student: Encoder, runs: int, count: int) -> Figures:
    """Texts per second of both in turns, and the ratio."""
    texts = random.Random(0).sample(glosses(), count)

    def timed(encoder: Encoder) -> Callable[[], float]:
        def seconds() -> float:
            started = time.perf_counter()
            encoder.encode(texts)
            return time.perf_counter() - started

        return seconds

    both = alternate(runs, timed(teacher), timed(student))
    per_second = [round(count / sorted(one)[len(one) // 2], 1) for one in both]
    return {
        "teacher_per_second": per_second[0],
        "per_second": per_second[1],
        "ratio": round(median_ratio(*both), 3),
    }


def load(model: str | Path) -> Encoder:
    """An encoder run by torch, as its student is."""
    return Encoder.load(model, backend="torch", device="cpu")


def trained(given: Namespace, root: Path, layers: int) -> Path:
    """The student of so many layers, trained, resumed, or done before."""
    output: Path = given.output / f"layers-{layers}"
    if not output.exists():
        config = TrainConfig(
            epochs=given.epochs,
            max_steps=given.max_steps,
            device="cpu",
            progress=True,
            resume=output.with_name(f"{output.name}.run").exists(),
        )
        texts = written_texts(root, given.output / f"texts-{given.texts}.txt", given.texts)
        dev = root / "sts" / "stsb.tsv"
        distill(MODEL, texts, output, layers=layers, dev=dev, config=config)
    return output


def measure(given: Namespace, root: Path, layers: int | None) -> Figures:
    """The teacher, or a student."""
    teacher = load(MODEL)
    if layers is None:
        return scores(teacher, root, dry=given.dry)
    untrained = with_layers(teacher, layers)
    before = evaluate_sts(untrained, root / "sts" / "stsb.tsv", split="test").spearman
    folder = trained(given, root, layers)
    student = load(folder)
    count = 500 if given.dry else SPEED_TEXTS
    sizes = [
        sum(one.numel() for one in x.torch.used_parameters.values()) for x in (teacher, student)
    ]
    return {
        **scores(student, root, dry=given.dry),
        "stsb_before": before,
        "parameters": sizes[1],
        "teacher_parameters": sizes[0],
        **speeds(teacher, student, given.runs, count),
    }


def main() -> None:
    """Measures the missing sizes."""
    parser = arguments_of(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 3, 2])
    parser.add_argument("--texts", type=int, default=80_000)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dry", action="store_true", help="print instead of writing, no SciFact")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    root = data_folder("sts/stsb.tsv")
    names = ("texts", "epochs", "max_steps", "runs")
    settings = {name: getattr(given, name) for name in names} | {"model": MODEL}
    entries = Entries("distill", SOURCES)
    for layers in (None, *given.layers):
        key = "teacher" if layers is None else f"{layers} layers"
        if given.dry:
            print(key, measure(given, root, layers), flush=True)
            continue
        entries.measure(key, settings, partial(measure, given, root, layers))


if __name__ == "__main__":
    main()
