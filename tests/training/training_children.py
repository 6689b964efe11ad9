"""Training in child processes, to be killed, restricted or told to stop at a chosen moment.

They are forked from a server that has imported all and used nothing; see the children of the tests
of retrieval, with which it shares that server.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from training_cases import Job, quick_runs

from sbertkit.errors import SbertkitError

TIMEOUT = 120
"""Seconds until a child counts as stuck."""
KILLED = -int(signal.SIGKILL)

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "faiss",
        "torch",
        "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert",
        "transformers.models.bert.tokenization_bert",
        "sbertkit.retrieval",
        "sbertkit.training.sweeps",
        "sbertkit.cli",
    ]
)


class Kill(NamedTuple):
    """When a child ends itself by SIGKILL, or sends itself another signal.

    Attributes:
        moment: ``step`` (after an optimizer step), ``saving`` (a checkpoint is written, but has no
            name yet), ``saved`` (after a checkpoint), ``output`` (the model is written, but has no
            name yet) or ``file`` (at a use of the file system).
        number: The step; for ``file``, which of the uses.
        signal: What is sent.
    """

    moment: str
    number: int
    signal: int = int(signal.SIGKILL)


class Ended(NamedTuple):
    """How a child ended.

    Attributes:
        status: As a shell has it; below zero for a signal.
        answer: What the function gave, or the error that ended it.
        said: What came on standard error.
    """

    status: int
    answer: Any
    said: str


def train(
    _pipe: Connection,
    job: Job,
    kill: Kill | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """A run; gives its steps."""
    if kill is not None:
        _arm(kill, job.output.parent)
    with quick_runs():
        return job.run(**settings).steps


def batches(pipe: Connection, job: Job) -> list[list[int]]:
    """A run; gives the rows of each batch that this process trained on."""
    from sbertkit.training.batches import Collator

    made: list[list[int]] = []
    collate = Collator.__call__

    def note(self: Collator, rows: list[int]) -> dict[str, Any]:
        made.append(rows)
        return collate(self, rows)

    setattr(Collator, "__call__", note)  # noqa: B010
    train(pipe, job)
    return made


def train_with_nan(pipe: Connection, job: Job, rank: int) -> int:
    """A run in which the vectors of one process are NaN from the third batch on."""
    from sbertkit.training.run.siamese import Siamese

    vectors, count = Siamese._vectors, 0

    def broken(self: Siamese, group: Mapping[str, Any]) -> Any:
        nonlocal count
        count += 1
        found = vectors(self, group)
        return found * float("nan") if os.environ["RANK"] == str(rank) and count > 2 else found

    setattr(Siamese, "_vectors", broken)  # noqa: B010
    return train(pipe, job)


def train_by_own_seed(pipe: Connection, job: Job) -> int:
    """A run whose seed is another one in each process."""
    return train(pipe, job, None, {"seed": int(os.environ["RANK"])})


def uses(pipe: Connection, job: Job) -> int:
    """A run; gives how often it used the file system below the parent of its output."""
    seen = _strike_at_use(0, job.output.parent, lambda: None)
    train(pipe, job)
    return len(seen)


def command(
    _pipe: Connection,
    arguments: Sequence[str],
    output: Path,
    kill: Kill | None = None,
    file_size: int | None = None,
) -> None:
    """The command line; ends with its exit status."""
    import resource

    from sbertkit.cli import main

    if kill is not None:
        _arm(kill, output.parent)
    if file_size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, hard))
    with quick_runs():
        main(list(arguments))


def train_unprivileged(
    pipe: Connection, give_up: Callable[[], None], job: Job, outputs: Sequence[Path]
) -> list[str]:
    """Runs without the rights of root, which no permission holds back; gives what came of each."""
    give_up()
    outcomes = []
    for output in outputs:
        try:
            outcomes.append(f"{train(pipe, job._replace(output=output))} steps")
        except SbertkitError as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    return outcomes


def ended(function: Callable[..., Any], *arguments: Any, **environment: str) -> Ended:
    """What becomes of a function in a child of its own."""
    with started(function, *arguments, **environment) as child:
        return child.wait()


class Child:
    """A child that runs a function with one end of a pipe as its first argument."""

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], environment: dict[str, str]
    ) -> None:
        self._pipe, other = _CONTEXT.Pipe()
        self._errors, errors = os.pipe()
        from multiprocessing.reduction import DupFd

        self.process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(other, DupFd(errors), function, arguments, environment), daemon=True
        )
        self.process.start()
        other.close()
        os.close(errors)

    def wait(self) -> Ended:
        """How it ends."""
        answer = None
        if not self._pipe.poll(TIMEOUT):
            raise TimeoutError("the child says nothing")
        with suppress(EOFError):
            answer = self._pipe.recv()
        self.process.join(TIMEOUT)
        assert self.process.exitcode is not None
        with os.fdopen(os.dup(self._errors), encoding="utf-8") as file:
            said = file.read()
        return Ended(self.process.exitcode, answer, said)

    def close(self) -> None:
        """Ends it if it still runs."""
        self.process.kill()
        self.process.join(TIMEOUT)
        self._pipe.close()
        os.close(self._errors)


@contextmanager
def started(function: Callable[..., Any], *arguments: Any, **environment: str) -> Iterator[Child]:
    """A running child, which is ended with the block."""
    child = Child(function, arguments, environment)
    try:
        yield child
    finally:
        child.close()


def _run(
    pipe: Connection,
    errors: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    environment: dict[str, str],
) -> None:
    import torch

    os.dup2(errors.detach(), 2)
    # Made anew, since the old one believes that it can seek.
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    os.environ.update(environment)
    torch.set_num_threads(1)
    status: Any = 0
    try:
        answer = function(pipe, *arguments)
    except SystemExit as error:
        answer, status = None, error.code
    except BaseException as error:  # the other side decides what it means
        answer, status = error, 1
    sys.stderr.flush()
    pipe.send(answer)
    sys.exit(status)


def _arm(kill: Kill, root: Path) -> None:
    """Makes this process end itself at a moment of its run."""
    from sbertkit.storage import publishing
    from sbertkit.training.run.checkpoints import CheckpointStore
    from sbertkit.training.run.monitor import Monitor

    def strike() -> None:
        os.kill(os.getpid(), kill.signal)

    if kill.moment == "step":
        _wrap(Monitor, "on_step_end", lambda _, found: found[1].global_step == kill.number, strike)
    elif kill.moment == "saved":
        _wrap(CheckpointStore, "write", lambda _, found: found[0] == kill.number, strike)
    elif kill.moment == "saving":
        _strike_in_writing(CheckpointStore, kill.number, strike)
    elif kill.moment == "output":
        place_folder = publishing._place_folder

        def place_later(new: Path, path: Path) -> None:
            strike()
            place_folder(new, path)

        publishing._place_folder = place_later
    else:
        _strike_at_use(kill.number, root, strike)


def _wrap(
    owner: Any, name: str, matters: Callable[[Any, tuple[Any, ...]], bool], then: Callable[[], None]
) -> None:
    """Does something after each call of a method that matters."""
    method = getattr(owner, name)

    def wrapped(self: Any, *arguments: Any, **more: Any) -> Any:
        result = method(self, *arguments, **more)
        if matters(self, arguments):
            then()
        return result

    setattr(owner, name, wrapped)


def _strike_in_writing(owner: Any, number: int, strike: Callable[[], None]) -> None:
    write = owner.write

    def write_and_strike(self: Any, step: int, fill: Any, *more: Any) -> Any:
        def filled(folder: Path) -> None:
            fill(folder)
            if step == number:
                strike()

        return write(self, step, filled, *more)

    owner.write = write_and_strike


def _strike_at_use(number: int, root: Path, strike: Callable[[], None]) -> list[str]:
    """Ends this process at the n-th use of the file system below a folder; notes all of them."""
    seen: list[str] = []

    def count(event: str, arguments: tuple[object, ...]) -> None:
        if not event.startswith(("open", "os.", "shutil.")):
            return
        named = [os.fspath(a) for a in arguments if isinstance(a, str | os.PathLike)]
        if any(str(name).startswith(str(root)) for name in named):
            seen.append(event)
            if len(seen) == number:
                strike()

    sys.addaudithook(count)
    return seen
