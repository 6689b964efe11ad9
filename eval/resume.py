"""Whether a run that is killed several times ends with the weights of an uninterrupted one.

    SBERTKIT_DATA=FOLDER python eval/resume.py [--only fp32]

FOLDER holds nli/snli/train_part.jsonl.gz. all-MiniLM-L6-v2 is trained on its first rows, in fp32
and in bf16: once without interruption, and once by processes that get SIGKILL after random steps,
each followed by one that resumes. Then all weights of both models are compared, head included. Each
precision is an entry of results/resume.json.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from recording import RESULTS, RESUMING, Entries, Figures, arguments_of, data_folder
from safetensors.torch import load_file

from sbertkit import TrainConfig, train_nli
from sbertkit.data.nli import NliSet, read_nli
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.training.run.metrics_log import LOG_FILE

PRECISIONS = ("fp32", "bf16")
BATCH_SIZE = 16
CHECKPOINT_STEPS = 5
WEIGHTS = ("model.safetensors", "head/model.safetensors")
_SECONDS_BETWEEN_CHECKS = 0.02


def train(output: Path, precision: str, rows: int, *, resume: bool) -> None:
    """Trains, resuming if asked to."""
    data = read_nli(data_folder("nli/snli/train_part.jsonl.gz") / "nli/snli/train_part.jsonl.gz")
    config = TrainConfig(
        batch_size=BATCH_SIZE,
        checkpoint_steps=CHECKPOINT_STEPS,
        precision=precision,
        resume=resume,
        device="cpu",
    )
    train_nli(
        BUNDLED_NAME,
        NliSet(data.pairs[:rows], ()),
        output,
        objective="softmax",
        config=config,
    )


def start(output: Path, precision: str, rows: int) -> subprocess.Popen[bytes]:
    """Starts a process that trains, resuming a run if there is one."""
    command = [sys.executable, __file__, "--rows", str(rows), "--only", precision]
    resume = _work(output).is_dir()
    return subprocess.Popen(
        [*command, "--child", str(output), *(["--resume"] if resume else [])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    """Waits for the end of a run; ends the program if it fails."""
    _, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"the run failed: {errors.decode(errors='replace')[-2_000:]}")


def kill_after(process: subprocess.Popen[bytes], output: Path, step: int) -> Figures:
    """Kills the process once that step is in its log; returns the step to resume from."""
    log, started = _work(output) / LOG_FILE, time.time()
    # Until the process writes to it, the log is that of the previous one.
    while process.poll() is None and not (_changed(log) > started and _last_step(log) >= step):
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    if process.poll() is not None:
        finish(process)
        sys.exit(f"the run ended before it could be killed after step {step}")
    process.kill()
    process.communicate()
    whole = sorted(path.name for path in (_work(output) / "checkpoints").glob("step-*"))
    return {
        "killed_after_step": _last_step(log),
        "resumed_from_step": int(whole[-1].removeprefix("step-")) if whole else 0,
    }


def measure(precision: str, rows: int, kills: int, seed: int) -> Figures:
    """Both runs, and the largest difference of any number of their models."""
    steps = -(-rows // BATCH_SIZE)
    chosen = sorted(random.Random(f"{seed} {precision}").sample(range(1, steps), kills))
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        finish(start(whole, precision, rows))
        interruptions = []
        for step in chosen:
            interruptions.append(kill_after(start(killed, precision, rows), killed, step))
            print(f"{precision}: {interruptions[-1]}", flush=True)
        finish(start(killed, precision, rows))
        return {"steps": steps, "interruptions": interruptions, **compare(whole, killed)}


def compare(first: Path, second: Path) -> Figures:
    """The differences between the weights of two models."""
    largest, weights, different = 0.0, 0, 0
    for name in WEIGHTS:
        ours, theirs = load_file(first / name), load_file(second / name)
        if ours.keys() != theirs.keys():
            sys.exit(f"the models have different weights: {sorted(ours.keys() ^ theirs.keys())}")
        for key, tensor in ours.items():
            difference = (tensor.double() - theirs[key].double()).abs()
            largest = max(largest, float(difference.max()))
            different += int((tensor != theirs[key]).sum())
            weights += tensor.numel()
    return {"weights": weights, "different_weights": different, "largest_difference": largest}


def _work(output: Path) -> Path:
    """The folder of an unfinished run."""
    return output.with_name(f"{output.name}.run")


def _changed(path: Path) -> float:
    return path.stat().st_mtime if path.is_file() else 0.0


def _last_step(log: Path) -> int:
    if not log.is_file():
        return 0
    rows = log.read_text(encoding="utf-8").splitlines(keepends=True)
    steps = [json.loads(row)["step"] for row in rows if row.endswith("\n")]
    return max(steps, default=0)


def main() -> None:
    """Measures the missing precisions."""
    parser = arguments_of(__doc__)
    parser.add_argument("--only", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1, help="decides the steps")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--resume", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        train(arguments.child, arguments.only[0], arguments.rows, resume=arguments.resume)
        return
    data_folder("nli/snli/train_part.jsonl.gz")
    entries = Entries("resume", [*RESUMING, "eval/resume.py"], arguments.results)
    settings = {"rows": arguments.rows, "kills": arguments.kills, "seed": arguments.seed}
    for precision in arguments.only:
        entries.measure(precision, settings, partial(measure, precision, **settings))


if __name__ == "__main__":
    main()
