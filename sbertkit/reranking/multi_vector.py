"""Multi-vector encoders as re-rankers: one vector per token, compared by MaxSim."""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sbertkit.arrays import Vectors
from sbertkit.encoder.layout import read_object
from sbertkit.encoder.library_errors import library_errors
from sbertkit.encoder.model_files import files_sha256, read_modules
from sbertkit.encoder.options import LoadOptions
from sbertkit.encoder.prompts import Prompts
from sbertkit.encoder.report import EncodeReport, EncodeStats
from sbertkit.encoder.rows import PairRows, length_of, rows_of
from sbertkit.errors import InputError
from sbertkit.files import inside
from sbertkit.progress import track
from sbertkit.reranking.reranker import PairRun, Reranker

logger = logging.getLogger(__name__)

_SETTINGS = "config_sentence_transformers.json"
_TYPES = ("MultiVectorEncoder", "ColBERT")
"""How sentence-transformers, and PyLate, whose folders it reads, call such a model."""
_CHUNK_PAIRS = 2_048
"""Pairs whose token vectors are in memory at once."""
_PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def is_multi_vector(folder: Path) -> bool:
    """Whether a model folder declares a multi-vector encoder."""
    path = folder / _SETTINGS
    return path.is_file() and read_object(path).get("model_type") in _TYPES


class MultiVectorReranker(Reranker):
    """A multi-vector encoder, run by sentence-transformers, whose MaxSim is the score.

    For token vectors q of the query and d of the document: ``sum_i max_j q_i . d_j``; the mean over
    i for a model that declares ``meanmaxsim``. Each distinct text of some thousand pairs is encoded
    once.

    Source: Khattab & Zaharia 2020, ColBERT, equation 3.
    """

    def __init__(self, options: LoadOptions, folder: Path, *, trust_remote_code: bool) -> None:
        _check(options, folder, trust_remote_code=trust_remote_code)
        self._options = options
        self._folder = folder
        self._trust = trust_remote_code

    def __reduce__(self) -> tuple[object, ...]:
        """A copy in another process loads the model again."""
        return _again, (self._options, self._folder, self._trust)

    @cached_property
    def _library(self) -> Any:
        from sentence_transformers import MultiVectorEncoder

        from sbertkit.encoder.backends.torch import choose_device
        from sbertkit.encoder.transformer import quiet_transformers

        dtype = _PRECISIONS[self._options.precision]
        with library_errors(f"the model in {self._folder} cannot be loaded"), quiet_transformers():
            return MultiVectorEncoder(
                str(self._folder),
                device=str(choose_device(self._options.device)),
                trust_remote_code=self._trust,
                local_files_only=True,
                model_kwargs={"use_safetensors": True, "dtype": dtype},
            )

    @property
    def model(self) -> str:
        """Its name, as it was given."""
        return self._options.model

    @property
    def max_tokens(self) -> int | None:
        """Tokens a document may have; ``None``: no limit."""
        return _Side(self._library, "document").limit

    @property
    def activation(self) -> str:
        """None: MaxSim is the score."""
        return "Identity"

    @property
    def device(self) -> str:
        """The kind of device that it runs on."""
        return str(self._library.device.type)

    @property
    def precision(self) -> str:
        """What its vectors are computed in; they are compared in float32."""
        return self._options.precision

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the files that decide a score."""
        return files_sha256(self._folder)

    def start_run(self, *, batch_tokens: int | None = None) -> PairRun:
        """See `Reranker.start_run`; batches are those of sentence-transformers."""
        del batch_tokens
        return MultiVectorRun(self._library)

    @property
    def spec(self) -> NoReturn:
        """Refused: it is no encoder of ours."""
        self._refuse("described")

    def save(self, folder: object) -> NoReturn:  # noqa: ARG002  # as the base has it
        """Refused: the folder that it was loaded from is as good."""
        self._refuse("saved")

    def export(
        self,
        folder: object,  # noqa: ARG002  # as above
        *,
        precision: str = "fp32",  # noqa: ARG002
        calibrate: object = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refused: sentence-transformers runs it."""
        self._refuse("exported")

    def export_folder(self, precision: str = "fp32") -> NoReturn:  # noqa: ARG002
        """Refused, likewise."""
        self._refuse("exported")

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"{self.model} is a multi-vector encoder, which is not {what} here; use its own folder"
        )


def _again(options: LoadOptions, folder: Path, trust: bool) -> MultiVectorReranker:
    return MultiVectorReranker(options, folder, trust_remote_code=trust)


def _check(options: LoadOptions, folder: Path, *, trust_remote_code: bool) -> None:
    """Refuses what cannot be done, and weights that are pickled, before the library reads them.

    Raises:
        InputError: Such a folder, or such options.
    """
    for name, value, possible in (
        ("backend", options.backend, ("auto", "torch")),
        ("precision", options.precision, tuple(_PRECISIONS)),
        ("max_tokens", options.max_tokens, (None,)),
    ):
        if value not in possible:
            known = " or ".join(str(one) for one in possible)
            raise InputError(
                f"{options.model} is a multi-vector encoder, whose {name} may be {known}, not "
                f"{value!r}"
            )
    for module in read_modules(folder):
        own = module.type.startswith(("sentence_transformers.", "pylate."))
        if not own and not trust_remote_code:
            raise InputError(
                f"{folder}: module {module.type} is code of the model; allow it with "
                "trust_remote_code=True (--trust-remote-code)"
            )
        place = inside(folder, module.path) if module.path else folder
        pickled = sorted(path.name for path in place.glob("*.bin")) if place.is_dir() else []
        if pickled and not any(place.glob("*.safetensors")):
            raise InputError(
                f"{place} has no *.safetensors file, the only weight format that is read, but "
                f"{pickled[0]}; convert the weights with safetensors.torch.save_model"
            )


