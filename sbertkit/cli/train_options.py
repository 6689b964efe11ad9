"""The options of training commands: those of `TrainConfig`, and the types of their values."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import click

from sbertkit.cli.options import device_option, quiet_option, trust_option

_FEATURES = ("u", "v", "abs_diff", "product")


class _Names(click.ParamType[Any]):
    """Names with commas between them."""

    name = "names"

    def __init__(self, choices: Sequence[str] = ()) -> None:
        self.choices = choices

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names, each one of the choices where there are such."""
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if not name or (self.choices and name not in self.choices):
                expected = f"one of {', '.join(self.choices)}" if self.choices else "a name"
                self.fail(f"expected {expected}, found {name!r}", param, ctx)
        return names


class Numbers(click.ParamType[Any]):
    """Whole numbers with commas between them."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"expected whole numbers such as 1,2,3, found {value!r}", param, ctx)


class _LabelMap(click.ParamType[Any]):
    """Names of integer labels."""

    name = "labels"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Mapping[int, str]:
        """The mapping from numbers to names."""
        from sbertkit.data.nli import parse_label_map
        from sbertkit.errors import InputError

        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # converted before
        try:
            return parse_label_map(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


_COUNT = click.IntRange(min=1)
_POSITIVE = click.FloatRange(min=0, min_open=True)
_FROM_ZERO = click.FloatRange(min=0)


def _option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(*names, show_default=settings.get("default") is not None, **settings)


_CONFIG_OPTIONS = (
    _option("--epochs", type=_POSITIVE, default=1.0, help="Passes over the data."),
    _option("--max-steps", type=_COUNT, help="Optimizer steps, in the place of --epochs."),
    _option("--batch-size", type=_COUNT, default=64, help="Examples a batch."),
    _option("--accumulation", type=_COUNT, default=1, help="Batches an optimizer step."),
    _option(
        "--learning-rate",
        "--lr",
        type=_POSITIVE,
        help="Peak learning rate; by default as the objective wants.",
    ),
    _option("--schedule", type=click.Choice(("linear", "cosine", "constant")), default="linear"),
    _option("--warmup", type=_FROM_ZERO, default=0.1, help="Steps, or below 1 a share of the run."),
    _option("--weight-decay", type=_FROM_ZERO, default=0.01, help="Not for biases and norms."),
    _option("--max-grad-norm", type=_FROM_ZERO, default=1.0, help="0 for no clipping."),
    _option("--precision", type=click.Choice(("auto", "fp32", "bf16", "fp16")), default="auto"),
    _option("--seed", type=click.IntRange(min=0), default=1, help="Order, dropout and head."),
    _option(
        "--normalize/--no-normalize",
        default=None,
        help="Unit length in training; by default as the objective wants.",
    ),
    _option("--max-tokens", type=_COUNT, help="Tokens a text may have."),
    _option(
        "--features",
        type=_Names(_FEATURES),
        default="u,v,abs_diff",
        help="What the softmax head sees, of u,v,abs_diff,product.",
    ),
    _option("--temperature", type=_POSITIVE, default=0.05, help="Of the contrastive objective."),
    _option("--labels", type=_LabelMap(), help="Names of integer labels: 0=entailment,1=..."),
    _option("--split", metavar="NAME", help="Of the data; by default train where it has splits."),
    _option("--drop-overlap", is_flag=True, help="Leave out pairs that are in the dev set."),
    _option("--checkpoint-steps", type=_COUNT, help="By default a tenth of the run, at least 100."),
    _option("--patience", type=_COUNT, help="Dev scores without a new best that end the run."),
    _option("--guard/--no-guard", default=True, help="Stop a run that goes wrong."),
    _option("--resume", is_flag=True, help="Continue the unfinished run at the output."),
    _option("--report-to", type=_Names(), default=None, help="Trackers: tensorboard, wandb, ..."),
    device_option,
    trust_option,
    quiet_option,
)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `TrainConfig`; the command gets it as `config`."""

    @functools.wraps(command)
    def with_config(*, quiet: bool, report_to: tuple[str, ...] | None, **given: Any) -> Any:
        from sbertkit.training import TrainConfig

        own = {
            field.name: given.pop(field.name)
            for field in fields(TrainConfig)
            if field.name in given
        }
        config = TrainConfig(**own, report_to=report_to or (), progress=not quiet)
        return command(config=config, **given)

    for option in reversed(_CONFIG_OPTIONS):
        with_config = option(with_config)
    return with_config
