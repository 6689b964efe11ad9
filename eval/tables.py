"""Writes the tables of eval/README.md from results/*.json.

python eval/tables.py [--check]
"""

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from recording import RESULTS, Figures, arguments_of, is_stale, median_ratio, records

from sbertkit.evaluation.suites import read_suite
from sbertkit.training.ablations import PUBLISHED_POOLINGS

README = Path(__file__).resolve().parent / "README.md"

Columns = Mapping[str, Callable[[Any], object]]
"""Titles, and what gives the cell of a row."""

BASES = {
    "minilm-mlm": "all-MiniLM-L6-v2 driven back by masked-language modeling; a stand-in, nothing "
    "about encoders that were never fine-tuned follows",
}
"""Notes on base models, by the name of their folder."""

METHODS = {
    "softmax": "sbertkit, softmax",
    "contrastive": "sbertkit, contrastive",
    "peer-softmax": "sentence-transformers, SoftmaxLoss",
    "peer-ranking": "sentence-transformers, MultipleNegativesRankingLoss",
    "peer-softmax-bf16": "the same, SoftmaxLoss, in bf16",
    "peer-ranking-bf16": "the same, MultipleNegativesRankingLoss, in bf16",
}
SETS = {"stsb": "STS-B", "sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sick": "SICK"}

_PUBLISHED_DATA = "BERT-base, 940,000 pairs"
PUBLISHED = {
    "published: BERT-base untrained, mean": (46.35, 38.78, 57.98, 57.98, 58.40),
    f"published: SBERT-NLI-base, softmax ({_PUBLISHED_DATA})": (77.03, 70.97, 76.53, 73.19, 72.91),
    f"published: SimCSE supervised, contrastive ({_PUBLISHED_DATA})": (
        *(84.25, 75.30, 84.67, 80.19, 80.39),
    ),
}
"""By the order of `SETS`.

Source: Reimers & Gurevych 2019, Sentence-BERT, table 1; Gao et al. 2021, SimCSE, table 5.
"""

FINE_TUNING = {
    "stages": "One stage or two. Spearman times 100, mean ± sample deviation over the seeds:",
    "objectives": "Objectives, as many steps of 64 examples each:",
    "chinese": "Objectives on the Chinese STS-B. The base knows English alone, most characters are "
    "unknown to it: the rows compare objectives, nothing else.",
    "strategies": "How much of the encoder moves, by rows of NLI, contrastive:",
    "matryoshka": "Vectors truncated to their first numbers, trained for it (NLI, contrastive) or "
    "not:",
}

ADAPTATION = {
    "tasks": "Each task from all-MiniLM-L6-v2; loss and accuracy on texts that are held out. "
    "Heads that the base lacks begin with random weights:",
    "road": "nDCG@10 times 100 after adapt, and after NLI, which follows it:",
    "claims": "A small encoder from random weights, pretrained in several ways, then trained on "
    "NLI. Spearman and nDCG@10 times 100:",
    "scratch": "The same encoder, pretrained longer:",
}

SPACE = {
    "random_cosine": "cosine of random pairs",
    "uniformity": "uniformity",
    "effective_rank": "effective rank",
}
POSTPROCESSORS = {
    "none": "-",
    "center": "centered",
    "whiten": "whitened",
    "whiten_shrunk": "whitened, shrunk by 0.1",
    "whiten_half": "whitened, half the directions",
    "remove_top_1": "without the top direction",
    "remove_top_3": "without the top 3 directions",
    "standardize": "standardized",
    "layer_norm": "layer normalization",
}


def table(rows: Iterable[Any], columns: Columns) -> str:
    """The rows as a table in Markdown."""
    return markdown(list(columns), ([cell(row) for cell in columns.values()] for row in rows))


def markdown(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows of cells as a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value: float | None, places: int = 2) -> str:
    """A number with so many decimal places, ``-`` for None."""
    return "-" if value is None else f"{value:.{places}f}"


def percent(value: float) -> str:
    """A score times 100."""
    return f"{100 * value:.2f}"


def percent_interval(interval: Figures) -> str:
    """The ends of an interval times 100."""
    return f"{percent(interval['low'])} to {percent(interval['high'])}"


# --- speed and memory


def encode_table(entries: Figures) -> str:
    """Encoding speed: sentences per second and ratio for each length."""
    lengths = list(entries.values())
    titles = [
        f"{name}: {one['texts']:,} of {one['tokens']:.0f} tokens" for name, one in entries.items()
    ]
    rows = []
    for system in lengths[0]["systems"]:
        found = [length["systems"][system] for length in lengths]
        speeds = (f"{one['sentences_per_second']:,.0f} ({one['ratio']:.2f})" for one in found)
        rows.append((system, *speeds, number(min(one["min_cosine"] for one in found), 5)))
    largest = max(
        found["largest_difference"]
        for length in lengths
        for system, found in length["systems"].items()
        if system.startswith("sbertkit") and system.endswith("fp32")
    )
    return (
        f"{markdown(('sentences per second (ratio)', *titles, 'minimum cosine'), rows)}\n\n"
        f"Ratios to sentence-transformers in fp32 are medians of {lengths[0]['runs']} alternating "
        "runs; cosines are to its vectors. The largest difference of any component of sbertkit's "
        f"vectors in fp32 is {largest:.1e}."
    )


def bench_reranker_table(entries: Figures) -> str:
    """Re-ranking speed: milliseconds per query and ratio for each set of candidates."""
    sets = list(entries.values())
    titles = [
        f"{name}: {one['pairs']} of {one['tokens_per_pair']:.0f} tokens"
        for name, one in entries.items()
    ]
    rows = []
    for system in sets[0]["systems"]:
        found = [one["systems"][system] for one in sets]
        speeds = (f"{one['milliseconds']:,.0f} ({one['ratio']:.2f})" for one in found)
        rows.append((system, *speeds, f"{max(one['largest_difference'] for one in found):.1e}"))
    return (
        f"{markdown(('milliseconds (ratio)', *titles, 'largest difference'), rows)}\n\n"
        f"The model is {sets[0]['model']}. Ratios to sentence-transformers in fp32 are medians of "
        f"{sets[0]['rounds']} alternating rounds; differences are to its scores."
    )


def train_reranker_table(entries: Figures) -> str:
    """What a small re-ranker was trained on."""
    (figures,) = entries.values()
    titles = {
        "nli": "SNLI: entailed or neutral",
        "titles": "titles and abstracts of SciFact, with mined negatives",
        "scifact": "SciFact, with mined negatives",
    }
    rows = []
    for name, title in titles.items():
        run = figures.get(name)
        if run:  # a setting of that name says that it was left out
            settings = run["settings"]
            length = f"steps: {settings['max_steps']}"
            if settings["max_steps"] is None:
                length = f"epochs: {settings['epochs']:g}"
            shares = (f"{run['counts']['relevant']:,}", f"{run['counts']['other']:,}")
            rows.append((title, *shares, length, settings["batch_size"], settings["max_tokens"]))
    header = ("one after the other", "relevant", "other", "length", "batch", "tokens")
    return (
        f"{markdown(header, rows)}\n\nFrom {figures['base']}: a stand-in for the re-rankers that "
        "can be downloaded."
    )


