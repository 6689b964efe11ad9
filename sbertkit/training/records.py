"""What is written down about a run: what decides its weights, and all that became of it."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from sbertkit.training.monitor import Monitor
from sbertkit.training.objectives import Softmax
from sbertkit.training.results import Quality
from sbertkit.training.setup import Setup


def identity_of(setup: Setup) -> dict[str, Any]:
    """What a resumed run must share with its beginning."""
    task, config = setup.task, setup.config
    if task.data.sources:
        data: Any = [
            {"file": Path(source.source).name, "sha256": source.sha256}
            for source in task.data.sources
        ]
    else:
        digest = hashlib.sha256(repr(task.data.pairs).encode("utf-8", "surrogatepass"))
        data = [{"sha256": digest.hexdigest()}]
    return {
        "base": setup.encoder.fingerprint,
        "objective": task.kind.name,
        "data": data,
        "dev": None if task.dev is None else task.dev.sha256,
        "settings": {**config.identity(), "precision": setup.precision},
        "device": setup.device.type,
        "environment": _environment(),
    }


def _environment() -> dict[str, Any]:
    """What may move the last bits of the weights, but is no reason to refuse."""
    names = ("torch", "transformers", "sentence-transformers")
    return {**{name: version(name) for name in names}, "threads": torch.get_num_threads()}


def record_of(setup: Setup, monitor: Monitor, before: Quality, after: Quality) -> dict[str, Any]:
    """The record of a finished run, as JSON can hold it; it goes into ``sbertkit.json``."""
    task, encoder, progress = setup.task, setup.encoder, monitor.progress
    dev = task.dev
    head = isinstance(task.objective, Softmax)
    contrastive = task.kind.name == "contrastive"
    return {
        "base": encoder.options.model,
        "pooling": encoder.pooling,
        "normalized": encoder.normalizes,
        "objective": task.kind.name,
        "labels": list(task.data.labels),
        "features": list(setup.config.features) if head else None,
        "temperature": setup.config.temperature if contrastive else None,
        "data": [
            {
                "source": source.source,
                "sha256": source.sha256,
                "rows": source.rows,
                "skipped": source.skipped,
            }
            for source in task.data.sources
        ],
        "counts": task.data.counts,
        "examples": len(setup.examples),
        "dropped_overlap": task.dropped,
        "dev": None
        if dev is None
        else {
            "source": dev.pairs.source,
            "sha256": dev.sha256,
            "split": dev.pairs.split,
            "pairs": len(dev.pairs.pairs),
        },
        "settings": {**setup.config.identity(), "precision": setup.precision},
        "steps": monitor.steps,
        "best_step": progress.best_step,
        "seconds": round(progress.seconds, 1),
        "examples_per_second": round(progress.examples / max(progress.seconds, 1e-9), 1),
        "dim": encoder.dim,
        "max_tokens": encoder.max_tokens,
        "before": before.to_dict(),
        "after": after.to_dict(),
        "versions": {"sbertkit": version("sbertkit"), **_environment()},
        "machine": f"{platform.machine()}, {setup.device.type}, {torch.get_num_threads()} threads",
        "note": None,
    }
