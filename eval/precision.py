"""What lower precisions cost on sentence pairs.

    SBERTKIT_DATA=FOLDER python eval/precision.py

all-MiniLM-L6-v2 on sts/stsb.tsv (test) and sts/sts12.tsv to sts14.tsv of FOLDER, in each precision
as `Encoder.load` gives it and in 8 bits by each library.
"""

import statistics
from typing import Any

from recording import arguments_of, data_folder, record

from sbertkit import Encoder, evaluate_sts
from sbertkit.encoder.resolve import BUNDLED_NAME

SYSTEMS: dict[str, dict[str, Any]] = {
    "fp32": {"backend": "torch"},
    "bf16, torch": {"backend": "torch", "precision": "bf16"},
    "bf16, OpenVINO": {"backend": "openvino", "precision": "bf16"},
    "int8, OpenVINO": {"backend": "openvino", "precision": "int8"},
    "int8, onnxruntime": {"backend": "onnx", "precision": "int8"},
}
OTHERS = ("sts12", "sts13", "sts14")


def main() -> None:
    """Measures, prints and records."""
    arguments_of(__doc__).parse_args()
    folder = data_folder("sts/stsb.tsv") / "sts"
    figures: dict[str, dict[str, float]] = {}
    for name, options in SYSTEMS.items():
        encoder = Encoder.load(BUNDLED_NAME, device="cpu", **options)
        figures[name] = {
            "stsb": spearman(encoder, folder / "stsb.tsv", "test"),
            **{one: spearman(encoder, folder / f"{one}.tsv", None) for one in OTHERS},
        }
        figures[name]["sts12-14"] = statistics.mean(figures[name][one] for one in OTHERS)
        print(name, figures[name], flush=True)
    record("precision", ["sbertkit/encoder", "eval/precision.py"], figures)


def spearman(encoder: Encoder, path: Any, split: str | None) -> float:
    """Spearman times 100."""
    found = evaluate_sts(encoder, path, split=split).spearman
    if found is None:
        raise SystemExit(f"{path}: the scores are constant")
    return 100 * found


if __name__ == "__main__":
    main()
