"""``train-reranker``."""

from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import PATH
from sbertkit.cli.output import print_facts
from sbertkit.cli.train_options import (
    config_options,
    mining_options,
    objective_options,
    opened_index,
    refuse_idle,
    require_gain_option,
)
from sbertkit.cli.train_report import require_gain, result_facts
from sbertkit.training.data_forms import RANKING

if TYPE_CHECKING:
    from sbertkit import TrainConfig


@click.command(name="train-reranker")
@click.argument("data", type=PATH, nargs=-1, required=True)
@click.option("--base", required=True, metavar="MODEL", help="A model folder or a hub name.")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the model.")
@objective_options(RANKING)
@mining_options
@click.option("--dev", metavar="FILE", help="Labeled pairs, as DATA.")
@config_options(RANKING)
@require_gain_option
def train_reranker(
    data: tuple[str, ...],
    output: str,
    mine: str | None,
    config: "TrainConfig",
    gain_wanted: bool,
    **recipe: Any,
) -> None:
    """Train a re-ranker, a cross-encoder of one score, for search --rerank.

    DATA are tables (JSONL, TSV, CSV, Parquet, also gzipped) with query, document and label from 0
    to 1, or with query, positive and negative, each a text or a list; or folders in BEIR's layout,
    of which the split train is used. The base is an encoder or a cross-encoder. The model appears
    at DIR when it is done; until then everything is in DIR.run.

    \b
    Example:
      sbertkit train-reranker scifact --base microsoft/MiniLM-L12-H384-uncased -o models/reranker \\
        --mine indexes/scifact --negatives 4
      sbertkit train-reranker pairs.jsonl --base models/large -o models/small \\
        --objective margin-mse --teacher models/reranker
    """
    refuse_idle(click.get_current_context())
    from sbertkit.training.reranker import reranker_recipe
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train

    with opened_index(mine, config) as index:
        made = reranker_recipe(data=list(data), mine=index, config=config, **recipe)
        result = train(made, output)
    if launch().is_main:
        print_facts(result_facts(result))
    if gain_wanted:
        require_gain([result.gain])
