"""The ``sbertkit`` command: its subcommands, and how errors and warnings reach the user."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from sbertkit import __version__
from sbertkit.cli.output import prepare_streams, say_error, settle_output
from sbertkit.errors import InputError, SbertkitError, shell_words
from sbertkit.progress import say
from sbertkit.terminal import error_stream

_COMMANDS = {
    "encode": ("encode", "Encode a corpus to a file of vectors."),
    "similarity": ("encode", "Print the cosine of two texts or files."),
    "index": ("index", "Build a search index over CORPUS."),
    "search": ("search", "Search the index DIR."),
    "add": ("changes", "Add the documents of CORPUS to the index DIR."),
    "upsert": ("changes", "Add documents to the index DIR, or replace them by their ids."),
    "delete": ("changes", "Delete documents by their IDs from the index DIR, all or none."),
    "tune": (
        "tune",
        "Make the index DIR reach a recall, or change its kind or weight, in one commit.",
    ),
    "compact": ("maintain", "Rewrite the index DIR without its deleted documents."),
    "info": ("index", "Describe the index DIR."),
    "verify": ("index", "Check every file of the index DIR."),
    "repair": ("maintain", "Repair the damaged index DIR from its intact files."),
    "upgrade": ("maintain", "Bring the index DIR of an older format to the present one."),
    "dump": ("maintain", "Write documents and vectors of the index DIR to a file."),
    "train-nli": ("train", "Train a sentence encoder on natural language inference."),
    "train-sts": ("train", "Train a sentence encoder on scored pairs of sentences."),
    "train-pairs": ("train", "Train a sentence encoder on pairs and triplets."),
    "train-multi": ("train_multi", "Train a sentence encoder on several sets at once."),
    "train-reranker": (
        "train_reranker",
        "Train a re-ranker, a cross-encoder of one score, for search --rerank.",
    ),
    "distill": ("train", "Train a smaller or multilingual encoder by the vectors of a teacher."),
    "adapt": ("adapt", "Pretrain an encoder further on one's own texts, without labels."),
    "recipe": (
        "recipe",
        "Adapt, train-nli, diagnose and index, with a report of what each step gave.",
    ),
    "merge": ("merge", "Average the weights of two encoders of the same shape."),
    "eval": ("evaluate", "Evaluate encoders and indexes."),
    "diagnose": ("diagnose", "Find pooling, layer and post-processing that suit CORPUS."),
    "models": ("models", "Find an encoder in a table of pretrained ones."),
    "export": ("export", "Write MODEL as one ONNX file, from token ids to the vector."),
    "data": ("data", "Find and fetch public data sets by name."),
    "demo": ("demo", "Take the tour: a reverse dictionary."),
}
"""The module of each command, and the first sentence of its help, which lists it without an import.

A command has its name there, with underscores; ``eval`` is `evaluate`.
"""

_READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended, as it ends most when head has enough."""


@contextmanager
def _own_errors() -> Iterator[None]:
    """Keeps two errors from click, which takes the one for Ctrl-C and the other for a failure."""
    try:
        yield
    except EOFError as error:
        raise InputError(
            f"a file ended too early ({error}); it is truncated or damaged, make it again"
        ) from error
    except BrokenPipeError as error:
        raise click.exceptions.Exit(_READER_GONE) from error


class _Loaded(Mapping[str, click.Command]):
    """The commands by name; a module is imported when its command is looked up."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"sbertkit.cli.{_COMMANDS[name][0]}")
        attribute = "evaluate" if name == "eval" else name.replace("-", "_")
        command: click.Command = getattr(module, attribute)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(click.Group):
    """The commands, with their errors as they are; a list of them imports none."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Reads the arguments; a request for help is answered here."""
        with _own_errors():
            return super().make_context(*arguments, **options)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Lists the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted((name, line) for name, (_, line) in _COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        with _own_errors():
            return super().invoke(ctx)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands=_Loaded(),
)
@click.version_option(__version__, "--version", message="%(prog)s %(version)s")
def app() -> None:
    """Sentence embeddings, durable semantic search, and numbers that can be trusted.

    \b
    Example:
      sbertkit demo
      sbertkit index corpus.txt
      sbertkit search indexes/corpus "a person having a meal"
    """


def run(arguments: Sequence[str] | None) -> int:
    """Runs a command and gives the exit status; see `sbertkit.cli.main`.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        SystemExit: SIGTERM.
    """
    prepare_streams()
    _show_warnings()
    try:
        status = app.main(
            args=None if arguments is None else list(arguments),
            prog_name="sbertkit",
            standalone_mode=False,
        )
    except SbertkitError as error:
        if "WORLD_SIZE" in os.environ:
            from sbertkit.training.run.distributed import let_main_speak

            let_main_speak()
        say_error(error, "sbertkit: error")
        status = 1
    except click.ClickException as error:
        _show_usage(error)
        status = error.exit_code
    except OSError as error:
        # Of the machine and not of the program: a full disk behind standard output, for instance.
        reason = f"{error.filename or 'standard output'}: {error.strerror or error}"
        say(f"sbertkit: error: {reason}")
        status = 1
    except click.Abort as error:
        raise KeyboardInterrupt from error
    finally:
        settle_output()
    return status or 0


def _show_usage(error: click.ClickException) -> None:
    """Prints wrong usage as click does, but with what stands on the command line made visible."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # whose message is the help
        error.show()
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        usage, path = error.ctx.get_usage(), error.ctx.command_path
        error_stream().write(f"{usage}\nTry '{path} --help' for help.\n\n")
    say(f"Error: {error.format_message()}")


class _WarningHandler(logging.Handler):
    """Prints each record as one line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record."""
        say(f"warning: {shell_words(record.getMessage())}")


def _show_warnings() -> None:
    logger = logging.getLogger("sbertkit")
    logger.handlers = [_WarningHandler(logging.WARNING)]
    logger.propagate = False
