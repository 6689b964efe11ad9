"""The demo corpus: the glosses of WordNet 3.0, as a reverse dictionary.

``glosses.jsonl.gz`` was made from WordNet 3.0 by ``python -m sbertkit.data.wordnet.make``; it
holds the 27,254 synsets that occur in WordNet's sense-tagged texts. WordNet is copyright 2006 by
Princeton University; its licence, which covers the file, is ``LICENSE.txt`` beside it.
"""

from importlib import resources
from pathlib import Path

__all__ = ["demo_corpus"]


def demo_corpus() -> Path:
    """The path of the demo corpus: gzipped JSON lines with ``id``, ``text`` and ``lemmas``.

    Ids are as in ``claustrophobia.n.01``; the text is the gloss and the lemmas are the words
    that it explains.
    """
    return Path(str(resources.files(__name__).joinpath("glosses.jsonl.gz")))