def distill_table(entries: Figures) -> str:
    """What students of fewer layers keep of their teacher."""
    teacher = entries["teacher"]
    students = {name: one for name, one in entries.items() if name != "teacher"}
    head = (
        "",
        "STS-B test",
        "before training",
        "SciFact nDCG@10",
        "texts per second",
        "parameters",
    )
    rows = []
    for name, one in students.items():
        kept = [one[key] / teacher[key] for key in ("stsb", "ndcg")]
        rows.append(
            (
                name,
                f"{percent(one['stsb'])} ({percent(kept[0])} % kept)",
                percent(one["stsb_before"]),
                f"{percent(one['ndcg'])} ({percent(kept[1])} % kept)",
                f"{one['per_second']:,.0f} ({one['ratio']:.2f})",
                f"{one['parameters'] / 1e6:.1f} M",
            )
        )
    first = next(iter(students.values()), None)
    own = (
        ("-", "-")
        if first is None
        else (
            f"{first['teacher_per_second']:,.0f}",
            f"{first['teacher_parameters'] / 1e6:.1f} M",
        )
    )
    top = ("teacher, 6 layers", percent(teacher["stsb"]), "-", percent(teacher["ndcg"]), *own)
    return (
        f"{markdown(head, [top, *rows])}\n\n"
        f"The teacher is {teacher['model']}. Students have layers of it, evenly spaced, and "
        f"learned its vectors of {teacher['texts']:,} texts in {teacher['epochs']:g} epochs. "
        "Speeds are medians of alternating runs with torch in fp32, with the ratio to the teacher "
        "in the same runs."
    )


def rerank_quality_table(entries: Figures) -> str:
    """nDCG@10 of a dense search, and re-ranked to some depths in each precision."""
    found: dict[str, dict[str, Figures]] = {}
    for key, one in entries.items():
        name, system = key.split(": ")
        found.setdefault(name, {})[system] = one
    depths = [str(depth) for depth in next(iter(entries.values()))["depths_measured"]]
    columns = [(depth, precision) for depth in depths for precision in ("fp32", "int8")]

    def row(name: str, systems: Figures) -> tuple[str, ...]:
        dense = systems["dense"]
        scores = (systems[system]["depths"][depth] for depth, system in columns)
        return (f"{name} ({dense['queries']})", *map(percent, (dense["depths"]["0"], *scores)))

    rows = [row(*one) for one in found.items()]
    lost = max(
        systems["fp32"]["depths"][depth] - systems["int8"]["depths"][depth]
        for systems in found.values()
        for depth in depths
    )
    exact = max(systems["fp32"]["largest_difference"] for systems in found.values())
    titles = ("set (queries)", "dense", *map(", ".join, columns))
    return (
        f"{markdown(titles, rows)}\n\n"
        f"int8 loses at most {percent(lost)} of fp32, whose scores differ from those of "
        f"`CrossEncoder.predict` by at most {exact:.1e}."
    )


def precision_table(figures: Figures) -> str:
    """Spearman by precision."""
    header = ("Spearman", "STS-B", "STS12", "STS13", "STS14", "mean of STS12 to 14")
    return markdown(header, [(name, *map(number, row.values())) for name, row in figures.items()])


def cold_start_table(figures: Figures) -> str:
    """From the shell to the answer."""
    columns: Columns = {
        "command": lambda row: row[0],
        "seconds": lambda row: number(row[1]["seconds"]),
        "peak memory, MB": lambda row: number(row[1]["megabytes"], 0),
        "times as fast": lambda row: number(row[1]["ratio"], 1),
    }
    return table(figures["ways"].items(), columns)


def shell_encode_table(entries: Figures) -> str:
    """Lines to vectors in whole processes."""
    rows = [
        (f"{one['lines']:,}", one["threads"], name, way)
        for one in entries.values()
        for name, way in one.items()
        if isinstance(way, dict)
    ]
    columns: Columns = {
        "lines": lambda row: row[0],
        "threads": lambda row: row[1],
        "command": lambda row: row[2],
        "seconds": lambda row: number(row[3]["seconds"]),
        "CPU seconds": lambda row: number(row[3]["cpu_seconds"]),
        "times as fast": lambda row: number(row[3]["ratio"], 1),
        "peak memory, MB": lambda row: number(row[3]["megabytes"], 0),
        "minimum cosine": lambda row: number(row[3]["min_cosine"], 4),
    }
    return table(rows, columns)


def encode_memory_table(figures: Figures) -> str:
    """Memory of encoding a long file, and whether a killed run gives the same file."""
    rows = [
        ("lines", f"{figures['lines']:,}"),
        ("peak anonymous memory up to 30,000 lines, MB", figures["early_peak_mb"]),
        ("peak afterwards, MB", figures["late_peak_mb"]),
        ("growth, MB", figures["growth_mb"]),
        ("killed after lines", ", ".join(f"{lines:,}" for lines in figures["killed_after"])),
        ("file equals that of an uninterrupted run", "yes" if figures["equal"] else "NO"),
    ]
    return markdown(("", ""), rows)


def index_memory_table(figures: Figures) -> str:
    """Memory of building an index."""
    columns: Columns = {
        "encoder and kind": lambda row: row[0],
        "documents": lambda row: " / ".join(f"{lines:,}" for lines in row[1]["lines"]),
        "peak anonymous memory, MB": lambda row: " / ".join(
            number(megabytes, 1) for megabytes in row[1]["peak_anonymous_mb"]
        ),
        "growth, MB": lambda row: number(row[1]["growth_mb"], 1),
        "codes and clusters, MB": lambda row: " / ".join(
            number(megabytes, 1) for megabytes in row[1]["index_mb"]
        ),
    }
    return table(list(figures.items()), columns)


def index_changes_table(figures: Figures) -> str:
    """What an update costs, and what many segments cost a search."""
    update = figures["update"]
    columns: Columns = {
        "kind": lambda row: row[0],
        "segments": lambda row: row[1]["segments"],
        "deleted": lambda row: f"{row[1]['deleted']:,}",
        "ms per query": lambda row: number(row[1]["milliseconds"]),
        "ms, built at once": lambda row: number(row[1]["rebuilt_milliseconds"]),
        "ratio": lambda row: number(row[1]["ratio"]),
        "ratio after compact": lambda row: number(row[1]["ratio_compacted"]),
        "recall@10, both": lambda row: ", ".join(
            number(row[1]["recall_at_10"][name], 3) for name in ("segments", "rebuilt")
        ),
    }
    return (
        f"`index --update` on {figures['documents']:,} documents, {update['changed']:,} of them "
        f"changed, encodes {update['encoded']:,} texts in {update['seconds']:.2f} s, of which "
        f"{update['seconds_without_encoding']:.2f} s are not encoding.\n\n"
        f"{table(figures['search'].items(), columns)}"
    )


def filters_table(entries: Figures) -> str:
    """What a filter takes in each way to evaluate it, and what the ways cost before."""
    ours = entries["sbertkit"]
    titles = {"json": "SQLite, JSON", "indexed json": "the same, indexed", "arrow": "pyarrow"}
    header = [
        *("condition", "filter", "share of documents", "ms, first", "ms"),
        *(f"ms, {title}" for title in titles.values()),
    ]
    rows = [
        [
            *(case["name"], f"`{case['filter']}`"),
            *(f"{100 * case['matches'] / ours['documents']:.3g} %",),
            *(number(case["cold_ms"]), number(case["warm_ms"])),
            *(number(entries[name]["cases"][place]["warm_ms"]) for name in titles),
        ]
        for place, case in enumerate(ours["cases"])
    ]
    costs = "; ".join(
        f"{title}: {entries[name]['seconds']} s and {entries[name]['bytes'] / 1e6:.0f} MB"
        for name, title in titles.items()
        if entries[name]["bytes"]
    )
    return (
        f"{ours['documents']:,} documents. The file for filters is written in {ours['seconds']} s "
        f"and has {ours['bytes'] / 1e6:.0f} MB; the documents are staged in "
        f"{ours['seconds_of_staging']} s and have {ours['bytes_of_documents'] / 1e6:.0f} MB. "
        f"{costs}.\n\n{markdown(header, rows)}"
    )


INDEX_RECALLS = (0.9, 0.95, 0.99)


