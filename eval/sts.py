"""The bundled model on STS sets: Spearman and Pearson times 100 with a 95 % interval.

    SBERTKIT_DATA=FOLDER python eval/sts.py

FOLDER holds sts/stsb.tsv, sts12.tsv, sts13.tsv, sts14.tsv and sick.tsv (header: split, score,
sentence1, sentence2).
"""

import argparse
import os
import sys
from pathlib import Path

from recording import record

from sbertkit import Encoder, evaluate_sts
from sbertkit.encoder.resolve import BUNDLED_NAME

SETS = ("stsb", "sts12", "sts13", "sts14", "sick")


def main() -> None:
    """Measures, prints and records."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    data = os.environ.get("SBERTKIT_DATA")
    if data is None:
        sys.exit("set SBERTKIT_DATA to the folder that holds sts/stsb.tsv and the other sets")
    encoder = Encoder.load(BUNDLED_NAME)
    figures = {}
    for name in SETS:
        result = evaluate_sts(encoder, Path(data) / "sts" / f"{name}.tsv", split="test")
        figures[name] = result.to_dict() | {"source": f"{name}.tsv"}
        print(f"{name}: {result.spearman} {result.pearson} {result.interval} ({result.pairs})")
    record("sts", ["sbertkit/encoder", "sbertkit/metrics", "sbertkit/evaluation"], figures)


if __name__ == "__main__":
    main()
