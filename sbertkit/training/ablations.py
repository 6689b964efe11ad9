"""Ablations: what differs between runs on the same budget, and published scores of the same."""

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sbertkit.errors import InputError
from sbertkit.training.data_forms import NLI, PAIRS, SCORED, DataForm
from sbertkit.training.objectives import Softmax, objectives_of
from sbertkit.training.objectives.base import LORA_RATE

if TYPE_CHECKING:
    from sbertkit.training.config import TrainConfig
    from sbertkit.training.recipe import Recipe

logger = logging.getLogger(__name__)

Runs = dict[str, "Recipe"]

ABLATED_POOLINGS = ("cls", "mean", "max", "eos")
PUBLISHED_POOLINGS: Mapping[str, float] = {"cls": 79.80, "mean": 80.78, "max": 79.07}
_POOLINGS_OF_SCORES: Mapping[str, float] = {"cls": 86.62, "mean": 87.44, "max": 69.92}
_PUBLISHED_FEATURES: Mapping[str, float] = {
    "u-v": 66.04,
    "abs_diff": 69.78,
    "product": 70.54,
    "abs_diff-product": 78.37,
    "u-v-product": 77.44,
    "u-v-abs_diff": 80.78,
    "u-v-abs_diff-product": 80.44,
}
"""Spearman times 100 on the STS-B dev set of BERT-base trained on SNLI and MultiNLI with softmax;
of scores: trained on STS-B with the squared error of cosines. Means of ten seeds.

Source: Reimers & Gurevych 2019, Sentence-BERT, table 6.
"""

_DECAYS = (0.95, 0.9, 0.8)
_RANK = 16
_STAGES = 3


@dataclass(frozen=True, slots=True)
class Ablation:
    """What differs between runs.

    Attributes:
        name: As users write it.
        help: What the runs are.
        runs: One recipe per run, by name, of a recipe whose data is in memory.
        settles: Options of the command line that the runs set themselves.
        forms: Forms of data that it is for.
        published: Published scores by the names of runs, by the key of a form of data.
    """

    name: str
    help: str
    runs: "Callable[[Recipe], Runs]"
    settles: tuple[str, ...] = ()
    forms: tuple[DataForm, ...] = (NLI, SCORED, PAIRS)
    published: Mapping[str, Mapping[str, float]] | None = None


def _poolings(recipe: "Recipe") -> Runs:
    return {name: replace(recipe, pooling=name) for name in ABLATED_POOLINGS}


def _features(recipe: "Recipe") -> Runs:
    if not isinstance(recipe.objective, Softmax):
        raise InputError(
            "the ablation features is one of the objective softmax, found "
            f"{recipe.objective.name}; choose it (--objective softmax)"
        )
    made = {name: Softmax(features=tuple(name.split("-"))) for name in _PUBLISHED_FEATURES}
    return {name: replace(recipe, objective=one) for name, one in made.items()}


def _objectives(recipe: "Recipe") -> Runs:
    """The recipe's own objective first; of the others those for which the data has what is needed.

    Each has its own default rate, where the settings have none.
    """
    from sbertkit.training.examples import TextTable
    from sbertkit.training.run.global_state import isolated_global_state

    own = recipe.objective.name
    runs = {own: recipe}
    with isolated_global_state():
        task = recipe.load()
        for name, kind in objectives_of(recipe.form).items():
            run = recipe if name == own else replace(recipe, objective=kind())
            try:
                if name != own:
                    run.check_sizes(task.encoder.dim, run.objective.make_head(task.encoder.dim))
                    run.objective.examples(task.data, TextTable(task.encoder))
            except InputError as error:
                logger.warning("the objective %s is left out: %s", name, error)
            else:
                runs[name] = run
    return runs


def _strategies(recipe: "Recipe") -> Runs:
    """Parts of the encoder that move; frozen are a third and two thirds of the layers.

    Progressive runs begin with the highest layers and have all in their last epoch.
    """
    from sbertkit.training.run.depths import Depths
    from sbertkit.training.run.global_state import isolated_global_state
    from sbertkit.training.run.setup import set_up

    with isolated_global_state():
        setup = set_up(recipe.load())
    encoder, steps = setup.task.encoder, setup.moving.steps_per_epoch
    layers = Depths(encoder.torch.network.transformer, encoder.options.model).layers
    config = recipe.config
    found: dict[str, TrainConfig] = {"full": config}
    for frozen in sorted({layers // 3, 2 * layers // 3} - {0}):
        found[f"freeze-{frozen}"] = replace(config, freeze_layers=frozen)
    for decay in _DECAYS:
        found[f"decay-{decay:g}"] = replace(config, layer_decay=decay)
    unfreeze = _stages(layers, math.ceil(setup.plan.total / steps))
    if unfreeze is None:
        logger.warning("progressive is left out: it needs two epochs and two layers or more")
    else:
        found["progressive"] = replace(config, unfreeze=unfreeze)
    if find_spec("peft") is None:
        logger.warning('lora is left out: it needs peft: pip install "sbertkit[lora]"')
    else:
        rate = config.learning_rate and config.learning_rate * LORA_RATE
        found["lora"] = replace(config, lora=_RANK, learning_rate=rate)
    return {name: replace(recipe, config=one) for name, one in found.items()}


def _stages(layers: int, epochs: int) -> str | None:
    """What `TrainConfig.unfreeze` is for so many layers and epochs; None where all move at once."""
    count = min(layers, epochs, _STAGES)
    highest = [f"{epoch}:{layers * (epoch + 1) // count}" for epoch in range(count - 1)]
    return ",".join([*highest, f"{count - 1}:all"]) if count > 1 else None


_KINDS = (
    Ablation(
        "pooling",
        "cls, mean, max and eos",
        _poolings,
        settles=("pooling",),
        published={NLI.key: PUBLISHED_POOLINGS, SCORED.key: _POOLINGS_OF_SCORES},
    ),
    Ablation("objective", "all objectives that the data allows", _objectives),
    Ablation(
        "features",
        "what the head of softmax sees",
        _features,
        settles=("features",),
        forms=(NLI,),
        published={NLI.key: _PUBLISHED_FEATURES},
    ),
    Ablation(
        "strategy",
        "all weights, lowest layers frozen, rates by depth, progressive unfreezing, LoRA",
        _strategies,
        settles=("freeze_layers", "layer_decay", "unfreeze", "lora"),
    ),
)
ABLATIONS = {kind.name: kind for kind in _KINDS}
"""All, by name."""


def ablations_of(form: DataForm) -> dict[str, Ablation]:
    """The ablations of a form of data, by name."""
    return {name: one for name, one in ABLATIONS.items() if form in one.forms}