def bench_index_table(entries: Figures) -> str:
    """Recalls that were asked for, and the speed of each system where it reaches them."""
    asked = [one for one in entries.values() if one.get("system", "").startswith("sbertkit")]
    columns: Columns = {
        "corpus": lambda one: f"{one['rows']:,} {one['corpus']}",
        "kind": lambda one: one["system"].split()[1],
        "asked recall@10": lambda one: one["system"].split()[2],
        "measured": lambda one: number(one.get("recall_at_10"), 4),
        "95 % interval": lambda one: (
            one.get("refused") or "{low:.4f} to {high:.4f}".format(**one["interval"])
        ),
        "build, s": lambda one: number(one.get("seconds"), 1),
        "bytes per vector": lambda one: _bytes_per_vector(one),
    }
    parts = [table(asked, columns)]
    if "frontier" in entries:
        parts.append(_frontier(entries))
    return "\n\n".join(parts)


def _bytes_per_vector(figures: Figures) -> str:
    return "-" if "refused" in figures else f"{figures['bytes'] / figures['rows']:,.0f}"


def _frontier(entries: Figures) -> str:
    """Build, bytes, and the fastest setting of each system that reaches a recall."""
    timed, base = entries["frontier"], "hnswlib"
    found: dict[str, list[Figures]] = {}
    for point in timed["points"]:
        name, setting = point["system"], point["setting"]
        if "sbertkit" in name:
            beside = {"rows": "", "hits": ", with documents"}
            swept = ", settings of the bench"
            name = name.rpartition(" ")[0]
            name += beside[setting] if isinstance(setting, str) else swept
        found.setdefault(name, []).append(point)
    built = entries[f"lines: {base}"]["seconds"]
    rows = []
    for name, points in found.items():
        index = entries[f"lines: {points[-1]['system']}"]
        cells = [f"{index['seconds']:,.0f} ({built / index['seconds']:.1f})"]
        cells.append(_bytes_per_vector(index))
        cells += [_speed(points, found[base], recall) for recall in INDEX_RECALLS]
        rows.append((name, *cells))
    header = ("system", "build, s", "bytes per vector", *map("recall@10 {}".format, INDEX_RECALLS))
    return (
        f"{markdown(header, rows)}\n\nsbertkit searches with the settings that it chose for "
        "a recall that was asked for, or, as all others, with the best of those that the bench "
        "tries. At each recall: queries per second in a batch of "
        f"{timed['queries']:,}, and milliseconds of a single query, each of the fastest setting "
        f"that reaches it; in brackets how many times as fast as {base}, the median of "
        f"{timed['runs']} alternating runs. {timed['rows']:,} vectors, {timed['threads']} threads. "
        "Bytes are those of the index file; of hnswlib, voyager, usearch and faiss they include "
        "the vectors (usearch: in 16 bits), the others score candidates again from vectors in a "
        "file of their own."
    )


def _speed(points: Sequence[Figures], base: Sequence[Figures], recall: float) -> str:
    """Speeds of the fastest points that reach a recall, and the ratios to the baseline's."""
    shown = []
    for key in ("batch", "single"):
        best, other = (
            min(
                (point[key] for point in among if point["recall_at_10"] >= recall),
                key=statistics.median,
                default=None,
            )
            for among in (points, base)
        )
        if best is None:
            return "not reached"
        seconds = statistics.median(best)
        speed = f"{1 / seconds:,.0f}/s" if key == "batch" else f"{1_000 * seconds:.2f} ms"
        ratio = "" if other is None else f" ({median_ratio(other, best):.2f})"
        shown.append(f"{speed}{ratio}")
    return ", ".join(shown)


def index_life_table(entries: Figures) -> str:
    """The recall of an index after replacements, and what many small additions cost."""
    replaced: Columns = {
        "kind": lambda row: row["kind"],
        "replaced": lambda row: f"{row['replaced']:,} of {row['documents']:,}",
        "recall@10 before": lambda row: number(row["before"], 4),
        "after": lambda row: number(row["after"], 4),
        "stated": lambda row: number(row["stated"]["recall"], 4),
        "segments": lambda row: row["segments"],
    }
    added: Columns = {
        "kind": lambda row: row["kind"],
        "seconds, one by one": lambda row: number(row["one_by_one"]["seconds"], 0),
        "at once": lambda row: number(row["at_once"]["seconds"], 0),
        "slowest addition, s": lambda row: number(row["one_by_one"]["slowest"], 1),
        "segments": lambda row: row["one_by_one"]["segments"],
        "ms per query": lambda row: number(row["one_by_one"]["milliseconds"], 3),
        "built at once": lambda row: number(row["at_once"]["milliseconds"], 3),
        "recall@10, both": lambda row: ", ".join(
            number(row[way]["recall"], 4) for way in ("one_by_one", "at_once")
        ),
    }

    def of(name: str) -> list[Figures]:
        return [entry for key, entry in entries.items() if key.startswith(name)]

    return (
        f"30 percent replaced in 20 changes, asked for 0.95:\n\n{table(of('replaced'), replaced)}"
        f"\n\n1,000 additions of 50 documents:\n\n{table(of('added'), added)}"
    )


def index_filters_table(entries: Figures) -> str:
    """Recall and latency of searches with a filter."""
    columns: Columns = {
        "kind": lambda row: row[0],
        "filter": lambda row: row[1],
        "matching": lambda row: f"{row[2]['matching']:,.0f}",
        "recall@10": lambda row: number(row[2]["recall_at_10"], 4),
        "fewest hits": lambda row: row[2]["fewest_hits"],
        "ms per query": lambda row: number(row[2]["milliseconds"], 2),
        "plan": lambda row: ", ".join(row[2]["plans"]),
    }
    rows = [
        (kind, name, figures)
        for kind, entry in entries.items()
        for name, figures in {**entry["filters"], "none": entry["without"]}.items()
    ]
    return table(rows, columns)


LEXICAL_SYSTEMS = {
    "sbertkit": "sbertkit",
    "tantivy": "Tantivy",
    "bm25s": "bm25s",
    "fts5": "SQLite FTS5",
}


def bench_lexical_table(entries: Figures) -> str:
    """Search by words: speed of systems, quality by parameters, and scores after changes."""
    parts = []
    if "speed" in entries:
        speed = entries["speed"]
        columns: Columns = {
            f"{speed['lines']:,} lines": lambda name: LEXICAL_SYSTEMS[name],
            "seconds to build": lambda name: number(speed[name]["seconds"], 1),
            "MB": lambda name: number(speed[name]["bytes"] / 1e6, 1),
            "ms a query of 3 words": lambda name: number(speed[name]["ms_single_3"], 3),
            "of 10": lambda name: number(speed[name]["ms_single_10"], 3),
            "in a batch, 3 words": lambda name: number(speed[name]["ms_batch_3"], 3),
            "in a batch, 10": lambda name: number(speed[name]["ms_batch_10"], 3),
        }
        parts.append(table(LEXICAL_SYSTEMS, columns))
    if "cold" in entries:
        cold = entries["cold"]
        parts.append(
            f"The first search from the shell takes {number(cold['lexical'])} s by words and "
            f"{number(cold['hybrid'])} s in mode hybrid, of which Python with numpy has "
            f"{number(cold['python'])}."
        )
    if "changes" in entries:
        changes = entries["changes"]
        same = {True: "the same", False: "not the same"}
        parts.append(
            f"{changes['queries']:,} queries after 20 additions and upserts: hits and scores "
            f"{same[changes['equal after changes']]} as in a fresh build; with a tenth of the "
            f"documents deleted, {percent(changes['overlap after deletions'])} % of the top 10; "
            f"after compact {same[changes['equal after compact']]}."
        )
    parts.append(_lexical_quality(entries))
    return "\n\n".join(parts)


