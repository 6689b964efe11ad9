"""The prompt of a search on a terminal."""

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sbertkit.cli.output import print_facts, print_line, print_text, say_error
from sbertkit.cli.search.hits import Shown, print_tables
from sbertkit.cli.search.queries import Query
from sbertkit.cli.signals import seen_while_blocked
from sbertkit.errors import SbertkitError
from sbertkit.formatting import counted
from sbertkit.progress import say
from sbertkit.retrieval.modes import HIT_CHOICES, HYBRID, MODES, mode_taken
from sbertkit.terminal import visible_text

if TYPE_CHECKING:
    from sbertkit.retrieval import SearchIndex

_HISTORY = 1_000  # lines that are kept


class Prompt:
    """Answers queries that are typed, until the end of input.

    Args:
        index: The index.
        k: Hits per query.
        settings: Further arguments of `SearchIndex.search`.
        shown: What is shown of the hits.
        condition: The filter that they match, if any.
    """

    def __init__(
        self,
        index: "SearchIndex",
        k: int,
        settings: Mapping[str, Any],
        shown: Shown,
        condition: str | None = None,
    ) -> None:
        self._index = index
        self._k = k
        self._settings = dict(settings)
        self._shown = shown._replace(matcher=index.matcher)
        self._condition = condition
        self._last: Query | None = None
        self._seen = 0
        self._commands: dict[str, Callable[[str], None]] = {
            "k": self._set_k,
            "filter": self._set_filter,
            "mode": self._set_mode,
            "get": self._get,
            "more": self._more,
            "help": self._help,
        }

    def run(self, *, greet: bool = True) -> None:
        """Reads and answers lines; first, says how if `greet`."""
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")  # what is no UTF-8 is repaired later
        say(f"{self._documents()}; type a query, :help or Ctrl-D", shown=greet)
        with _history(), suppress(EOFError):
            for line in _lines():
                try:
                    self._answer(line)
                except SbertkitError as error:
                    say_error(error, "error")

    def _answer(self, line: str) -> None:
        if line.startswith(":"):
            name, _, argument = line[1:].partition(" ")
            if name in ("q", "quit", "exit"):
                raise EOFError
            command = self._commands.get(name)
            if command is None:
                say(f"unknown command :{visible_text(name)}; :help lists them")
            else:
                command(argument.strip())
            return
        self._last, self._seen = Query(1, line), 0
        self._more("")

    def _more(self, _: str) -> None:
        """The next hits of the last query."""
        if self._last is None:
            say("there is no query yet")
            return
        k = self._seen + self._k
        settings = self._settings
        if self._mode != HYBRID:
            settings = {name: value for name, value in settings.items() if name != "fusion"}
        found = self._index.search(self._last.text, k, filter=self._condition, **settings)
        hits = found[self._seen :]
        if not hits:
            say("no more hits")
            return
        print_tables([self._last], [hits], self._shown._replace(first=self._seen + 1))
        self._seen += len(hits)

    def _set_k(self, argument: str) -> None:
        if not re.fullmatch("0*[1-9][0-9]{0,8}", argument):
            say(f":k sets the hits per query, now {self._k}; expected a whole number above 0")
            return
        self._k = int(argument)

    def _set_filter(self, argument: str) -> None:
        """Searches only what matches a filter from now on; everything without one."""
        condition = argument or None
        self._index.count(condition)  # refused if it cannot be read
        self._condition = condition
        self._last = None
        say(self._documents())

    def _set_mode(self, argument: str) -> None:
        """Compares vectors or words from now on."""
        if argument not in MODES:
            choices = " or ".join(MODES)
            say(f":mode sets what is compared, now {self._mode}; expected {choices}")
            return
        self._settings["mode"] = argument
        self._last = None

    @property
    def _mode(self) -> str:
        """What is compared."""
        mode, hits = self._settings.get("mode"), self._settings.get("hits", HIT_CHOICES[0])
        return mode_taken(mode, hits, self._index.default_mode)

    def _documents(self) -> str:
        """How many documents are searched."""
        documents = counted(len(self._index), "document")
        if self._condition is None:
            return documents
        return f"{self._index.count(self._condition):,} of {documents} match the filter"

    def _get(self, argument: str) -> None:
        """The whole document of an id."""
        document = self._index.get(argument)
        if document.metadata:
            print_facts((name, value) for name, value in document.metadata.items())
        for line in document.text.splitlines():
            print_line(line)

    def _help(self, _: str) -> None:
        commands = {
            ":more": "the next hits of the last query",
            ":get ID": "a whole document",
            ":k NUMBER": f"hits per query, now {self._k}",
            ":filter FILTER": "only documents that match it; all without one",
            ":mode MODE": f"dense compares vectors, lexical words, hybrid both; now {self._mode}",
            ":quit": "as Ctrl-D",
        }
        print_facts(commands.items())


def _lines() -> Iterator[str]:
    """The lines that are typed, without those that are blank."""
    while True:
        try:
            with seen_while_blocked():
                line = input("query> ").strip()
        except EOFError:
            print_text("\n")  # the shell's prompt begins a line
            return
        if line:
            yield line


@contextmanager
def _history() -> Iterator[None]:
    """Keeps the lines that are typed in the user's cache, where there is one."""
    try:
        import readline
    except ImportError:  # Windows
        yield
        return
    from sbertkit.user_cache import cache_folder

    folder = cache_folder("search")
    file = None if folder is None else str(folder / "history")
    if file is not None:
        with suppress(OSError):
            readline.read_history_file(file)
    readline.set_history_length(_HISTORY)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):
                readline.write_history_file(file)


def on_terminal() -> bool:
    """Whether somebody types, and reads what is printed."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
