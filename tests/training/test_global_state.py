"""What a run takes from its caller, and what it leaves as it was."""

import torch
from transformers.utils import logging

from sbertkit.training.run.global_state import isolated_global_state


def test_downloads_of_a_base_still_show_their_progress() -> None:
    before = logging.is_progress_bar_enabled(), logging.get_verbosity()
    with isolated_global_state():
        assert (logging.is_progress_bar_enabled(), logging.get_verbosity()) == before
        logging.set_verbosity_debug()
    assert logging.get_verbosity() == before[1]


def test_gradients_are_on_in_every_mode_of_the_caller() -> None:
    with torch.inference_mode(), isolated_global_state():
        weight = torch.ones(2, requires_grad=True)
        (weight * 3).sum().backward()
        assert weight.grad is not None