def _lexical_quality(entries: Figures) -> str:
    """nDCG@10 of collections by parameters of BM25, and R@100 by the defaults."""
    sets = {name: entry for name, entry in entries.items() if "language" in entry}
    parameters = [
        name for name in next(iter(sets.values()), {}) if name not in ("language", "runs", "lines")
    ]
    rows = [
        (name, *(percent(entry[name]["nDCG@10"]) for entry in sets.values())) for name in parameters
    ]
    if parameters:
        deep = (percent(entry[parameters[0]]["R@100"]) for entry in sets.values())
        rows.append((f"R@100, {parameters[0]}", *deep))
    return markdown(["nDCG@10 by k1, b", *sets], rows)


def hangs_table(entries: Figures) -> str:
    """Whether jobs end, by themselves and after a signal."""
    columns: Columns = {
        "job": lambda row: row[0],
        "processes": lambda row: row[1]["runs"],
        "hung": lambda row: row[1]["hung"],
        "failed": lambda row: row[1]["failed"],
        "median seconds": lambda row: number(row[1]["median_seconds"], 1),
        "max": lambda row: number(row[1]["max_seconds"], 1),
    }
    return table(entries.items(), columns)


# --- evaluation


def self_search_table(figures: Figures) -> str:
    """Documents that find themselves."""
    columns: Columns = {
        "kind": lambda kind: kind,
        "ranked first": lambda kind: f"{figures[kind]['ranked_first']} of {figures['searched']}",
        "minimum score": lambda kind: number(figures[kind]["min_score"], 6),
    }
    return table(("flat", "hnsw", "ivf"), columns)


def sts_table(figures: Figures) -> str:
    """Correlation with human scores on sentence pairs."""
    columns: Columns = {
        "set (test)": lambda row: row[0],
        "pairs": lambda row: row[1]["pairs"],
        "Spearman": lambda row: percent(row[1]["spearman"]),
        "95 % interval": lambda row: percent_interval(row[1]["interval"]),
        "Pearson": lambda row: percent(row[1]["pearson"]),
        "Spearman by sentence-transformers": lambda row: percent(
            row[1]["sentence_transformers_spearman"]
        ),
    }
    return table(figures.items(), columns)


def retrieval_table(entries: Figures) -> str:
    """Measures on each collection, BM25's and published ones."""
    published = {row.name: row.scores for row in read_suite("retrieval-small").published}
    columns: Columns = {
        "collection": lambda row: row[0],
        "queries": lambda row: row[1]["queries"],
        "nDCG@10": lambda row: percent(row[1]["measures"]["nDCG@10"]),
        "95 % interval": lambda row: percent_interval(row[1]["interval"]),
        "BM25": lambda row: number(published["BM25"].get(row[0])),
        "published": lambda row: number(published["all-MiniLM-L6-v2"].get(row[0])),
        "AP": lambda row: percent(row[1]["measures"]["AP"]),
        "RR@10": lambda row: percent(row[1]["measures"]["RR@10"]),
        "R@100": lambda row: percent(row[1]["measures"]["R@100"]),
        "seconds": lambda row: row[1]["seconds"],
    }
    model = next(iter(entries.values()))["model"]
    return (
        f"{table(entries.items(), columns)}\n\n{model}, exact search, times 100; seconds with "
        "encoding. BM25 is a plain run (k1 0.9, b 0.4, English stop words, Snowball stems) by "
        "nDCG@10, published is MTEB's figure for this model."
    )


LCQMC_BM25 = 92.9
"""Of single characters, as the data's README has it."""


def retrieval_modes_table(entries: Figures) -> str:
    """nDCG@10 and R@100 by vectors, words and both, and how far the weight is from the best."""
    (bm25,) = (row for row in read_suite("retrieval-small").published if row.name == "BM25")
    compared = {name: one for name, one in entries.items() if "grid" in one}
    reranked = {
        name.removesuffix(" re-ranked"): one for name, one in entries.items() if "reranker" in one
    }
    for name, one in reranked.items():
        compared[name] = {
            **compared[name],
            "measures": compared[name]["measures"] | one["measures"],
        }
    ways = list(dict.fromkeys(way for one in compared.values() for way in one["measures"]))
    header = ["collection", *ways]

    def best(one: Figures) -> str:
        return str(max(one["grid"], key=one["grid"].__getitem__))

    def plain(name: str) -> float | None:
        return LCQMC_BM25 if name == "lcqmc-dup" else bm25.scores.get(name)

    def mean(measure: str, way: str) -> str:
        found = [
            one["measures"][way][measure] for one in compared.values() if way in one["measures"]
        ]
        return percent(sum(found) / len(found)) if len(found) == len(compared) else "-"

    def by_way(measure: str) -> list[list[str]]:
        rows = [
            [
                name,
                *(
                    percent(one["measures"][way][measure]) if way in one["measures"] else "-"
                    for way in ways
                ),
            ]
            for name, one in compared.items()
        ]
        return [*rows, ["mean", *(mean(measure, way) for way in ways)]]

    weights: Columns = {
        "collection": lambda row: row[0],
        "queries": lambda row: row[1]["queries"],
        "language": lambda row: row[1]["language"],
        "parts": lambda row: row[1]["parts"],
        "chosen weight": lambda row: number(row[1]["weight"]),
        "best weight": lambda row: best(row[1]),
        "nDCG@10 there": lambda row: percent(max(row[1]["grid"].values())),
        "chosen less better leg": lambda row: number(
            100
            * (
                row[1]["measures"]["hybrid"]["nDCG@10"]
                - max(row[1]["measures"][leg]["nDCG@10"] for leg in ("dense", "lexical"))
            )
        ),
        "plain BM25": lambda row: number(plain(row[0])),
    }
    model = next(iter(compared.values()))["model"]
    depths = {one["reranked"] for one in reranked.values()}
    note = (
        f" Re-ranked: the first {max(depths)} by the re-ranker of the section above, a small "
        "stand-in, which says little about others."
        if depths
        else ""
    )
    return "\n\n".join(
        [
            f"nDCG@10 times 100:\n\n{markdown(header, by_way('nDCG@10'))}",
            f"R@100 times 100:\n\n{markdown(header, by_way('R@100'))}",
            f"The weight of vectors:\n\n{table(compared.items(), weights)}",
            f"{model}, exact search of passages; words with k1 1.2, b 0.75 in the language that is "
            "detected; at most 1,000 queries of a collection. hybrid has the weight that was "
            "measured with parts of documents, the others 0.5 or reciprocal ranks; 0 parts: too "
            "few found each other, so that it is 0.5. The best weight is that of 0, 0.1, ... 1. "
            "Plain BM25 has k1 0.9, b 0.4, English stop words and Snowball stems; for "
            f"lcqmc-dup single characters.{note}",
        ]
    )


WAYS = {
    "truncate": "truncated",
    "mean": "mean of passages",
    **{f"passages {overlap}": f"best passage, overlap {overlap}" for overlap in (0, 32, 64)},
    **{f"best two {overlap}": f"best two passages, overlap {overlap}" for overlap in (0, 32, 64)},
}
LONG_SETS = ("cisi", "nfcorpus-ecir", "cranfield", "scifact", "lisa")


def long_documents_table(entries: Figures) -> str:
    """Each way on each collection and limit, sentences by their place, and what an index costs."""
    limits = sorted({one["max_tokens"] for one in entries.values() if "max_tokens" in one})
    parts = [_ways(entries, limit) for limit in limits]
    parts += [
        _places(entries[f"places {limit}"]) for limit in limits if f"places {limit}" in entries
    ]
    parts += [
        _index_costs(name, entries[key])
        for name in LONG_SETS
        if (key := f"costs {name}") in entries
    ]
    if "short documents" in entries:
        parts.append(_short_documents(entries["short documents"]))
    return "\n\n".join(parts)


