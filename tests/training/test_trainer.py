"""What is taken from transformers' Trainer beside its public methods."""

import inspect
import re
from pathlib import Path

import pytest
import transformers
from transformers import Trainer, TrainingArguments

from sbertkit.training.run.trainer import SiameseTrainer

OVERRIDDEN = {
    "_clip_grad_norm": ["self", "model"],
    "_get_grad_norm": ["self", "model", "grad_norm"],
    "_load_from_checkpoint": ["self", "resume_from_checkpoint", "model"],
    "_load_optimizer_and_scheduler": ["self", "checkpoint"],
    "_load_rng_state": ["self", "checkpoint"],
    "_load_scaler": ["self", "checkpoint"],
    "_save_checkpoint": ["self", "model", "trial"],
    "_wrap_model": ["self", "model", "training", "dataloader"],
}
CALLED = {
    "_save_optimizer_and_scheduler": ["self", "output_dir"],
    "_save_rng_state": ["self", "output_dir"],
    "_save_scaler": ["self", "output_dir"],
}
"""Private methods with their parameters; a new version that changes one needs a look here."""


@pytest.mark.parametrize("name", OVERRIDDEN | CALLED)
def test_a_private_method_of_the_trainer_is_as_it_was(name: str) -> None:
    known = (OVERRIDDEN | CALLED)[name]
    assert list(inspect.signature(getattr(Trainer, name)).parameters) == known


def test_no_other_private_method_is_overridden_or_called() -> None:
    own = {name for name in vars(SiameseTrainer) if name.startswith("_") and "__" not in name}
    assert {name for name in own if hasattr(Trainer, name)} == set(OVERRIDDEN)
    source = inspect.getsource(inspect.getmodule(SiameseTrainer))  # type: ignore[arg-type]
    called = set(re.findall(r"(?:self|super\(\))\.(_\w+)\(", source))
    private = {name for name in called if hasattr(Trainer, name) and "__" not in name}
    assert private <= {*OVERRIDDEN, *CALLED}


def test_the_number_of_gpus_is_where_it_was(tmp_path: Path) -> None:
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    assert arguments.n_gpu == arguments._n_gpu


def test_the_version_of_transformers_has_an_upper_bound() -> None:
    setup = (Path(__file__).parents[2] / "setup.py").read_text(encoding="utf-8")
    bound = re.search(r'"transformers>=([\d.]+),<(\d+)"', setup)
    assert bound is not None
    assert int(transformers.__version__.split(".")[0]) < int(bound[2])
