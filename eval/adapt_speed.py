"""Speed and memory of masked-language modeling: adapt against transformers' Trainer.

    SBERTKIT_DATA=FOLDER python eval/adapt_speed.py --base MODEL [--texts 6400] [--runs 3] [--dry]

FOLDER holds retrieval/cranfield and the other collections of `SETS`, whose texts are trained on,
truncated to 128 tokens. Both train all weights of MODEL, a plain checkpoint with the head of its
masked-language modeling, for one epoch in batches of 32 with 15 % of the tokens masked and
80/10/10: adapt by its defaults, the peer with its Trainer, DataCollatorForLanguageModeling and
AdamW, in turns, each run in a process of its own. Tokens are those of the texts without padding.
Nothing else should run meanwhile.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from recording import WEIGHTS, Figures, arguments_of, data_folder, median_ratio, record

from sbertkit import AdaptConfig, adapt
from sbertkit.data import read_corpus

SETS = ("cranfield", "cisi", "lisa", "scifact")
MAX_TOKENS = 128
BATCH = 32
LEARNING_RATE = 5e-5
OURS, THEIRS = "sbertkit", "transformers"
WAYS = ((OURS, "auto"), (THEIRS, "fp32"), (OURS, "fp32"), (THEIRS, "bf16"))
"""Each with its default precision, then in that of the other."""


def texts(count: int) -> list[str]:
    """The first texts of the collections."""
    root = data_folder(f"retrieval/{SETS[0]}") / "retrieval"
    found = (one.document.text for name in SETS for one in read_corpus(root / name))
    distinct = dict.fromkeys(" ".join(text.split()) for text in found)
    return [text for text in distinct if len(text) > 100][:count]


def by_sbertkit(base: str, rows: Sequence[str], precision: str, folder: Path) -> Figures:
    """One epoch by adapt."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    config = AdaptConfig(
        batch_size=BATCH,
        learning_rate=LEARNING_RATE,
        max_tokens=MAX_TOKENS,
        precision=precision,
        held_out=0.001,
        checkpoint_steps=10**9,
        device="cpu",
    )
    result = adapt(base, corpus, folder / "model", pooling="mean", config=config)
    losses = [row["loss"] for row in result.log if "loss" in row]
    return {"examples_per_second": result.record["examples_per_second"], "loss": _last(losses)}


def by_transformers(base: str, rows: Sequence[str], precision: str, folder: Path) -> Figures:
    """One epoch by the library's own Trainer."""
    import transformers
    from datasets import Dataset

    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    model = transformers.AutoModelForMaskedLM.from_pretrained(base)
    encoded = tokenizer(list(rows), truncation=True, max_length=MAX_TOKENS)
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            bf16=precision == "bf16",
            use_cpu=True,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"input_ids": encoded["input_ids"]}),
        data_collator=transformers.DataCollatorForLanguageModeling(tokenizer),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    seconds = trainer.train().metrics["train_runtime"]
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return {"examples_per_second": len(rows) / seconds, "loss": _last(losses)}


def _last(losses: Sequence[float]) -> float:
    """The mean of the last quarter."""
    return round(statistics.mean(losses[-max(1, len(losses) // 4) :]), 4)


def one(given: Namespace) -> Figures:
    """One run in this process, with its peak of memory."""
    name, precision = given.one
    rows = texts(given.texts)
    work = by_sbertkit if name == OURS else by_transformers
    with tempfile.TemporaryDirectory() as folder:
        figures = work(given.base, rows, precision, Path(folder))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**figures, "peak_mb": round(peak)}


def run(given: Namespace, way: tuple[str, str]) -> Figures:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--base", given.base, "--texts", str(given.texts)]
    ran = subprocess.run(
        [*command, "--one", *way], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    print(*way, figures, flush=True)
    return figures


def mean_tokens(given: Namespace) -> float:
    """The mean number of tokens of a text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(given.base)
    found = tokenizer(texts(given.texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]
    return statistics.mean(map(len, found))


def main() -> None:
    """Measures, prints and records."""
    parser = arguments_of(__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--texts", type=int, default=6_400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("NAME", "PRECISION"))
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given)))
        return
    if given.dry:
        given.texts, given.runs = 96, 1
    tokens = mean_tokens(given)
    turns = [[run(given, way) for way in WAYS] for _ in range(given.runs)]
    figures: Figures = {"texts": given.texts, "tokens": round(tokens, 1), "runs": given.runs}
    speeds = []
    for number, (name, precision) in enumerate(WAYS):
        runs = [turn[number] for turn in turns]
        speeds.append([one["examples_per_second"] * tokens for one in runs])
        figures[f"{name}, {precision}"] = {
            "tokens_per_second": round(statistics.median(speeds[-1])),
            "loss": round(statistics.mean(one["loss"] for one in runs), 4),
            "peak_mb": max(one["peak_mb"] for one in runs),
        }
    figures["ratio of defaults"] = round(median_ratio(speeds[0], speeds[1]), 3)
    figures["ratio in fp32"] = round(median_ratio(speeds[2], speeds[1]), 3)
    figures["ratio in bf16"] = round(median_ratio(speeds[0], speeds[3]), 3)
    print(figures)
    if not given.dry:
        sources = [*WEIGHTS, "sbertkit/training/pretraining", "eval/adapt_speed.py"]
        record("adapt_speed", sources, figures)


if __name__ == "__main__":
    main()
