"""The options of training commands: those of `TrainConfig` and those of the objectives."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import INDEX
from sbertkit.cli.options import given_options, quiet_option
from sbertkit.cli.settings import setting_options
from sbertkit.training.ablations import ABLATIONS
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import FORM_SETTINGS, DataForm
from sbertkit.training.mining import Mining
from sbertkit.training.objectives import objectives_of

if TYPE_CHECKING:
    from sbertkit.retrieval import SearchIndex

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_NEEDED = {
    "dev": ("gain_wanted", "patience", "drop_overlap"),
    "mine": ("negatives", "mine_depth", "mine_margin", "mine_reranker"),
}
_EXCLUSIVE = (("seeds", "ablate"), ("seeds", "seed"), ("batch_tokens", "batch_size"))

require_gain_option = click.option(
    "--require-gain", "gain_wanted", is_flag=True, help="Exit 1 unless the dev score rose."
)


def config_options(*forms: DataForm, kind: type[TrainConfig] = TrainConfig) -> Decorator:
    """Adds the options of a kind of `TrainConfig` for forms of data; it is given as `config`."""
    own = {name for form in forms for name in form.settings}
    options = {
        name: option
        for name, option in setting_options(kind).items()
        if name in own or name not in FORM_SETTINGS
    }

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_config(*, quiet: bool, report_to: tuple[str, ...] | None, **given: Any) -> Any:
            values = {name: given.pop(name) for name in options if name in given}
            config = kind(**values, report_to=report_to or (), progress=not quiet)
            return command(config=config, **given)

        return decorated(with_config, (*options.values(), quiet_option))

    return decorate


def objective_options(*forms: DataForm) -> Decorator:
    """Adds ``--objective`` and the options of all objectives that are trained on forms of data.

    The command gets the `objective`.
    """
    kinds = objectives_of(*forms)
    objectives: dict[str, list[str]] = defaultdict(list)  # those that have an option
    for name, kind in kinds.items():
        for option in setting_options(kind):
            objectives[option].append(name)
    options = {
        option: setting_options(kinds[names[0]], f" Of the objective {' or '.join(names)}.")[option]
        for option, names in objectives.items()
    }

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


def mining_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--mine`` and the options of `Mining`; the command gets `mine` and `mining`."""
    options = setting_options(Mining, " With --mine.")

    @functools.wraps(command)
    def with_mining(**given: Any) -> Any:
        mining = Mining(**{name: given.pop(name) for name in options})
        return command(mining=mining, **given)

    mine = click.option(
        "--mine", metavar="INDEX", type=INDEX, help="Take negatives from what this index finds."
    )
    return decorated(with_mining, (mine, *options.values()))


@contextmanager
def opened_index(mine: str | None, config: TrainConfig) -> "Iterator[SearchIndex | None]":
    """The index that negatives are mined from, for the block."""
    if mine is None:
        yield None
        return
    from sbertkit.retrieval import SearchIndex

    with SearchIndex.open(mine, device=config.device) as index:
        yield index


def refuse_idle(context: click.Context) -> None:
    """Refuses options that would do nothing beside the others, so that nobody trusts in them."""
    given = given_options(context)
    for other, names in _NEEDED.items():
        for name in names if other not in given else ():
            if name in given:
                raise click.UsageError(f"{_flag(name)} needs {_flag(other)}")
    ablation = ABLATIONS.get(str(context.params.get("ablate")))
    settled = () if ablation is None else ablation.settles
    for first, second in (*_EXCLUSIVE, *(("ablate", name) for name in settled)):
        if {first, second} <= given:
            raise click.UsageError(f"{_flag(first)} and {_flag(second)} do not go together")


def _flag(name: str) -> str:
    return f"--{'require-gain' if name == 'gain_wanted' else name.replace('_', '-')}"


def decorated(command: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """The command with options, in the order in which its help lists them."""
    for option in reversed(options):  # click lists the last decorated first
        command = option(command)
    return command
