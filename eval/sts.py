"""The bundled model on STS sets, by sbertkit and by sentence-transformers: Spearman and Pearson.

    SBERTKIT_DATA=FOLDER python eval/sts.py

FOLDER holds sts/stsb.tsv, sts12.tsv, sts13.tsv, sts14.tsv and sick.tsv (header: split, score,
sentence1, sentence2).
"""

from collections.abc import Sequence

from recording import VECTORS, arguments_of, data_folder, record
from sentence_transformers import SentenceTransformer

from sbertkit import Encoded, Encoder, EncodeReport, evaluate_sts
from sbertkit.encoder.protocols import Kind, RunLike
from sbertkit.encoder.resolve import BUNDLED_NAME, resolve_model

SETS = ("stsb", "sts12", "sts13", "sts14", "sick")


class Peer:
    """sentence-transformers with its defaults, as an `EncoderLike`."""

    def __init__(self) -> None:
        self._model = SentenceTransformer(str(resolve_model(BUNDLED_NAME)))

    def encode_with_report(self, texts: Sequence[str], /, *, kind: Kind = "document") -> Encoded:
        """Its vectors; it has no prompts and does not report truncation."""
        del kind
        vectors = self._model.encode(list(texts))
        return Encoded(vectors, EncodeReport(len(vectors), (), 0, (), (), 0, 0.0, 0.0))

    def start_run(self, *, kind: Kind = "document") -> RunLike:
        """Not needed for sentence pairs."""
        raise NotImplementedError


def main() -> None:
    """Measures, prints and records."""
    arguments_of(__doc__).parse_args()
    folder = data_folder("sts/stsb.tsv") / "sts"
    encoder, peer = Encoder.load(BUNDLED_NAME, backend="torch", device="cpu"), Peer()
    figures = {}
    for name in SETS:
        path = folder / f"{name}.tsv"
        result = evaluate_sts(encoder, path, split="test")
        by_peer = evaluate_sts(peer, path, split="test").spearman
        figures[name] = result.to_dict() | {
            "source": f"{name}.tsv",
            "sentence_transformers_spearman": by_peer,
        }
        print(f"{name}: {result.spearman} ({result.interval}), sentence-transformers {by_peer}")
    sources = [*VECTORS, "sbertkit/metrics", "sbertkit/data/sts", "sbertkit/evaluation/sts.py"]
    record("sts", [*sources, "eval/sts.py"], figures)


if __name__ == "__main__":
    main()
