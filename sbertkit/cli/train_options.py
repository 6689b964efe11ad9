"""The options of training commands: those of `TrainConfig` and those of the objectives."""

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import click

from sbertkit.cli.options import given_options, quiet_option
from sbertkit.cli.settings import setting_options
from sbertkit.training.config import TrainConfig
from sbertkit.training.objectives import (
    DEFAULT_OBJECTIVE,
    OBJECTIVES,
    RANKING_OBJECTIVES,
    BinaryCrossEntropy,
    Objective,
)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `TrainConfig`; the command gets it as `config`."""
    return config_options_without()(command)


def config_options_without(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `config_options`, without those of these settings."""
    return functools.partial(_with_config, names)


def _with_config(names: tuple[str, ...], command: Callable[..., Any]) -> Callable[..., Any]:
    options = {
        name: option for name, option in setting_options(TrainConfig).items() if name not in names
    }

    @functools.wraps(command)
    def with_config(*, quiet: bool, report_to: tuple[str, ...] | None, **given: Any) -> Any:
        own = {name: given.pop(name) for name in options if name in given}
        config = TrainConfig(**own, report_to=report_to or (), progress=not quiet)
        return command(config=config, **given)

    return _decorated(with_config, (*options.values(), quiet_option))


def objective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--objective`` and the options of all objectives; the command gets the `objective`."""
    return _with_objective(OBJECTIVES, DEFAULT_OBJECTIVE, command)


def ranking_objective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `objective_options`, for the objectives of re-rankers."""
    return _with_objective(RANKING_OBJECTIVES, BinaryCrossEntropy.name, command)


def _with_objective(
    kinds: Mapping[str, type[Objective]], default: str, command: Callable[..., Any]
) -> Callable[..., Any]:
    options: dict[str, Callable[[Any], Any]] = {}
    objectives: dict[str, list[str]] = defaultdict(list)  # those that have an option
    for name, kind in kinds.items():
        for option, decorate in setting_options(kind, f" Of the objective {name}.").items():
            options.setdefault(option, decorate)
            objectives[option].append(name)

    @functools.wraps(command)
    def with_objective(*, objective: str, **given: Any) -> Any:
        values = {name: given.pop(name) for name in options}
        chosen = given_options(click.get_current_context()) & values.keys()
        for name in sorted(chosen):
            if objective not in objectives[name]:
                flag, wanted = name.replace("_", "-"), " or ".join(objectives[name])
                raise click.UsageError(f"--{flag} needs --objective {wanted}")
        made = kinds[objective](**{name: values[name] for name in chosen})
        return command(objective=made, **given)

    choice = click.option(
        "--objective",
        type=click.Choice(tuple(kinds)),
        default=default,
        show_default=True,
        help="What is optimized.",
    )
    return _decorated(with_objective, (choice, *options.values()))


def _decorated(command: Callable[..., Any], options: Any) -> Callable[..., Any]:
    for option in reversed(options):  # click lists the last decorated first
        command = option(command)
    return command
