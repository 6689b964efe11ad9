"""``search``: the command, its queries, what it prints, and its prompt."""

from sbertkit.cli.search.command import search

__all__ = ["search"]
