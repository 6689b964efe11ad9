"""``train-multi``."""

import re
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.output import print_facts
from sbertkit.cli.settings import converted
from sbertkit.cli.train_options import config_options, refuse_idle, require_gain_option
from sbertkit.cli.train_report import require_gain, result_facts
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.errors import InputError
from sbertkit.settings import settings_of
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import NLI, PAIRS, SCORED, SEVERAL
from sbertkit.training.objectives import objectives_of

if TYPE_CHECKING:
    from sbertkit.training.multi import TrainingSet

_FORMS = {"nli": NLI, "sts": SCORED, "pairs": PAIRS}
_OWN = ("split", "scale", "labels")
"""Settings that each set may have for itself."""


class _Set(click.ParamType["TrainingSet"]):
    """A set to train on: what it is, where it is, and its own options."""

    name = "set"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "TrainingSet":
        """The set."""
        from sbertkit.training.multi import TrainingSet

        kind, colon, rest = value.partition(":")
        if kind not in _FORMS or not colon:
            kinds = ", ".join(_FORMS)
            self.fail(f"expected KIND:DATA with one of {kinds}, found {value!r}", param, ctx)
        data, *texts = re.split(r",(?=[a-z_-]+=)", rest)
        given = dict(text.split("=", 1) for text in texts)
        known = objectives_of(_FORMS[kind])
        name = given.pop("objective", next(iter(known)))
        if name not in known:
            self.fail(f"objective must be one of {', '.join(known)}, not {name!r}", param, ctx)
        objective, options = known[name], {}
        own: dict[str, Any] = {"name": given.pop("name", None)}
        for key, text in given.items():
            field = key.replace("-", "_")
            if field in settings_of(objective):
                options[field] = converted(objective, field, text)
            elif field in _OWN:
                own[field] = converted(TrainConfig, field, text)
            else:
                names = ", ".join(["objective", "name", *_OWN, *settings_of(objective)])
                self.fail(f"unknown option {key!r} of a set; expected {names}", param, ctx)
        try:
            return TrainingSet(kind, data or None, objective(**options), **own)
        except InputError as error:
            self.fail(error.in_shell, param, ctx)


@click.command(name="train-multi")
@click.option(
    "--set",
    "sets",
    type=_Set(),
    multiple=True,
    required=True,
    metavar="KIND:DATA[,OPTION=VALUE...]",
    help="A set to train on: nli, sts or pairs, its file or folder, and its own objective, name, "
    "split, scale, labels and options of the objective. May be repeated.",
)
@click.option("--base", required=True, metavar="MODEL", help="A model folder or a hub name.")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the model.")
@click.option("--pooling", type=click.Choice(tuple(POOLINGS)), default="mean", show_default=True)
@click.option(
    "--dev",
    metavar="FILE",
    help="Scored sentence pairs or a BEIR folder, or the name of such, as stsb.",
)
@config_options(SEVERAL)
@require_gain_option
def train_multi(
    sets: "tuple[TrainingSet, ...]", output: str, gain_wanted: bool, **recipe: Any
) -> None:
    """Train a sentence encoder on several sets at once.

    Each batch is of one set, with the objective of that set; --sampling says how the sets take
    turns. The data of a set is that of train-nli, train-sts or train-pairs. The model appears at
    DIR when it is done; until then everything is in DIR.run.

    \b
    Example:
      sbertkit train-multi --set nli:snli_train.jsonl.gz --set sts:stsb.tsv,scale=0-5 \\
        --base bert-base-uncased -o models/multi --dev stsb.tsv
      sbertkit train-multi --set sts:pairs.tsv,objective=angle \\
        --set pairs:scifact,objective=triplet,margin=0.3 --base models/mine -o models/multi \\
        --sampling round-robin
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.multi import multi_recipe
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train

    result = train(multi_recipe(sets=sets, **recipe), output)
    if launch().is_main:
        print_facts(result_facts(result))
    if gain_wanted:
        require_gain([result.gain])
