"""Encode a text file to Parquet and read the vectors back with pyarrow.

python examples/encode_to_parquet.py sentences.txt vectors.parquet
"""

import argparse

import numpy as np
import pyarrow.parquet

from sbertkit import Encoder, encode_corpus


def main() -> None:
    """Writes the file and prints what is in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("output")
    arguments = parser.parse_args()
    report = encode_corpus(
        lambda: Encoder.load("all-MiniLM-L6-v2"), arguments.corpus, arguments.output
    )
    table = pyarrow.parquet.read_table(arguments.output)
    vectors = np.stack(table["vector"].to_numpy())  # (n, dim)
    print(f"{report.rows} texts, {len(report.truncated)} of them cut; vectors {vectors.shape}")


if __name__ == "__main__":
    main()
