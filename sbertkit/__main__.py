"""``python -m sbertkit`` is the command line."""

from sbertkit.cli import main

main()
