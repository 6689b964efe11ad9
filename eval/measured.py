"""The parts of the source that decide a result: when they change, it becomes stale."""

NETWORK = [
    f"sbertkit/encoder/{name}.py"
    for name in ("batching", "network", "pooling", "tokenization", "transformer")
]
"""What is computed from a text's tokens to its vector, without post-processing."""

VECTORS = [
    *NETWORK,
    *(
        f"sbertkit/encoder/{name}.py"
        for name in ("backends/torch", "postprocessors", "prompts", "settings")
    ),
]
"""What decides a text's vector by torch in fp32.

Order, pools and threads are left out: tests hold that they change no vector by more than 1e-5.
"""

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
    *NETWORK,
]
"""What decides the weights that come out, and the speed."""

GUARD = [
    *WEIGHTS,
    *(f"sbertkit/training/{name}.py" for name in ("guard", "monitor", "run")),
    "sbertkit/metrics/random_pairs.py",
]
"""What decides whether a run is stopped."""

RESUMING = [
    *WEIGHTS,
    *(
        f"sbertkit/training/{name}.py"
        for name in ("checkpoints", "folder", "heads", "model_files", "monitor", "run")
    ),
    *(f"sbertkit/encoder/{name}.py" for name in ("layout", "saving", "settings")),
]
"""What decides the weights of a run that was killed and resumed."""
