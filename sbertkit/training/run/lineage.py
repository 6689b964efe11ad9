"""What is written down about a run: what decides its weights, and all that became of it."""

import hashlib
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from sbertkit.encoder import Encoder
from sbertkit.encoder.saving import lineage_name
from sbertkit.training.config import TrainConfig
from sbertkit.training.objectives import Softmax
from sbertkit.training.results import Quality
from sbertkit.training.run.monitor import Monitor
from sbertkit.training.run.precision import choose_precision
from sbertkit.training.run.setup import Setup, Task


def identity_of(encoder: Encoder, task: Task, config: TrainConfig) -> dict[str, Any]:
    """What decides the weights: a resumed run must share it with its beginning.

    Args:
        encoder: The base, not trained yet.
        task: What is trained.
        config: All settings, with nothing left to the objective.
    """
    device = next(encoder.torch.network.parameters()).device
    return {
        "base": encoder.fingerprint,
        "pooling": encoder.pooling,
        "objective": task.kind.name,
        "data": _data(task),
        "dev": None if task.dev is None else task.dev.sha256,
        "settings": {**config.identity(), "precision": choose_precision(config.precision, device)},
        "device": device.type,
    }


def _data(task: Task) -> list[dict[str, str]]:
    """Hashes of the files, or of the pairs themselves where they are not those of the files."""
    data = task.data
    read = sum(source.rows for source in data.sources)
    if data.sources and read == len(data.pairs) + task.dropped:
        return [
            {"file": Path(source.source).name, "sha256": source.sha256} for source in data.sources
        ]
    digest = hashlib.sha256(repr([tuple(pair) for pair in data.pairs]).encode())
    return [{"sha256": digest.hexdigest()}]


def environment() -> dict[str, Any]:
    """What may move the last bits of the weights, but is no reason to refuse."""
    names = ("torch", "transformers", "sentence-transformers")
    return {**{name: version(name) for name in names}, "threads": torch.get_num_threads()}


def record_of(
    setup: Setup, identity: Mapping[str, Any], monitor: Monitor, before: Quality, after: Quality
) -> dict[str, Any]:
    """The record of a finished run, as JSON can hold it; it goes into ``sbertkit.json``.

    It goes where the model goes, and names files without the folders of this machine.

    Args:
        setup: The run.
        identity: What `identity_of` gave before training.
        monitor: Watched it.
        before: The base.
        after: The trained encoder.
    """
    task, encoder, progress = setup.task, setup.encoder, monitor.progress
    base = encoder.options.model
    dev = task.dev
    head = isinstance(task.objective, Softmax)
    contrastive = task.kind.name == "contrastive"
    return {
        "base": lineage_name(base),
        "base_model": None if Path(base).exists() else base,
        "pooling": encoder.pooling,
        "normalized": encoder.normalizes,
        "objective": task.kind.name,
        "labels": list(task.data.labels),
        "features": list(setup.config.features) if head else None,
        "temperature": setup.config.temperature if contrastive else None,
        "data": [
            {
                "source": lineage_name(source.source),
                "sha256": source.sha256,
                "rows": source.rows,
                "skipped": source.skipped,
                "other_splits": source.other_splits,
            }
            for source in task.data.sources
        ],
        "counts": task.data.counts,
        "examples": len(setup.examples),
        "left_out": dict(setup.examples.left_out),
        "dropped_overlap": task.dropped,
        "dev": None
        if dev is None
        else {
            "source": lineage_name(dev.pairs.source),
            "sha256": dev.sha256,
            "split": dev.pairs.split,
            "pairs": len(dev.pairs.pairs),
        },
        "identity": {key: value for key, value in identity.items() if key != "settings"},
        "settings": identity["settings"],
        "steps": monitor.steps,
        "best_step": progress.best_step,
        "seconds": round(progress.seconds, 1),
        "examples_per_second": round(progress.examples / max(progress.seconds, 1e-9), 1),
        "dim": encoder.dim,
        "max_tokens": encoder.max_tokens,
        "before": before.to_dict(),
        "after": after.to_dict(),
        "versions": {"sbertkit": version("sbertkit"), **environment()},
        "machine": f"{platform.machine()}, {setup.device.type}, {torch.get_num_threads()} threads",
        "note": None,
    }