def _ways(entries: Figures, limit: int) -> str:
    """nDCG@10 / R@100 of each way under a limit of tokens, and their mean over the collections."""
    names = [name for name in LONG_SETS if f"{name} {limit}" in entries]
    found = [entries[f"{name} {limit}"] for name in names]
    rows = []
    for way, title in WAYS.items():
        scores = [(one[way]["nDCG@10"], one[way]["R@100"]) for one in found if way in one]
        if len(scores) == len(names):
            means = [statistics.mean(column) for column in zip(*scores, strict=True)]
            shown = (f"{percent(first)} / {percent(second)}" for first, second in (*scores, means))
            rows.append((title, *shown))
    header = (f"{limit} tokens", *names, "mean")
    return f"{markdown(header, rows)}\n\nnDCG@10 / R@100, times 100, in {found[0]['precision']}."


def _places(figures: Figures) -> str:
    """How often a description is among the first three, by the place of the sentence in it."""
    places = [place for place in figures["truncate"] if place != "vectors"]
    rows = [
        (title, *(percent(figures[way][place]["in 3"]) for place in places))
        for way, title in WAYS.items()
        if way in figures
    ]
    header = (f"{figures['max_tokens']} tokens: sentence at", *(f"{float(p):.0%}" for p in places))
    return (
        f"{markdown(header, rows)}\n\nPercent of {figures['queries']} sentences of "
        f"{figures['documents']} long package descriptions whose description is among the first "
        "three hits."
    )


def _index_costs(name: str, figures: Figures) -> str:
    """What an index of each way costs."""
    columns: Columns = {
        f"index of {name}": lambda row: row[0].removesuffix(" 0").replace(" ", ", overlap "),
        "vectors": lambda row: f"{row[1]['vectors']:,}",
        "seconds to build": lambda row: row[1]["seconds"],
        "MB": lambda row: number(row[1]["bytes"] / 1e6, 1),
        "ms per query (p50)": lambda row: row[1]["latency"]["p50"],
    }
    ways = [(way, one) for way, one in figures.items() if isinstance(one, dict)]
    return table(ways, columns)


def _short_documents(figures: Figures) -> str:
    """What passages cost where no document is long."""
    seconds, peaks = (
        {way: statistics.median(figures[way][part]) for way in ("passages", "truncate")}
        for part in ("seconds", "peak_mb")
    )
    return (
        f"{figures['documents']:,} short documents, int8, whole processes: "
        f"{seconds['passages']:.1f} s and {peaks['passages']:.0f} MB with passages, "
        f"{seconds['truncate']:.1f} s and {peaks['truncate']:.0f} MB truncated "
        f"(ratios {figures['time_ratio']:.3f} and {figures['memory_ratio']:.3f})."
    )


def post_processing_table(entries: Figures) -> str:
    """Scores and spaces of each model by pooling and post-processor."""

    def score(name: str, similarity: str) -> Callable[[Any], object]:
        return lambda row: number(row[1]["spearman"][name][similarity])

    columns: Columns = {
        "pooling": lambda row: row[0][1],
        "post-processing": lambda row: POSTPROCESSORS[row[0][2]],
        "STS-B, cosine or normalized": score("stsb", "cosine"),
        "STS-B, dot, not normalized": score("stsb", "dot"),
        "STS-B, Euclidean, not normalized": score("stsb", "euclidean"),
        "SICK, cosine": score("sick", "cosine"),
        "cosine of random pairs": lambda row: number(row[1]["random_cosine"], 3),
        "IsoScore": lambda row: number(row[1]["isoscore"], 3),
        "effective rank": lambda row: number(row[1]["effective_rank"], 1),
    }
    rows = [(key.split(":"), figures) for key, figures in entries.items()]
    return "\n\n".join(
        f"{model}:\n\n{table((row for row in rows if row[0][0] == model), columns)}"
        for model in dict.fromkeys(names[0] for names, _ in rows)
    )


def isotropy_table(entries: Figures) -> str:
    """Length and position of vectors against frequency, before and after normalization."""
    after = " after normalization"
    columns: Columns = {
        "model": lambda row: row[0].partition(":")[0],
        "corpus": lambda row: row[0].partition(":")[2],
        "vectors of": lambda row: row[1],
        "count": lambda row: f"{row[2][row[1]]['items']:,}",
        "length with frequency": lambda row: number(row[2][row[1]]["norm"]),
        "distance from the center with frequency": lambda row: number(row[2][row[1]]["center"]),
        "the same, normalized": lambda row: number(row[2][f"{row[1]}{after}"]["center"]),
    }
    rows = [
        (key, name, figures["frequency"])
        for key, figures in entries.items()
        for name in figures["frequency"]
        if not name.endswith(after)
    ]
    return table(rows, columns)


def diagnosis_table(entries: Figures) -> str:
    """The label-free choice against the labeled one."""

    def loss(choice: str) -> Callable[[Any], object]:
        return lambda row: number(row[1]["labeled"]["best"] - row[1]["labeled"][choice], 1)

    def named(choice: str) -> Callable[[Any], object]:
        return lambda row: f"{row[1][choice]}: {row[1]['labeled'][choice]:.1f}"

    columns: Columns = {
        "model": lambda row: row[0].partition(":")[0],
        "corpus": lambda row: row[0].partition(":")[2],
        "labels": lambda row: row[1]["labels"],
        "pairs": lambda row: row[1]["pairs"],
        "candidates": lambda row: row[1]["candidates"],
        "rank correlation": lambda row: number(row[1]["rank_correlation"]),
        "best by labels": named("best"),
        "recommended": named("recommended"),
        "points lost": loss("recommended"),
        "by the selected": loss("selected"),
        "current": lambda row: number(row[1]["labeled"]["current"], 1),
        "seconds": lambda row: number(row[1]["seconds"], 0),
    }
    return table(entries.items(), columns)


# --- training


def train_speed_table(figures: Figures) -> str:
    """Training speed by objective and batch."""
    rows = [
        ((name.rpartition("batch_")[0].strip("_") or "softmax", name.rpartition("_")[2]), row)
        for name, row in figures.items()
        if "batch_" in name
    ]
    columns: Columns = {
        "objective": lambda row: row[0][0],
        "batch": lambda row: row[0][1],
        "sbertkit, pairs/s": lambda row: row[1]["sbertkit_pairs_per_second"],
        "sentence-transformers, pairs/s": lambda row: row[1][
            "sentence_transformers_pairs_per_second"
        ],
        "ratio (median)": lambda row: row[1]["ratio"],
        "sbertkit in fp32": lambda row: row[1]["sbertkit_fp32_pairs_per_second"],
        "sentence-transformers in bf16": lambda row: row[1][
            "sentence_transformers_bf16_pairs_per_second"
        ],
        "final loss, ours / theirs": lambda row: " / ".join(
            number(row[1][f"{name}_loss"], 3) for name in ("sbertkit", "sentence_transformers")
        ),
    }
    measured = [(name, row) for name, row in rows if "overhead" in row]
    loop: Columns = {
        "objective": columns["objective"],
        "batch": columns["batch"],
        "bare loop, pairs/s": lambda row: row[1]["loop_pairs_per_second"],
        "overhead": lambda row: f"{100 * row[1]['overhead']:.1f} %",
        "where its time goes": lambda row: ", ".join(
            f"{phase} {100 * share:.1f} %" for phase, share in row[1]["phases"].items()
        ),
    }
    against = (
        f"\n\nsbertkit against a bare loop over the same batches:\n\n{table(measured, loop)}"
        if measured
        else ""
    )
    return (
        f"{table(rows, columns)}\n\nMedians of {figures['runs']} alternating runs over "
        f"{figures['rows']:,} rows; the columns of the other precision are one run each. Final "
        f"loss: mean of the last quarter of the steps.{against}"
    )


