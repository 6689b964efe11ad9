"""``demo``: the tour on a bundled corpus, a reverse dictionary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sbertkit.cli.options import DEFAULT_MODEL, quiet_option
from sbertkit.cli.output import print_line, print_table

if TYPE_CHECKING:
    from sbertkit.retrieval import Hit

_DEPTH = 100
_SHOWN = 3


class _Description(NamedTuple):
    text: str
    word: str


# Chosen before the first search was ever run; none was changed afterwards.
DESCRIPTIONS = (
    _Description("fear of being trapped in a small closed room", "claustrophobia"),
    _Description("a child whose parents have died", "orphan"),
    _Description("the person who flies an airplane", "pilot"),
    _Description("a place where books can be borrowed", "library"),
    _Description("the study of stars and planets", "astronomy"),
    _Description("to speak very quietly", "whisper"),
    _Description("frozen water falling from the sky in white flakes", "snow"),
    _Description("unable to see", "blind"),
    _Description("a tool for driving in nails", "hammer"),
    _Description("the first meal of the day", "breakfast"),
)


@click.command()
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    default="indexes/demo",
    show_default=True,
    help="Where the index goes.",
)
@quiet_option
def demo(output: str, quiet: bool) -> None:
    """Take the tour: a reverse dictionary.

    Builds an index over 27,254 WordNet glosses and looks ten descriptions up in it.

    \b
    Example:
      sbertkit demo
    """
    from sbertkit.data.wordnet import demo_corpus
    from sbertkit.encoder import Encoder
    from sbertkit.retrieval import SearchIndex

    print_line(f"Indexing 27,254 WordNet glosses with {DEFAULT_MODEL} into {output} ...")
    encoder = Encoder.load(DEFAULT_MODEL)
    with SearchIndex.build(demo_corpus(), encoder, output, progress=not quiet) as index:
        texts = [description.text for description in DESCRIPTIONS]
        hits = index.search_batch(texts, _DEPTH, mode="dense")  # which have other words
    rows = [_row(description, found) for description, found in zip(DESCRIPTIONS, hits, strict=True)]
    print_table(("description", "word", "rank>", "first found"), rows, title="Reverse dictionary")
    good = sum(isinstance(row[2], int) and row[2] <= _SHOWN for row in rows)
    print_line(f"The right word came within the first {_SHOWN} for {good} of {len(rows)}.")
    print_line("")
    print_line("Go on with your own text:")
    print_line(f'  sbertkit search {output} "a fear of heights"')
    print_line("  sbertkit index corpus.txt")
    print_line('  sbertkit search indexes/corpus "what you are looking for"')


def _row(description: _Description, hits: "Sequence[Hit]") -> Sequence[Any]:
    ranks = [rank for rank, hit in enumerate(hits, 1) if description.word in hit.metadata["lemmas"]]
    found = ", ".join(hit.metadata["lemmas"][0] for hit in hits[:_SHOWN])
    return description.text, description.word, ranks[0] if ranks else f"> {_DEPTH}", found
