"""``train-reranker``."""

from typing import TYPE_CHECKING, Any

import click

from sbertkit.cli.completion import INDEX, PATH
from sbertkit.cli.options import given_options
from sbertkit.cli.output import print_facts
from sbertkit.cli.settings import setting_options
from sbertkit.cli.train_options import config_options, objective_options, require_gain_option
from sbertkit.cli.train_report import require_gain, result_facts
from sbertkit.training.data_forms import RANKING
from sbertkit.training.mining import Mining

if TYPE_CHECKING:
    from sbertkit import TrainConfig

_MINING = setting_options(Mining, " With --mine.")


@click.command(name="train-reranker")
@click.argument("data", type=PATH, nargs=-1, required=True)
@click.option("--base", required=True, metavar="MODEL", help="A model folder or a hub name.")
@click.option("-o", "--output", required=True, metavar="DIR", help="A new folder for the model.")
@objective_options(RANKING)
@click.option(
    "--mine", metavar="INDEX", type=INDEX, help="Take negatives from what this index finds."
)
@_MINING["negatives"]
@_MINING["mine_depth"]
@click.option("--dev", metavar="FILE", help="Labeled pairs, as DATA.")
@config_options(RANKING)
@require_gain_option
def train_reranker(
    data: tuple[str, ...],
    output: str,
    mine: str | None,
    negatives: int,
    mine_depth: int,
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
    _refuse_idle(click.get_current_context())
    from sbertkit.retrieval import SearchIndex
    from sbertkit.training.reranker import reranker_recipe
    from sbertkit.training.run.distributed import launch
    from sbertkit.training.start import train

    mining = Mining(negatives=negatives, mine_depth=mine_depth)
    index = None if mine is None else SearchIndex.open(mine, device=config.device)
    try:
        made = reranker_recipe(data=list(data), mine=index, mining=mining, config=config, **recipe)
        result = train(made, output)
    finally:
        if index is not None:
            index.close()
    if launch().is_main:
        print_facts(result_facts(result))
    if gain_wanted:
        require_gain([result.gain])


def _refuse_idle(context: click.Context) -> None:
    """Refuses options that would do nothing beside the others."""
    given = given_options(context)
    needed = {
        "dev": ("gain_wanted", "patience", "drop_overlap"),
        "mine": ("negatives", "mine_depth"),
    }
    for other, names in needed.items():
        for name in names if other not in given else ():
            if name in given:
                shown = "require-gain" if name == "gain_wanted" else name.replace("_", "-")
                raise click.UsageError(f"--{shown} needs --{other}")