def train_nli_table(entries: Figures) -> str:
    """Scores on test sets after equal times of training."""

    def runs(name: str) -> Figures:
        return {key: one for key, one in entries.items() if key.partition(":")[0] == name}

    bases = {key.removeprefix("base:"): figures for key, figures in runs("base").items()}
    trained = {title: list(runs(name).values()) for name, title in METHODS.items() if runs(name)}
    none = ["-"] * 3
    rows: list[tuple[object, ...]] = [
        (f"the base, {pooling} pooling", *none, *_scores([figures]))
        for pooling, figures in bases.items()
    ]
    rows += [(title, *_effort(group), *_scores(group)) for title, group in trained.items()]
    rows += [(title, *none, *map(number, values)) for title, values in PUBLISHED.items()]
    header = (
        *("encoder", "batch, peak rate, precision", "examples (epochs)", "seconds"),
        *SETS.values(),
    )
    spaces = {f"the base, {name}": [figures] for name, figures in bases.items()} | trained
    space_rows = [
        (title, *(_spread([run["space"][name] for run in group], 3) for name in SPACE))
        for title, group in spaces.items()
    ]
    return (
        f"{markdown(header, rows)}\n\n{_base_and_data(entries)} Spearman times 100, mean ± sample "
        "deviation over the seeds. The spaces, by the sentences of the STS-B test set:\n\n"
        f"{markdown(('encoder', *SPACE.values()), space_rows)}"
    )


def fine_tuning_table(entries: Figures) -> str:
    """Scores by stage, objective, strategy and size, over the seeds."""
    tables: dict[str, dict[str, list[Figures]]] = {}
    for key, figures in entries.items():
        name, _, rest = key.partition(": ")
        row = re.sub(r": \d+$", "", rest)
        tables.setdefault(name, {}).setdefault(row, []).append(figures)
    parts = []
    for name, rows in tables.items():
        scored = _sizes if name == "matryoshka" else _tuned
        parts.append(f"{FINE_TUNING[name]}\n\n{scored(rows)}")
    return "\n\n".join(parts)


def _tuned(rows: Mapping[str, Sequence[Figures]]) -> str:
    """Spearman of each row on its sets."""
    sets = list(dict.fromkeys(one for runs in rows.values() for one in runs[0]["spearman"]))
    cells = [
        (
            title,
            len(runs),
            _spread([run["steps"] for run in runs], 0),
            *(_spread([run["spearman"][name] for run in runs], 2) for name in sets),
        )
        for title, runs in rows.items()
    ]
    return markdown(("encoder", "seeds", "steps", *sets), cells)


def _sizes(rows: Mapping[str, Sequence[Figures]]) -> str:
    """Scores of truncated vectors, and how much of the whole ones' they keep."""
    cells = []
    for title, runs in rows.items():
        for size in runs[0]["sizes"]:
            kept = [_kept(run["sizes"], size, "stsb test") for run in runs]
            cells.append(
                (
                    f"{title} Matryoshka",
                    size,
                    _spread([run["sizes"][size]["stsb test"] for run in runs], 2),
                    f"{statistics.mean(kept):.1f} %",
                    _spread([run["sizes"][size]["cranfield"] for run in runs], 2),
                )
            )
    return markdown(("trained", "numbers", "STS-B test", "kept", "nDCG@10 of Cranfield"), cells)


def _kept(sizes: Figures, size: str, name: str) -> float:
    whole: float = max(sizes.items(), key=lambda item: int(item[0]))[1][name]
    part: float = sizes[size][name]
    return 100 * part / whole


def adaptation_table(entries: Figures) -> str:
    """What pretraining on one's own text brings, over the seeds."""
    tables: dict[str, dict[str, list[Figures]]] = {}
    for key, figures in entries.items():
        name, _, rest = key.partition(": ")
        row = re.sub(r": \d+$", "", rest)
        tables.setdefault(name, {}).setdefault(row, []).append(figures)
    shown = {"tasks": _held_out, "road": _road, "claims": _from_scratch, "scratch": _from_scratch}
    return "\n\n".join(
        f"{ADAPTATION[name]}\n\n{shown[name](tables[name])}" for name in shown if name in tables
    )


def _held_out(rows: Mapping[str, Sequence[Figures]]) -> str:
    """Loss and accuracy of each task on texts that are held out, before and after."""

    def change(runs: Sequence[Figures], name: str, places: int) -> str:
        found = ([run["held_out"][when].get(name) for run in runs] for when in ("before", "after"))
        return " to ".join(_spread(values, places) for values in found)

    names = list(next(iter(rows.values()))[0]["held_out"]["before"])
    cells = [
        (title, runs[0]["steps"], *(change(runs, name, 3) for name in names))
        for title, runs in rows.items()
    ]
    return markdown(("task", "steps", *(name.replace("_", " ") for name in names)), cells)


def _road(rows: Mapping[str, Sequence[Figures]]) -> str:
    """nDCG@10 after adapt, and after NLI."""
    sets = list(next(iter(rows.values()))[0]["before"])
    cells = [
        (
            title,
            len(runs),
            *(
                " / ".join(
                    _spread([run[when][name] for run in runs], 2) for when in ("before", "tuned")
                )
                for name in sets
            ),
        )
        for title, runs in rows.items()
    ]
    return markdown(("adapt", "seeds", *sets), cells)


def _from_scratch(rows: Mapping[str, Sequence[Figures]]) -> str:
    """Spearman of encoders that began with random weights, and their nDCG@10."""
    cells = [
        (
            title,
            len(runs),
            f"{runs[0]['steps']:,}",
            _spread([run["seconds"] for run in runs], 0),
            *(_spread([run["stsb"][name] for run in runs], 2) for name in ("cls", "mean", "tuned")),
            *(
                _spread([run[when]["dictionary"] for run in runs], 2)
                for when in ("before", "tuned")
            ),
        )
        for title, runs in rows.items()
    ]
    header = ("pretraining", "seeds", "steps", "seconds", "STS-B dev, CLS", "mean", "after NLI")
    return markdown((*header, "dictionary", "after NLI"), cells)


def adapt_speed_table(figures: Figures) -> str:
    """Tokens per second and memory of both trainers."""
    ways = {name: row for name, row in figures.items() if isinstance(row, dict)}
    columns: Columns = {
        "trainer, precision": lambda row: row[0],
        "tokens/s": lambda row: f"{row[1]['tokens_per_second']:,}",
        "final loss": lambda row: number(row[1]["loss"], 3),
        "peak memory, MB": lambda row: f"{row[1]['peak_mb']:,}",
    }
    ratios = ", ".join(
        f"{name.removeprefix('ratio ')} {value:.2f}"
        for name, value in figures.items()
        if name.startswith("ratio")
    )
    return (
        f"{table(ways.items(), columns)}\n\nMedians of {figures['runs']} alternating runs over "
        f"{figures['texts']:,} texts of {figures['tokens']:g} tokens in the mean. sbertkit against "
        f"transformers' Trainer, median ratios: {ratios}."
    )