@dataclass(frozen=True, slots=True)
class _Side:
    """The queries, or the documents, of a model of the library.

    Attributes:
        library: The model.
        task: ``query`` or ``document``.
    """

    library: Any
    task: str

    @property
    def limit(self) -> int | None:
        """Tokens that a text may have."""
        transformer = self.library[0]
        expansion = transformer.query_expansion if self.task == "query" else None
        own = getattr(transformer, f"{self.task}_length", None)
        limit = own or (expansion or {}).get("length") or self.library.max_seq_length
        return None if limit is None else int(limit)

    def lost(self, texts: Sequence[str]) -> dict[str, int]:
        """How many tokens each truncated text loses."""
        limit = self.limit
        if limit is None or not texts:
            return {}
        prompt = self.library.prompts.get(self.task) or ""
        prompted = [prompt + text for text in texts]
        found = self.library.tokenizer(prompted, truncation=False, verbose=False)["input_ids"]
        return {
            text: len(ids) - limit
            for text, ids in zip(texts, found, strict=True)
            if len(ids) > limit
        }

    def vectors(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """The token vectors (T, dim) of each text, those that are not scored left out."""
        encode = getattr(self.library, f"encode_{self.task}")
        found = encode(list(texts), show_progress_bar=False) if texts else []
        return {text: one.float().cpu().numpy() for text, one in zip(texts, found, strict=True)}


class MultiVectorRun:
    """Scores the pairs of one call, chunk by chunk; see `EncodingRun`.

    Args:
        library: The model.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._sides = (_Side(library, "query"), _Side(library, "document"))
        self._mean = library.similarity_fn_name == "meanmaxsim"
        self._reader = PairRows(Prompts())
        self._stats = EncodeStats()
        self._seconds = 0.0

    def vectors(
        self, pairs: Iterable[tuple[str, str]], *, progress: bool = False, warn: bool = True
    ) -> Iterator[Vectors]:
        """Scores (n, 1) of the pairs in order, one chunk at a time."""
        started = time.perf_counter()
        total = length_of(pairs)
        if total is not None and not isinstance(pairs, Iterator):
            for number, row in enumerate(rows_of(pairs, self._reader.expected)):
                self._reader.check(row, number)
        with track(self._reader.doing, total, shown=progress) as advance:
            for chunk, stats in self._chunks(pairs):
                yield self._scores(chunk, stats)[:, None]
                self._stats.merge(stats)
                advance(len(chunk))
        self._seconds = time.perf_counter() - started
        if warn:
            self._warn()

    def report(self) -> EncodeReport:
        """What happened to the pairs whose scores have been drawn."""
        return self._stats.report(self._seconds, self._stats.tokens)

    def _warn(self) -> None:
        stats = self._stats
        if stats.truncated:
            logger.warning(
                "%d of %d pairs were truncated to the limits of the model (%d tokens lost)",
                len(stats.truncated),
                stats.rows,
                stats.tokens_lost,
            )

    def _chunks(self, pairs: object) -> Iterator[tuple[list[tuple[str, str]], EncodeStats]]:
        chunk: list[tuple[str, str]] = []
        stats = EncodeStats()
        for number, row in enumerate(rows_of(pairs, self._reader.expected)):
            chunk.append(self._reader.clean(self._reader.check(row, number), stats))
            stats.rows += 1
            if len(chunk) == _CHUNK_PAIRS:
                yield chunk, stats
                chunk, stats = [], EncodeStats()
        if chunk:
            yield chunk, stats

    def _scores(self, pairs: Sequence[tuple[str, str]], stats: EncodeStats) -> Vectors:
        queries, documents = (
            side.vectors(list(dict.fromkeys(column)))
            for side, column in zip(self._sides, zip(*pairs, strict=True), strict=True)
        )
        self._count_lost(pairs, stats)
        scores = np.empty(len(pairs), np.float32)
        rows: dict[str, list[int]] = {}
        for row, (query, _) in enumerate(pairs):
            rows.setdefault(query, []).append(row)
        for query, places in rows.items():
            found = [documents[pairs[place][1]] for place in places]
            scores[places] = max_sim(queries[query], found, mean=self._mean)
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            raise InputError(
                f"pair {self._stats.rows + int(bad[0])}: the model gave a score that is not "
                "finite; its weights are damaged"
            )
        return scores

    def _count_lost(self, pairs: Sequence[tuple[str, str]], stats: EncodeStats) -> None:
        lost: list[Mapping[str, int]] = [
            side.lost(list(dict.fromkeys(column)))
            for side, column in zip(self._sides, zip(*pairs, strict=True), strict=True)
        ]
        for row, (query, document) in enumerate(pairs):
            tokens = lost[0].get(query, 0) + lost[1].get(document, 0)
            if tokens:
                stats.truncated.append(row)
                stats.tokens_lost += tokens


def max_sim(query: Vectors, documents: Sequence[Vectors], *, mean: bool = False) -> Vectors:
    """The MaxSim of a query's token vectors (T, dim) with those of each document, (n,).

    A document without tokens has 0.

    Args:
        query: (T, dim).
        documents: Each (T, dim).
        mean: Divide by the number of the query's tokens.
    """
    scores = np.zeros(len(documents), np.float32)
    filled = [place for place, one in enumerate(documents) if len(one)]
    if not filled or not len(query):
        return scores
    lengths = [len(documents[place]) for place in filled]
    table = query @ np.concatenate([documents[place] for place in filled]).T  # (T, tokens)
    best = np.maximum.reduceat(table, np.cumsum([0, *lengths[:-1]]), axis=1)  # (T, n)
    scores[filled] = best.sum(axis=0) / (len(query) if mean else 1)
    return scores
