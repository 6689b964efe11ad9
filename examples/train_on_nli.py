"""Fine-tune the bundled model on a handful of labeled pairs and classify one.

python examples/train_on_nli.py

Real training takes SNLI or the like: pass its files in the place of DATA.
"""

import tempfile
from pathlib import Path

from sbertkit import TrainConfig, classify_pairs, train_nli

DATA = """\
premise,hypothesis,label
A man inspects a uniform.,Somebody looks at clothes.,entailment
A man inspects a uniform.,The man is sleeping.,contradiction
A man inspects a uniform.,The uniform is new.,neutral
Two dogs run in the snow.,Animals are outdoors.,entailment
Two dogs run in the snow.,The dogs lie on a sofa.,contradiction
Two dogs run in the snow.,The dogs belong to a farmer.,neutral
"""


def main() -> None:
    """Trains in a temporary folder, and prints what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "pairs.csv"
        data.write_text(DATA, encoding="utf-8")
        result = train_nli(
            "all-MiniLM-L6-v2",
            data,
            Path(folder) / "model",
            objective="softmax",
            config=TrainConfig(epochs=5, batch_size=6),
        )
        print(f"{result.steps} steps; random pairs of texts have the cosine", end=" ")
        print(f"{result.after.random_cosine:.3f} (before {result.before.random_cosine:.3f})")
        (pair,) = classify_pairs(result.folder, [("A child climbs a wall.", "A child climbs.")])
        print(pair.label, {name: round(share, 3) for name, share in pair.probabilities.items()})


if __name__ == "__main__":
    main()