def retrieval_training_table(entries: Figures) -> str:
    """nDCG@10 of the base, the trained encoder and the merged one."""
    runs = [one for key, one in entries.items() if key != "base"]
    ways = {"the base": [entries["base"]["base"]]}
    ways |= {name: [run[name] for run in runs] for name in ("trained", "merged") if runs}
    sets = list(entries["base"]["base"])
    rows = [
        (
            title,
            *(_spread([100 * one[name] for one in found], 2) for name in sets),
            _spread([100 * statistics.mean(one.values()) for one in found], 2),
        )
        for title, found in ways.items()
    ]
    shown = f"{markdown(('encoder', *sets, 'mean'), rows)}\n\nnDCG@10 times 100"
    if not runs:
        return f"{shown}."
    return (
        f"{shown}, mean ± sample deviation over {len(runs)} seeds of {runs[0]['steps']} steps; "
        "merged is the mean of the weights before and after."
    )


def pooling_table(entries: Figures) -> str:
    """Poolings before and after training, by objective."""

    def change(name: str) -> Callable[[Any], object]:
        return lambda row: " to ".join(
            number(side["space"][name]) for side in (row[2]["before"], row[2])
        )

    columns: Columns = {
        "objective": lambda row: row[0],
        "pooling": lambda row: row[1],
        "STS-B dev before": lambda row: number(row[2]["before"]["spearman"]["stsb"]),
        "after": lambda row: number(row[2]["spearman"]["stsb"]),
        **{f"{title}, before to after": change(name) for name, title in SPACE.items()},
        f"published, after ({_PUBLISHED_DATA})": lambda row: number(
            PUBLISHED_POOLINGS.get(row[1]) if row[0] == "softmax" else None
        ),
    }
    rows = [(*key.split(":"), figures) for key, figures in entries.items()]
    efforts = {
        objective: f"{objective}: {one['steps']:,} steps of {one['batch_size']} {one['unit']}"
        for objective, _, one in rows
    }
    minutes = next(iter(entries.values()))["minutes"]
    return (
        f"{table(rows, columns)}\n\n{_base_and_data(entries)} Spearman times 100, one seed, about "
        f"{minutes:g} minutes each ({'; '.join(efforts.values())}). The spaces are by the "
        "sentences of the STS-B dev set."
    )


def guard_table(entries: Figures) -> str:
    """Runs with a fault, and healthy ones."""
    columns: Columns = {
        "fault": lambda row: row["fault"] or "none",
        "objective": lambda row: row["objective"],
        "data": lambda row: row["data"],
        "outcome": lambda row: row["reason"] if row["stopped"] else _finished(row),
    }
    rows = list(entries.values())
    stopped = {
        bad: [row["stopped"] for row in rows if bool(row["fault"]) is bad] for bad in (True, False)
    }
    return (
        f"{table(rows, columns)}\n\n{sum(stopped[True])} of {len(stopped[True])} runs with a fault "
        f"were stopped, {sum(stopped[False])} of {len(stopped[False])} healthy ones. Base "
        f"{_base(rows[0])}; at most {rows[0]['steps']} steps of {rows[0]['batch_size']} rows."
    )


def resume_table(entries: Figures) -> str:
    """Killed runs against uninterrupted ones."""

    def steps(name: str) -> Callable[[Any], object]:
        return lambda row: ", ".join(str(one[name]) for one in row[1]["interruptions"])

    columns: Columns = {
        "precision": lambda row: row[0],
        "steps": lambda row: row[1]["steps"],
        "killed after step": steps("killed_after_step"),
        "resumed from step": steps("resumed_from_step"),
        "weights that differ": lambda row: (
            f"{row[1]['different_weights']:,} of {row[1]['weights']:,}"
        ),
        "largest difference": lambda row: f"{row[1]['largest_difference']:g}",
    }
    return table(entries.items(), columns)


def _base_and_data(entries: Figures) -> str:
    """The base models and the amounts of data of the entries."""
    bases = sorted({_base(figures) for figures in entries.values()})
    rows = sorted({figures["rows"] for figures in entries.values()})
    return f"Base {'; '.join(bases)}. {' or '.join(f'{n:,}' for n in rows)} rows of data."


def _base(figures: Figures) -> str:
    note = BASES.get(figures["base"])
    return figures["base"] if note is None else f"{figures['base']}: {note}"


def _effort(runs: Sequence[Figures]) -> tuple[str, str, str]:
    """Settings, examples seen and seconds of the runs of a method."""
    first = runs[0]
    seen = round(statistics.mean(run["examples_seen"] for run in runs))
    epochs = statistics.mean(run["epochs"] for run in runs)
    seconds = statistics.mean(run["seconds"] for run in runs)
    count = "1 seed" if len(runs) == 1 else f"{len(runs)} seeds"
    return (
        f"{first['batch_size']}, {first['learning_rate']:g}, {first['precision']}; {count}",
        f"{seen:,} {first['unit']} ({epochs:.2f})",
        f"{seconds:.0f}",
    )


def _scores(runs: Sequence[Figures]) -> list[str]:
    return [_spread([run["spearman"][name] for run in runs], 2) for name in SETS]


