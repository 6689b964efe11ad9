"""Tables of evaluation: retrieval, post-processing, isotropy, the diagnosis against labels."""

from typing import Any

from markdown_table import markdown

from sbertkit.evaluation.suites import read_suite

Figures = dict[str, Any]

STEPS = {
    "none": "-",
    "center": "centred",
    "whiten": "whitened",
    "whiten_shrunk": "whitened, shrunk by 0.1",
    "whiten_half": "whitened, half the directions",
    "remove_top_1": "without the top direction",
    "remove_top_3": "without the top 3 directions",
    "standardize": "standardized",
    "layer_norm": "layer normalization",
}


def retrieval_table(pieces: Figures) -> str:
    """Measures on each collection, beside BM25 and what others report."""
    published = {row.name: row.scores for row in read_suite("retrieval-small").published}
    rows = []
    for name, figures in pieces.items():
        measures, interval = figures["measures"], figures["interval"]
        rows.append(
            (
                name,
                figures["queries"],
                f"{100 * measures['nDCG@10']:.2f}",
                f"{100 * interval['low']:.2f} to {100 * interval['high']:.2f}",
                _number(published["BM25"].get(name)),
                _number(published["all-MiniLM-L6-v2"].get(name)),
                *(f"{100 * measures[other]:.2f}" for other in ("AP", "RR@10", "R@100")),
                figures["seconds"],
            )
        )
    header = (
        *("collection", "queries", "nDCG@10", "95 % interval", "BM25", "published"),
        *("AP", "RR@10", "R@100", "seconds"),
    )
    model = next(iter(pieces.values()))["model"]
    return (
        f"{markdown(header, rows)}\n\n{model}, exact search, times 100; seconds with encoding. "
        "BM25 is a plain run (k1 0.9, b 0.4, English stop words, Snowball stems) by nDCG@10, "
        "published is MTEB's figure for this model."
    )


def post_processing_table(pieces: Figures) -> str:
    """Scores and spaces of each model by pooling and step."""
    parts = []
    for model in dict.fromkeys(key.split(":")[0] for key in pieces):
        rows = []
        for key, figures in pieces.items():
            name, pooling, step = key.split(":")
            if name != model:
                continue
            stsb, sick = (figures["spearman"][one] for one in ("stsb", "sick"))
            rows.append(
                (
                    pooling,
                    STEPS[step],
                    *(_number(stsb[similarity]) for similarity in ("cosine", "dot", "euclidean")),
                    _number(sick["cosine"]),
                    *(_number(figures[one], 3) for one in ("random_cosine", "isoscore")),
                    _number(figures["effective_rank"], 1),
                )
            )
        header = (
            *("pooling", "post-processing", "STS-B, cosine or normalized"),
            *("STS-B, dot, not normalized", "STS-B, Euclidean, not normalized"),
            *("SICK, cosine", "cosine of random pairs", "IsoScore", "effective rank"),
        )
        parts.append(f"{model}:\n\n{markdown(header, rows)}")
    return "\n\n".join(parts)


def isotropy_table(pieces: Figures) -> str:
    """Length and place of vectors against frequency, before and after normalization."""
    after = " after normalization"
    rows = []
    for key, figures in pieces.items():
        model, _, corpus = key.partition(":")
        for name, found in figures["frequency"].items():
            if name.endswith(after):
                continue
            normalized = figures["frequency"][f"{name}{after}"]
            rows.append(
                (
                    *(model, corpus, name, f"{found['items']:,}"),
                    *(_number(one) for one in (found["norm"], found["centre"])),
                    _number(normalized["centre"]),
                )
            )
    header = (
        *("model", "corpus", "vectors of", "count", "length with frequency"),
        *("distance from the centre with frequency", "the same, normalized"),
    )
    return markdown(header, rows)


def diagnosis_table(pieces: Figures) -> str:
    """The label-free choice against the labelled one."""
    rows = []
    for key, figures in pieces.items():
        model, _, corpus = key.partition(":")
        labelled = figures["labelled"]
        rows.append(
            (
                model,
                corpus,
                figures["labels"],
                figures["pairs"],
                figures["tried"],
                f"{figures['rank_correlation']:.2f}",
                f"{figures['best']}: {labelled['best']:.1f}",
                f"{figures['recommended']}: {labelled['recommended']:.1f}",
                f"{labelled['best'] - labelled['recommended']:.1f}",
                f"{labelled['best'] - labelled['first choice']:.1f}",
                f"{labelled['as it is']:.1f}",
                f"{figures['seconds']:.0f}",
            )
        )
    header = (
        *("model", "corpus", "labels", "pairs", "tried", "rank correlation", "best by labels"),
        *("recommended", "points lost", "by the first choice", "as it is", "seconds"),
    )
    return markdown(header, rows)


def _number(value: float | None, places: int = 2) -> str:
    return "-" if value is None else f"{value:.{places}f}"
