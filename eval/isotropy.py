"""Whether frequent words have short vectors near the center, and what normalization changes.

    SBERTKIT_DATA=FOLDER python eval/isotropy.py --model MODEL [MODEL ...]

FOLDER holds the corpora of `CORPORA`. Each model and corpus is an entry of results/isotropy.json.
"""

from functools import partial
from pathlib import Path

from recording import Entries, Figures, arguments_of, data_folder

from sbertkit import Encoder, evaluate_isotropy

CORPORA = {
    "Reuters titles": "corpora/en_reuters_titles.txt.gz",
    "Reuters bodies": "corpora/en_reuters_bodies.txt.gz",
}
SOURCES = [
    "sbertkit/evaluation/isotropy.py",
    "sbertkit/metrics",
    *(
        f"sbertkit/encoder/{name}.py"
        for name in (
            "multi_pooling",
            "network",
            "pooling",
            "token_vectors",
            "tokenization",
            "transformer",
        )
    ),
]


def evaluate(encoder: Encoder, corpus: Path) -> Figures:
    """The isotropy of an encoder on a corpus."""
    return evaluate_isotropy(encoder, corpus).to_dict()


def main() -> None:
    """Measures the missing models and corpora."""
    parser = arguments_of(__doc__)
    parser.add_argument("--model", nargs="+", required=True, help="model folders or names")
    arguments = parser.parse_args()
    root = data_folder("corpora/en_reuters_titles.txt.gz")
    entries = Entries("isotropy", SOURCES)
    for model in arguments.model:
        encoder = Encoder.load(model, pooling="mean", device="cpu")
        settings = {"model": Path(model).name, "fingerprint": encoder.fingerprint}
        for name, path in CORPORA.items():
            measure = partial(evaluate, encoder, root / path)
            entries.measure(f"{Path(model).name}:{name}", settings, measure)


if __name__ == "__main__":
    main()
