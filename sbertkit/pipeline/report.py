"""The page of a recipe: the score after each step, and the advice that follows."""

from sbertkit.evaluation.environment import environment
from sbertkit.evaluation.report import figures
from sbertkit.evaluation.report.page import Case, Page, Picture, Section, Table, lineage_of
from sbertkit.formatting import decimal, percent, percent_interval
from sbertkit.pipeline.results import RecipeResult, ScoredEncoder
from sbertkit.progress import duration

_SIZES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def score_table(found: RecipeResult) -> Table:
    """A row for each step, that of the encoder that was indexed marked."""
    collections = list(found.encoders[0].ndcg)
    has_dev = found.encoders[0].dev is not None
    columns = ["after", "own texts, %>", "gain, points>", "cosine of random pairs>"]
    columns += ["dev set>"] if has_dev else []
    columns += [f"{name}>" for name in collections] + ["time>"]
    rows = [
        [
            one.step,
            percent(one.accuracy),
            _gain(one),
            decimal(one.random_cosine),
            *([decimal(one.dev, 4)] if has_dev else []),
            *(decimal(one.ndcg[name], 4) for name in collections),
            duration(one.seconds) if one.seconds else "",
        ]
        for one in found.encoders
    ]
    marked = {row for row, one in enumerate(found.encoders) if one.model == found.model}
    return Table(columns, rows, marked=frozenset(marked))


def index_facts(found: RecipeResult) -> dict[str, object]:
    """What is known of the index, by name; nothing where there is none yet."""
    if not found.index:
        return {}
    size = float(found.index["bytes"])
    unit, name = next((one for one in _SIZES if size >= one[0]), (1.0, "bytes"))
    recall = found.index["recall"]
    return {
        "encoder": found.model,
        "documents": f"{found.index['documents']:,}",
        "vectors": f"{found.index['vectors']:,}",
        "kind": found.index["kind"],
        "recall@10": "1, exhaustive" if recall is None else decimal(recall, 3),
        "search": found.index["mode"],
        "size": f"{size / unit:,.1f} {name}",
    }


def recipe_page(found: RecipeResult) -> Page:
    """The page of a recipe, also of one that is not finished."""
    last = found.encoders[-1]
    headline = {
        "own texts, base": f"{percent(found.encoders[0].accuracy)} %",
        f"own texts, after {last.step}": f"{percent(last.accuracy)} %",
        "gain, points": _gain(last) or "n/a",
    }
    table = score_table(found)
    sections = [
        Section("What follows", found.advice or ["Nothing yet: the recipe is not finished."]),
        Section(
            "Scores",
            [
                "Own texts: the share of parts of your texts (neighboring sentences, or halves of "
                "a short text) whose nearest other part is that of the same text. The gain is "
                "against the base, with a 95 % interval; the marked encoder was indexed.",
            ],
            [table],
            [
                Picture(
                    figures.bars(
                        [one.step for one in found.encoders],
                        [one.accuracy for one in found.encoders],
                        x_label="own texts, %",
                        name="scores by step",
                        scale=100.0,
                    ),
                    "The share of parts that find each other after each step.",
                )
            ],
        ),
    ]
    facts = index_facts(found)
    if facts:
        cases = [
            Case(f"Query {number}", query, {"found": hits})
            for number, (query, hits) in enumerate(found.examples.items(), 1)
        ]
        rows = [[name, value] for name, value in facts.items()]
        sentences = [f"Search it: sbertkit search {found.folder / 'index'}"]
        sections.append(Section("Index", sentences, [Table(["fact", "value"], rows)], cases=cases))
    return Page(
        f"Recipe: {found.about['corpus']}",
        headline,
        found.about,
        sections,
        lineage_of({"environment": environment()}),
    )


def _gain(one: ScoredEncoder) -> str:
    if one.gain is None:
        return ""
    interval = percent_interval(one.gain.interval, sign="+")
    return f"{percent(one.gain.difference, sign='+')} ({interval})"
