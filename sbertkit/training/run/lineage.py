"""What is written down about a run: what decides its weights, and all that became of it."""

import hashlib
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from sbertkit.encoder.saving import lineage_name
from sbertkit.training.data_forms import SetRow, TrainingData
from sbertkit.training.objectives import Several
from sbertkit.training.recipe import Task
from sbertkit.training.results import Quality
from sbertkit.training.run.distributed import launch
from sbertkit.training.run.monitor import Monitor
from sbertkit.training.run.precision import choose_precision
from sbertkit.training.run.setup import Setup


def identity_of(task: Task) -> dict[str, Any]:
    """What decides the weights of a task before training: a resumed run must share it."""
    encoder, config = task.encoder, task.config
    device = next(encoder.torch.network.parameters()).device
    return {
        "base": encoder.fingerprint,
        "pooling": encoder.pooling,
        "objective": task.objective.name,
        "data": _data(task.data),
        "dev": None if task.dev is None else task.dev.sha256,
        "settings": {
            **config.identity(),
            **task.objective.options,
            "precision": choose_precision(config.precision, device),
            "processes": launch().processes,
        },
        "device": device.type,
    }


def _data(data: TrainingData) -> list[dict[str, str]]:
    """Hashes of the files, or of the rows themselves where they are not those of the files."""
    read = sum(source.rows for source in data.sources)
    kept = len(data.rows) + data.overlapping + len(data.held_out)
    if data.sources and read == kept:
        return [
            {"file": Path(source.source).name, "sha256": source.sha256} for source in data.sources
        ]
    digest = hashlib.sha256(repr([tuple(row) for row in data.rows]).encode())
    return [{"sha256": digest.hexdigest()}]


def _sets(setup: Setup) -> list[dict[str, Any]]:
    """What is known of each of several sets."""
    objective, data = setup.task.objective, setup.task.data
    if not isinstance(objective, Several):
        return []
    rows = Counter(SetRow(*row).number for row in data.rows)
    return [
        {
            "name": part.name,
            "form": part.form.key,
            "objective": part.objective.name,
            "rows": rows[number],
            "examples": len(setup.examples.parts[number]),
        }
        for number, part in enumerate(objective.parts)
    ]


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
        monitor: Scored it.
        before: The base.
        after: The trained encoder.
    """
    task, progress = setup.task, monitor.progress
    encoder, data, dev = task.encoder, task.data, task.dev
    base = encoder.options.model
    return {
        "task": data.form.task,
        "form": data.form.key,
        "base": lineage_name(base),
        "base_model": None if Path(base).exists() else base,
        "layers": None if task.layers is None else list(task.layers),
        "pooling": encoder.pooling,
        "normalized": encoder.normalizes,
        "objective": task.objective.name,
        "head": bool(task.head.state_dict()),
        "sets": _sets(setup),
        "labels": list(data.form.labels),
        "parts": setup.moving.record(),
        "data": [
            {**asdict(source), "source": lineage_name(source.source)} for source in data.sources
        ],
        "counts": data.counts,
        "examples": len(setup.examples),
        "left_out": dict(setup.examples.left_out),
        "overlapping": data.overlapping,
        "dev": None
        if dev is None
        else {
            "source": lineage_name(dev.pairs.source),
            "sha256": dev.sha256,
            "split": dev.pairs.split,
            "pairs": len(dev.pairs.pairs),
            "measure": dev.measure,
            "queries": len({pair.first for pair in dev.pairs.pairs}),
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