def _spread(values: Sequence[float | None], places: int) -> str:
    """Mean ± sample deviation, or the mean alone for one run."""
    numbers = [value for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return "undefined"
    mean = f"{statistics.mean(numbers):.{places}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{places}f}"


def _finished(figures: Figures) -> str:
    cosines = figures["label_cosines"]
    shown = ", ".join(f"{name} {value:.2f}" for name, value in cosines.items())
    return (
        f"finished ({figures['checks']} checks; maximum cosine of random pairs "
        f"{figures['max_random_cosine']:.2f}; at the end {shown})"
    )


# --- claims about encoders


def claims_table(results: Mapping[str, Figures]) -> str:
    """Each claim with its verdict and figures."""
    rows = [(claim, verdict, figures(results)) for claim, (verdict, figures) in CLAIMS.items()]
    header = ("claim", "verdict", "figures (Spearman times 100)")
    return f"{markdown(header, rows)}\n\n{_base_and_data(results['pooling'])}"


def _cls_and_mean(results: Mapping[str, Figures]) -> str:
    untrained = {pooling: results["train_nli"][f"base:{pooling}"] for pooling in ("cls", "mean")}
    before = f"STS-B test, untrained: {_stsb(untrained)}"
    return "; ".join([before, *_trained(results["pooling"], "cls")])


def _eos_and_mean(results: Mapping[str, Figures]) -> str:
    runs = results["pooling"]
    untrained = {pooling: runs[f"softmax:{pooling}"]["before"] for pooling in ("eos", "mean")}
    before = f"STS-B dev, untrained: {_stsb(untrained)}"
    return "; ".join([before, *_trained(runs, "eos")])


def _trained(runs: Figures, pooling: str) -> list[str]:
    """A pooling and the mean after equal steps of each objective."""
    return [
        f"STS-B dev, after {objective} training: "
        + _stsb({name: runs[f"{objective}:{name}"] for name in (pooling, "mean")})
        for objective in ("softmax", "contrastive")
    ]


def _stsb(runs: Mapping[str, Figures]) -> str:
    return ", ".join(f"{name} {run['spearman']['stsb']:.2f}" for name, run in runs.items())


def _frequency(results: Mapping[str, Figures]) -> str:
    parts = []
    for key, figures in results["isotropy"].items():
        found = figures["frequency"]
        shown = ", ".join(
            f"{name} {found[name]['norm']:+.2f} / {found[name]['center']:+.2f}"
            for name in ("input tokens", "output tokens", "texts")
        )
        parts.append(f"{key.replace(':', ', ')}: {shown}")
    return (
        f"rank correlation of length / distance from the center with frequency: {'; '.join(parts)}"
    )


def _normalization(results: Mapping[str, Figures]) -> str:
    runs = results["post_processing"]
    parts = []
    for model in dict.fromkeys(key.split(":")[0] for key in runs):
        plain, layered = (runs[f"{model}:mean:{step}"] for step in ("none", "layer_norm"))
        stsb, after = (one["spearman"]["stsb"] for one in (plain, layered))
        parts.append(
            f"{model}, STS-B test, mean: dot {stsb['dot']:.2f} and Euclidean "
            f"{stsb['euclidean']:.2f} before, {stsb['cosine']:.2f} both after L2, as the cosine "
            f"before and after; layer normalization: cosine {after['cosine']:.2f}, dot "
            f"{after['dot']:.2f}, cosine of random pairs {plain['random_cosine']:.3f} -> "
            f"{layered['random_cosine']:.3f}"
        )
    return "; ".join(parts)


def _long_texts(results: Mapping[str, Figures]) -> str:
    entries = results["long_documents"]
    parts = []
    for limit in sorted({one["max_tokens"] for one in entries.values() if "max_tokens" in one}):
        sets = [entries[f"{name} {limit}"] for name in LONG_SETS]
        late = entries[f"places {limit}"]
        shown = ", ".join(
            f"{way} {percent(statistics.mean(one[name]['nDCG@10'] for one in sets))} "
            f"({percent(late[name]['0.7']['in 3'])})"
            for way, name in (
                ("truncated", "truncate"),
                ("mean of passages", "mean"),
                ("best passage", "passages 0"),
            )
        )
        parts.append(f"{limit} tokens: {shown}")
    return (
        "nDCG@10 over five collections (percent of late sentences whose document is among the "
        f"first three): {'; '.join(parts)}"
    )


def _strategies(results: Mapping[str, Figures]) -> str:
    found: dict[str, dict[str, list[float]]] = {}
    for key, figures in results["fine_tuning"].items():
        table, _, rest = key.partition(": ")
        if table == "strategies":
            rows, name, _ = rest.split(": ")
            found.setdefault(rows, {}).setdefault(name, []).append(figures["spearman"]["stsb test"])
    return "; ".join(
        f"STS-B test, {rows}: "
        + ", ".join(f"{name} {statistics.mean(scores):.2f}" for name, scores in of_rows.items())
        for rows, of_rows in found.items()
    )


CLAIMS: dict[str, tuple[str, Callable[[Mapping[str, Figures]], str]]] = {
    "BERT's CLS vector is poor for single sentences, mean pooling is better, and better still "
    "once fine-tuned": (
        "refined: on this stand-in CLS is the better untrained and after softmax training, mean is "
        "after contrastive training, which improves both; BERT itself was not available",
        _cls_and_mean,
    ),
    "Pretrained spaces are anisotropic: frequent words have short vectors near the center, "
    "rare ones lie at the edge, so that the cosine follows word frequency": (
        "refined: tokens do not follow it (weak correlations of either sign); texts of frequent "
        "words do lie nearer the center in all four spaces, yet are as often longer as shorter, "
        "and normalization does not undo it",
        _frequency,
    ),
    "L2 normalization of pooled vectors removes the influence of the norm; layer normalization "
    "stabilizes the distribution": (
        "confirmed for dot product and Euclidean distance, which then order pairs as the cosine "
        "does; L2 cannot change the cosine itself, and with it anisotropy; layer normalization "
        "makes lengths equal, which does the same, and next to nothing more",
        _normalization,
    ),
    "The EOS vector (as in CLIP) behaves much like mean pooling": (
        "refuted untrained and after softmax training, where it is far below the mean; after "
        "contrastive training it comes within a point",
        _eos_and_mean,
    ),
    "Positions end (BERT's at 512): long texts need windows, hierarchical pooling, or sparse "
    "attention (Longformer, BigBird)": (
        "refined: windows find what stands late in a long document, which truncation loses and "
        "one mean vector finds less often; on collections of abstracts they gain little, the less "
        "the more of them fit, and lose on one (LISA) at small limits; sparse attention was not "
        "measured: no trained model was at hand",
        _long_texts,
    ),
    "Full fine-tuning suits much data, frozen lower layers little, progressive unfreezing what is "
    "in between; lower layers want smaller rates": (
        "refuted on 1,000 and 10,000 rows of NLI (one seed): frozen layers and progressive "
        "unfreezing lose at both sizes, smaller rates of lower layers a little; LoRA is above full "
        "fine-tuning at both; 60,000 rows were not measured",
        _strategies,
    ),
}
"""By the claim our verdict, and what shows the figures behind it."""

CLAIMS_FROM = (
    *("train_nli", "pooling", "isotropy", "post_processing", "long_documents", "fine_tuning"),
)

TABLES: dict[str, Callable[[Figures], str]] = {
    "encode": encode_table,
    "precision": precision_table,
    "bench_reranker": bench_reranker_table,
    "train_reranker": train_reranker_table,
    "rerank_quality": rerank_quality_table,
    "cold_start": cold_start_table,
    "shell_encode": shell_encode_table,
    "encode_memory": encode_memory_table,
    "index_memory": index_memory_table,
    "index_changes": index_changes_table,
    "index_life": index_life_table,
    "index_filters": index_filters_table,
    "filters": filters_table,
    "bench_index": bench_index_table,
    "bench_lexical": bench_lexical_table,
    "hangs": hangs_table,
    "self_search": self_search_table,
    "sts": sts_table,
    "retrieval": retrieval_table,
    "retrieval_modes": retrieval_modes_table,
    "long_documents": long_documents_table,
    "post_processing": post_processing_table,
    "isotropy": isotropy_table,
    "diagnosis": diagnosis_table,
    "train_speed": train_speed_table,
    "train_nli": train_nli_table,
    "fine_tuning": fine_tuning_table,
    "retrieval_training": retrieval_training_table,
    "adaptation": adaptation_table,
    "adapt_speed": adapt_speed_table,
    "pooling": pooling_table,
    "distill": distill_table,
    "guard": guard_table,
    "resume": resume_table,
}


# --- the README


def section(name: str) -> str:
    """The generated text of a measurement."""
    result = _result(name)
    if result is None:
        return "Not measured yet."
    lines = [TABLES[name](_figures(result)), "", _circumstances(result)]
    if is_stale(result):
        lines[-1] += " **The code has changed since; measure again.**"
    return "\n".join(lines)


def claims_section() -> str:
    """The generated text on the claims."""
    results = {name: _result(name) for name in CLAIMS_FROM}
    return claims_table({name: _figures(result) for name, result in results.items() if result})


def _result(name: str) -> dict[str, Any] | None:
    """The content of a result, if there is one."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _figures(result: dict[str, Any]) -> Figures:
    """The figures of a result; of one with entries those of each, with its settings."""
    if "entries" not in result:
        figures: Figures = result["figures"]
        return figures
    return {key: {**one["settings"], **one["figures"]} for key, one in result["entries"].items()}


def _circumstances(result: dict[str, Any]) -> str:
    """When and on what a result was measured, for each kind of machine and set of versions."""
    dates: dict[str, list[str]] = {}
    for one in records(result):
        machine = one["machine"]
        features = ", ".join(machine["features"])
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        text = (
            f"on {machine['cores']} cores ({machine['architecture']}: {features}), "
            f"{machine['memory_gib']} GiB, Python {machine['python']}; {versions}."
        )
        dates.setdefault(text, []).append(one["date"])
    lines = []
    for text, found in dates.items():
        span = min(found) if min(found) == max(found) else f"{min(found)} to {max(found)}"
        lines.append(f"Measured {span} {text}")
    return " ".join(lines)


def main() -> None:
    """Rewrites the README, or with --check fails when it would change."""
    parser = arguments_of(__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    old = new = README.read_text(encoding="utf-8")
    sections = {name: section(name) for name in TABLES} | {"claims": claims_section()}
    for name, generated in sections.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, rest = new.partition(begin)
        if found:
            new = f"{before}{begin}{generated}\n{rest[rest.index(end) :]}"
    if arguments.check:
        sys.exit("eval/README.md is not what the results say" if new != old else 0)
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
