"""The options of training commands: those of `TrainConfig` and those of the objectives."""

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import click

from sbertkit.cli.options import given_options, quiet_option
from sbertkit.cli.settings import setting_options
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import FORM_SETTINGS, DataForm
from sbertkit.training.objectives import objectives_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

require_gain_option = click.option(
    "--require-gain", "gain_wanted", is_flag=True, help="Exit 1 unless the dev score rose."
)


def config_options(form: DataForm) -> Decorator:
    """Adds the options of `TrainConfig` for a form of data; the command gets it as `config`."""
    options = {
        name: option
        for name, option in setting_options(TrainConfig).items()
        if name in form.settings or name not in FORM_SETTINGS
    }

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_config(*, quiet: bool, report_to: tuple[str, ...] | None, **given: Any) -> Any:
            own = {name: given.pop(name) for name in options if name in given}
            config = TrainConfig(**own, report_to=report_to or (), progress=not quiet)
            return command(config=config, **given)

        return decorated(with_config, (*options.values(), quiet_option))

    return decorate


def objective_options(form: DataForm) -> Decorator:
    """Adds ``--objective`` and the options of all objectives that are trained on a form of data.

    The command gets the `objective`.
    """
    kinds = objectives_of(form)
    objectives: dict[str, list[str]] = defaultdict(list)  # those that have an option
    for name, kind in kinds.items():
        for option in setting_options(kind):
            objectives[option].append(name)
    options: dict[str, Callable[[Any], Any]] = {}
    for kind in kinds.values():
        for option, names in objectives.items():
            more = f" Of the objective {' or '.join(names)}."
            decorator = setting_options(kind, more).get(option)
            if decorator is not None:
                options.setdefault(option, decorator)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
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

        return decorated(with_objective, (choice, *options.values()))

    choice = click.option(
        "--objective",
        type=click.Choice(tuple(kinds)),
        default=next(iter(kinds)),
        show_default=True,
        help="What is optimized.",
    )
    return decorate


def decorated(command: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """The command with options, in the order in which its help lists them."""
    for option in reversed(options):  # click lists the last decorated first
        command = option(command)
    return command
