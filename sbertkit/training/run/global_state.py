"""What a run must not inherit from its caller, nor leave behind with it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from transformers.utils import logging as transformers_logging


@contextmanager
def isolated_global_state() -> Iterator[None]:
    """Gradients in the block whatever the caller's mode, and its random numbers as they were after.

    The Trainer seeds the global generators of Python, NumPy and torch, and sets the log level of
    transformers.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    of_python, of_numpy = random.getstate(), np.random.get_state()
    verbosity = transformers_logging.get_verbosity()
    try:
        # The outer one first: within inference mode not even new weights could be trained.
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.random.fork_rng(devices),
        ):
            yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        random.setstate(of_python)
        np.random.set_state(of_numpy)
