"""Whether frequent words have short vectors near the centre, and what normalization changes of it.

    SBERTKIT_DATA=FOLDER python eval/isotropy.py --model MODEL [MODEL ...]

FOLDER holds the corpora of `CORPORA`. Each model and corpus is written to results/isotropy.json.
"""

import argparse
from pathlib import Path

from recording import Pieces, data_folder

from sbertkit import Encoder, evaluate_isotropy

CORPORA = {
    "Reuters titles": "corpora/en_reuters_titles.txt.gz",
    "Reuters bodies": "corpora/en_reuters_bodies.txt.gz",
}
MEASURED = [
    "sbertkit/evaluation/isotropy.py",
    "sbertkit/metrics",
    *(
        f"sbertkit/encoder/{name}.py"
        for name in ("grid", "network", "pooling", "token_vectors", "tokenization", "transformer")
    ),
]


def main() -> None:
    """Measures what is missing, prints and records."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("corpora/en_reuters_titles.txt.gz")
    pieces = Pieces("isotropy", MEASURED)
    for model in arguments.model:
        encoder = Encoder.load(model, pooling="mean", device="cpu")
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        for name, place in CORPORA.items():
            key = f"{Path(model).name}:{name}"
            if pieces.known(key, settings) is None:
                figures = evaluate_isotropy(encoder, root / place).to_dict()
                print(key, figures["frequency"], flush=True)
                pieces.add(key, settings, figures)


if __name__ == "__main__":
    main()
