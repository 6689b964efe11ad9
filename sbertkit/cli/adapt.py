"""``adapt``."""

import functools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.options import given_options
from sbertkit.cli.output import print_facts
from sbertkit.cli.read_options import read_options
from sbertkit.cli.settings import Names, setting_options
from sbertkit.cli.train_options import config_options, decorated, refuse_idle, require_gain_option
from sbertkit.cli.train_report import require_gain, result_facts
from sbertkit.encoder.pooling import POOLINGS
from sbertkit.training.data_forms import UNLABELED
from sbertkit.training.pretraining.config import AdaptConfig
from sbertkit.training.pretraining.from_scratch import FromScratch
from sbertkit.training.pretraining.tasks import TASKS, find_task

if TYPE_CHECKING:
    from sbertkit import ReadOptions


def _task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--task`` and the options of all tasks; the command gets the `task`."""
    having: dict[str, list[str]] = defaultdict(list)
    for name, kind in TASKS.items():
        for option in setting_options(kind):
            having[option].append(name)
    options = {
        option: setting_options(TASKS[names[0]], _of_tasks(option, names))[option]
        for option, names in having.items()
    }

    @functools.wraps(command)
    def with_task(*, task: tuple[str, ...], **given: Any) -> Any:
        values = {name: given.pop(name) for name in options}
        chosen = given_options(click.get_current_context()) & values.keys()
        for name in sorted(chosen):
            if not set(task) & set(having[name]):
                wanted = " or ".join(having[name])
                raise click.UsageError(f"--{name.replace('_', '-')} needs --task {wanted}")
        made = [
            TASKS[one](**{name: values[name] for name in chosen if one in having[name]})
            for one in task
        ]
        return command(task=find_task(made), **given)

    choice = click.option(
        "--task",
        type=Names(tuple(TASKS)),
        default=next(iter(TASKS)),
        show_default=True,
        metavar="TASK",
        help=f"What is learned from the texts: {', '.join(TASKS)}; or two with a comma, such as "
        "mlm,sop.",
    )
    return decorated(with_task, (choice, *options.values()))


def _of_tasks(option: str, names: list[str]) -> str:
    """Which tasks have an option, and the defaults that are not those of the first one."""
    values = {
        name: next(one.default for one in fields(TASKS[name]) if one.name == option)
        for name in names
    }
    others = {name: value for name, value in values.items() if value != values[names[0]]}
    more = "".join(f" By default {value} for {name}." for name, value in others.items())
    return ("" if len(names) == len(TASKS) else f" Of the task {' or '.join(names)}.") + more


def _scratch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of `FromScratch`; the command gets it as `base` where it is asked for."""
    options = setting_options(FromScratch, " With --from-scratch.")

    @functools.wraps(command)
    def with_base(*, base: str | None, from_scratch: str | None, **given: Any) -> Any:
        values = {name: given.pop(name) for name in options}
        chosen = given_options(click.get_current_context()) & values.keys()
        if chosen and from_scratch is None:
            raise click.UsageError(f"--{min(chosen)} needs --from-scratch")
        if (base is None) == (from_scratch is None):
            raise click.UsageError("expected one of --base and --from-scratch")
        made = base if from_scratch is None else FromScratch(from_scratch, **values)
        return command(base=made, **given)

    scratch = click.option(
        "--from-scratch",
        type=PATH,
        metavar="FILE",
        help="In place of a base: a config.json of transformers with model_type and sizes, for a "
        "new encoder.",
    )
    return decorated(with_base, (scratch, *options.values()))


@click.command(name="adapt")
@click.argument("corpus", type=PATH, nargs=-1, required=True)
@click.option("--base", metavar="MODEL", help="A model folder or a hub name.")
@_scratch_options
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the model.")
@click.option(
    "--pooling", type=click.Choice(tuple(POOLINGS)), help="By default, what the base declares."
)
@_task_options
@read_options
@click.option("--dev", metavar="FILE", help="Scored sentence pairs, or the name of such, as stsb.")
@config_options(UNLABELED, kind=AdaptConfig)
@require_gain_option
def adapt(
    corpus: tuple[str, ...],
    base: "str | FromScratch",
    output: str,
    read: "ReadOptions",
    config: AdaptConfig,
    *,
    gain_wanted: bool,
    **given: Any,
) -> None:
    """Pretrain an encoder further on one's own texts, without labels.

    CORPUS are texts in any format that index reads. The model appears at DIR when it is done; until
    then everything is in DIR.run. The heads that predict tokens are in DIR/pretraining; a later run
    with DIR as base continues from them.

    A new encoder is made with --from-scratch; its tokenizer is trained on CORPUS.

    \b
    Example:
      sbertkit adapt notes.txt --base all-MiniLM-L6-v2 -o models/notes
      sbertkit adapt notes.txt --base bert-base-uncased --task span --pack -o models/notes
      sbertkit adapt books.txt --base albert-base-v2 --task mlm,sop -o models/books
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.pretraining.adapt import adapt as train

    result = train(base, corpus, output, read=read, config=config, **given)
    print_facts(result_facts(result))
    if gain_wanted:
        require_gain([result.gain])
