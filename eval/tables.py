"""Writes the tables of eval/README.md anew from results/*.json.

python eval/tables.py [--check]
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claims import MEASUREMENTS, claims_table
from evaluation_tables import (
    diagnosis_table,
    isotropy_table,
    post_processing_table,
    retrieval_table,
)
from markdown_table import markdown
from recording import RESULTS, is_stale, records
from training_tables import (
    guard_table,
    pooling_table,
    quality_table,
    resume_table,
    train_table,
)

README = Path(__file__).resolve().parent / "README.md"

Figures = dict[str, Any]


def encode_table(pieces: Figures) -> str:
    """Encoding speed, a column of sentences a second and ratio for each length."""
    lengths = list(pieces.values())
    titles = [
        f"{name}: {found['texts']:,} of {found['tokens']:.0f} tokens"
        for name, found in pieces.items()
    ]
    rows = []
    for system in lengths[0]["systems"]:
        found = [figures["systems"][system] for figures in lengths]
        speeds = (f"{one['sentences_per_second']:,.0f} ({one['ratio']:.2f})" for one in found)
        rows.append((system, *speeds, f"{min(one['least_cosine'] for one in found):.5f}"))
    table = markdown(("sentences a second (ratio)", *titles, "least cosine"), rows)
    exact = max(
        found["largest_difference"]
        for figures in lengths
        for system, found in figures["systems"].items()
        if system.startswith("sbertkit") and system.endswith("fp32")
    )
    return (
        f"{table}\n\nRatios to sentence-transformers in fp32 are medians of {lengths[0]['runs']} "
        f"alternating runs; cosines are to its vectors, and the largest difference of any "
        f"component of ours in fp32 is {exact:.1e}."
    )


def precision_table(figures: Figures) -> str:
    """Spearman by precision."""
    rows = [
        (name, *(f"{value:.2f}" for value in found.values())) for name, found in figures.items()
    ]
    sets = ("STS-B", "STS12", "STS13", "STS14", "mean of STS12 to 14")
    return markdown(("Spearman", *sets), rows)


def cold_table(figures: Figures) -> str:
    """From the shell to the answer."""
    rows = [
        (name, f"{found['seconds']:.2f}", f"{found['megabytes']:.0f}", f"{found['ratio']:.1f}")
        for name, found in figures["ways"].items()
    ]
    return markdown(("way", "seconds", "peak memory, MB", "times as fast"), rows)


def encode_memory_table(figures: Figures) -> str:
    """Memory of encoding a long file, and whether a run that was killed gives the same file."""
    rows = [
        ("lines", f"{figures['lines']:,}"),
        ("highest anonymous memory up to 30,000 lines, MB", figures["after_first_mb"]),
        ("highest afterwards, MB", figures["highest_mb"]),
        ("growth, MB", figures["growth_mb"]),
        ("killed after lines", ", ".join(f"{lines:,}" for lines in figures["killed_after"])),
        ("file equals that of an uninterrupted run", "yes" if figures["equal"] else "NO"),
    ]
    return markdown(("", ""), rows)


def memory_table(figures: Figures) -> str:
    """Memory of building an index."""
    pairs = zip(figures["lines"], figures["peak_anonymous_mb"], strict=True)
    table = markdown(
        ("documents", "peak anonymous memory, MB"), [(f"{n:,}", mb) for n, mb in pairs]
    )
    return f"{table}\n\nGrowth {figures['growth_mb']} MB."


def index_life_table(figures: Figures) -> str:
    """What an update costs, and what many segments cost a search."""
    update = figures["update"]
    rows = [
        (
            kind,
            found["segments"],
            f"{found['deleted']:,}",
            f"{found['milliseconds']:.2f}",
            f"{found['fresh_milliseconds']:.2f}",
            f"{found['ratio']:.2f}",
            f"{found['ratio_compacted']:.2f}",
            f"{found['recall_at_10']['segments']:.3f}, {found['recall_at_10']['one']:.3f}",
        )
        for kind, found in figures["search"].items()
    ]
    table = markdown(
        (
            "kind",
            "segments",
            "deleted",
            "ms a query",
            "ms, built at once",
            "ratio",
            "ratio after compact",
            "recall@10, both",
        ),
        rows,
    )
    return (
        f"`index --update` on {figures['documents']:,} documents, {update['changed']:,} of them "
        f"changed, encodes {update['encoded']:,} texts in {update['seconds']:.2f} s, of which "
        f"{update['seconds_besides_encoding']:.2f} s are not encoding.\n\n{table}"
    )


def hangs_table(pieces: Figures) -> str:
    """Whether jobs end, by themselves and after a signal."""
    rows = [
        (
            job,
            found["runs"],
            found["hung"],
            found["failed"],
            f"{found['median_seconds']:.1f}",
            f"{found['max_seconds']:.1f}",
        )
        for job, found in pieces.items()
    ]
    return markdown(("job", "processes", "hung", "failed", "median seconds", "max"), rows)


def self_search_table(figures: Figures) -> str:
    """Documents that find themselves."""
    searched = figures["searched"]
    rows = [
        (kind, f"{figures[kind]['first']} of {searched}", f"{figures[kind]['least_score']:.6f}")
        for kind in ("flat", "hnsw", "ivf")
    ]
    return markdown(("kind", "come first", "least score"), rows)


def sts_table(figures: Figures) -> str:
    """Agreement with people on sentence pairs."""
    rows = []
    for name, result in figures.items():
        low, high = (100 * result["interval"][key] for key in ("low", "high"))
        rows.append(
            (
                name,
                result["pairs"],
                f"{100 * result['spearman']:.2f}",
                f"{low:.2f} to {high:.2f}",
                f"{100 * result['pearson']:.2f}",
                f"{100 * result['sentence_transformers_spearman']:.2f}",
            )
        )
    return markdown(
        (
            "set (test)",
            "pairs",
            "Spearman",
            "95 % interval",
            "Pearson",
            "Spearman by sentence-transformers",
        ),
        rows,
    )


TABLES: dict[str, Callable[[Figures], str]] = {
    "encode": encode_table,
    "precision": precision_table,
    "cold": cold_table,
    "encode_memory": encode_memory_table,
    "index_memory": memory_table,
    "index_life": index_life_table,
    "hangs": hangs_table,
    "self_search": self_search_table,
    "sts": sts_table,
    "retrieval": retrieval_table,
    "post_processing": post_processing_table,
    "isotropy": isotropy_table,
    "diagnosis": diagnosis_table,
    "train": train_table,
    "train_nli": quality_table,
    "pooling": pooling_table,
    "guard": guard_table,
    "resume": resume_table,
}
"""What makes the table of a result; of one in pieces it gets the figures of each, by its key."""


def section(name: str) -> str:
    """The generated text of one measurement."""
    result = _result(name)
    if result is None:
        return "Not measured yet."
    stale = " **The code has changed since; measure again.**" if is_stale(result) else ""
    return f"{TABLES[name](_figures(result))}\n\n{_circumstances(result)}{stale}"


def claims_section() -> str:
    """The generated text on the claims; that of the measurements behind them says the rest."""
    results = {name: _result(name) for name in MEASUREMENTS}
    return claims_table({name: _figures(result) for name, result in results.items() if result})


def _result(name: str) -> dict[str, Any] | None:
    """What a measurement wrote, if it was made."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def _figures(result: dict[str, Any]) -> Figures:
    """The figures of a result; of one in pieces with the settings of each."""
    if "pieces" not in result:
        figures: Figures = result["figures"]
        return figures
    return {
        key: {**piece["settings"], **piece["figures"]} for key, piece in result["pieces"].items()
    }


def _circumstances(result: dict[str, Any]) -> str:
    """When and on what a result was measured, for each kind of machine and set of versions."""
    dates: dict[str, list[str]] = {}
    for one in records(result):
        machine = one["machine"]
        features = ", ".join(machine["features"])
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        place = (
            f"on {machine['cores']} cores ({machine['architecture']}: {features}), "
            f"{machine['memory_gib']} GiB, Python {machine['python']}; {versions}."
        )
        dates.setdefault(place, []).append(one["date"])
    lines = []
    for place, found in dates.items():
        span = min(found) if min(found) == max(found) else f"{min(found)} to {max(found)}"
        lines.append(f"Measured {span} {place}")
    return " ".join(lines)


def main() -> None:
    """Rewrites the README, or with --check fails when it would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    new = text
    sections = {name: section(name) for name in TABLES} | {"claims": claims_section()}
    for name, generated in sections.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        new = pattern.sub(lambda found: found[1] + generated + "\n" + found[2], new)  # noqa: B023
    if arguments.check:
        sys.exit("eval/README.md is not what the results say" if new != text else 0)
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
