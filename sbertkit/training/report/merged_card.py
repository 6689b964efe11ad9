"""The model card (README.md) of an encoder that is the average of two."""

from collections.abc import Mapping
from typing import Any

from sbertkit.training.report.card import environment


def merged_card(record: Mapping[str, Any]) -> str:
    """The text of README.md, Markdown with the front matter that the Hugging Face hub reads.

    Args:
        record: How the encoder came about, as JSON holds it: ``merged`` has both models with their
            names, fingerprints and weights.
    """
    return environment().get_template("merged_card.md").render(run=record)
