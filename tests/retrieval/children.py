"""Work in child processes that have torch and faiss loaded already, to be killed or restricted.

They are forked from a server that has imported all and used nothing, so that one starts within a
tenth of a second and its libraries have no threads that a fork would have lost.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

TIMEOUT = 60
"""Seconds until a child counts as stuck."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "faiss",
        "torch",
        "transformers.models.auto.modeling_auto",
        "transformers.models.bert.modeling_bert",
        "transformers.models.bert.tokenization_bert",
        "sbertkit.retrieval",
    ]
)


class Child:
    """A child that runs a function of a module, with one end of a pipe as its first argument."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.pipe, other = _CONTEXT.Pipe()
        self.process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(other, function, arguments), daemon=True
        )
        self.process.start()
        other.close()

    def receive(self) -> Any:
        """What the function sends next, or gives at its end; its error is raised."""
        if not self.pipe.poll(TIMEOUT):
            raise TimeoutError("the child says nothing")
        answer = self.pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.join(TIMEOUT)
        self.pipe.close()


def result_of(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives in a child of its own."""
    with Child(function, *arguments) as child:
        return child.receive()


def _run(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import faiss
    import torch

    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    try:
        answer = function(pipe, *arguments)
    except BaseException as error:  # the other side decides what it means
        answer = error
    pipe.send(answer)
