"""Writes the tables of eval/README.md anew from results/*.json.

python eval/tables.py [--check]
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recording import RESULTS, is_stale

README = Path(__file__).resolve().parent / "README.md"

Figures = dict[str, Any]


def encode_table(figures: Figures) -> str:
    """Encoding speed."""
    rows = [
        ("sbertkit (torch, fp32)", figures["sbertkit_sentences_per_second"]),
        ("sentence-transformers", figures["sentence_transformers_sentences_per_second"]),
    ]
    table = markdown(("encoder", "sentences/s"), rows)
    return (
        f"{table}\n\nRatio {figures['ratio_median']} (median of {figures['runs']} alternating runs "
        f"over {figures['texts']:,} glosses); largest difference of any component "
        f"{figures['largest_difference_on_2000']:.1e}."
    )


def memory_table(figures: Figures) -> str:
    """Memory of building an index."""
    pairs = zip(figures["lines"], figures["peak_anonymous_mb"], strict=True)
    table = markdown(
        ("documents", "peak anonymous memory, MB"), [(f"{n:,}", mb) for n, mb in pairs]
    )
    return f"{table}\n\nGrowth {figures['growth_mb']} MB."


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
    "index_memory": memory_table,
    "self_search": self_search_table,
    "sts": sts_table,
}


def markdown(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def section(name: str) -> str:
    """The generated text of one measurement."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return "Not measured yet."
    result = json.loads(path.read_text(encoding="utf-8"))
    machine = result["machine"]
    features = ", ".join(machine["features"])
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    stale = " **The code has changed since; measure again.**" if is_stale(result) else ""
    return (
        f"{TABLES[name](result['figures'])}\n\n"
        f"Measured {result['date']} on {machine['cores']} cores ({machine['architecture']}: "
        f"{features}), {machine['memory_gib']} GiB, Python {machine['python']}; {versions}.{stale}"
    )


def main() -> None:
    """Rewrites the README, or with --check fails when it would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    new = text
    for name in TABLES:
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        generated = section(name)
        new = pattern.sub(lambda found: found[1] + generated + "\n" + found[2], new)  # noqa: B023
    if arguments.check:
        sys.exit("eval/README.md is not what the results say" if new != text else 0)
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
