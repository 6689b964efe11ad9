"""The command line; nothing heavy is imported before a command needs it."""

from sbertkit.cli.app import main

__all__ = ["main"]
