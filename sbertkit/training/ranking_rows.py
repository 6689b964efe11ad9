"""Rows of query and document to train on, with the negatives that are mined for them."""

from sbertkit.arguments import Paths
from sbertkit.data.ranking import RankingSet, read_ranking
from sbertkit.training.config import TrainConfig
from sbertkit.training.data_forms import DataForm, DataSource, TrainingData
from sbertkit.training.mining import Mining, SearchLike, mine_negatives


def read_rows(
    form: DataForm,
    data: Paths | RankingSet,
    mine: SearchLike | None,
    mining: Mining,
    config: TrainConfig,
) -> TrainingData:
    """The rows of files and folders for `read_ranking`, and those that are mined.

    Args:
        form: What they are called; of `PAIRS` no positive may be its anchor or a negative.
        data: What is read, or was.
        mine: Where negatives are mined, if anywhere.
        mining: How.
        config: Split, seed of the draw, device, and whether progress is shown.

    Raises:
        InputError: Data or index are refused.
    """
    ranking = data
    if not isinstance(ranking, RankingSet):
        ranking = read_ranking(
            ranking, split=config.split, distinct=form.task == "embed", progress=config.progress
        )
    pairs = list(ranking.pairs)
    if mine is not None:
        pairs = mine_negatives(pairs, mine, mining, config)
    sources = tuple(
        DataSource(one.source, one.sha256, one.rows, one.skipped) for one in ranking.sources
    )
    return TrainingData(form, pairs, sources)
