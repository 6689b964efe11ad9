"""The parts of the source that decide a result of training: when they change, it becomes stale."""

WEIGHTS = [
    *(
        f"sbertkit/training/{name}"
        for name in (
            "batches.py",
            "config.py",
            "examples.py",
            "model.py",
            "objectives/base.py",
            "objectives/contrastive.py",
            "objectives/softmax.py",
            "precision.py",
            "setup.py",
            "trainer.py",
        )
    ),
    *(
        f"sbertkit/encoder/{name}.py"
        for name in ("batching", "network", "pooling", "tokenization", "transformer")
    ),
]
"""What decides the weights that come out, and the speed."""

GUARD = [
    *WEIGHTS,
    *(f"sbertkit/training/{name}.py" for name in ("guard", "monitor", "run")),
    "sbertkit/metrics/isotropy.py",
]
"""What decides whether a run is stopped."""

RESUMING = [
    *WEIGHTS,
    *(
        f"sbertkit/training/{name}.py"
        for name in ("checkpoints", "folder", "heads", "model_files", "monitor", "run")
    ),
    *(f"sbertkit/encoder/{name}.py" for name in ("layout", "loading", "saving")),
]
"""What decides the weights of a run that was killed and resumed."""
