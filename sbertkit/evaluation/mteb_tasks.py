"""Tasks of the mteb package, run unchanged with an `Encoder`."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from sbertkit.arguments import output_folder
from sbertkit.arrays import Vectors
from sbertkit.data.text import printable
from sbertkit.encoder import Encoder
from sbertkit.errors import InputError, InputTypeError, MissingDependency
from sbertkit.schema import to_dict
from sbertkit.storage import storage_errors


@dataclass(frozen=True, slots=True)
class MtebResult:
    """The scores of an encoder on tasks of mteb.

    Attributes:
        model: Name of the encoder.
        fingerprint: Fingerprint of the encoder.
        version: Version of mteb.
        scores: The main score of each task, as mteb scales it.
        measures: Name of the main score, by task.
        failed: Why tasks failed, by name.
    """

    model: str
    fingerprint: str
    version: str
    scores: Mapping[str, float]
    measures: Mapping[str, str]
    failed: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON can hold it."""
        return to_dict(self)


def evaluate_mteb(
    encoder: Encoder,
    tasks: Sequence[Any],
    folder: str | os.PathLike[str],
    *,
    progress: bool = False,
) -> MtebResult:
    """The main scores of an encoder on tasks of mteb; those in the folder are not run again.

    Args:
        encoder: The encoder to evaluate; its query prompt is used for what mteb calls a query.
        tasks: Names of tasks, or tasks.
        folder: Folder for mteb's results.
        progress: Show mteb's progress.

    Raises:
        InputError: An unknown task, or all tasks failed.
        InputTypeError: Not a list of tasks.
        MissingDependency: mteb is not installed.
        StorageError: The folder cannot be written.
    """
    mteb = _library()
    chosen = _tasks(mteb, tasks)
    target = output_folder(folder)
    with storage_errors(target):
        cache = mteb.ResultCache(cache_path=target)
    found = mteb.evaluate(
        _Adapter(encoder),
        chosen,
        cache=cache,
        raise_error=False,
        show_progress_bar=progress,
        co2_tracker=False,
    )
    results = {one.task_name: one for one in found.task_results}
    failed = {one.task_name: _one_line(one.exception) for one in found.exceptions or ()}
    if not results:
        name, reason = next(iter(failed.items()))
        raise InputError(f"no task gave a score; {name}: {reason}")
    return MtebResult(
        model=encoder.options.model,
        fingerprint=encoder.fingerprint,
        version=mteb.__version__,
        scores={name: float(one.get_score()) for name, one in results.items()},
        measures={
            task.metadata.name: task.metadata.main_score
            for task in chosen
            if task.metadata.name in results
        },
        failed=failed,
    )


class _Adapter:
    """The interface that mteb expects of an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        from mteb import similarity_functions
        from mteb.models import ModelMeta
        from mteb.models.model_meta import ScoringFunction

        self._encoder = encoder
        self._functions = similarity_functions
        name = Path(encoder.options.model).name
        # mteb keeps its results by name and revision.
        self.mteb_model_meta = ModelMeta.create_empty(
            {
                "name": f"sbertkit/{name}",
                "revision": encoder.fingerprint,
                "embed_dim": encoder.dim,
                "max_tokens": encoder.max_tokens,
                "similarity_fn_name": ScoringFunction.COSINE,
                "framework": ["PyTorch"],
            }
        )

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        prompt_type: Any = None,
        **_about: Any,
    ) -> Vectors:
        """Vectors (n, dim) of the texts in batches; mteb's other arguments are ignored."""
        texts = [text for batch in inputs for text in batch["text"]]
        # Without a query prompt blank queries are accepted, since they are encoded as documents.
        asks = prompt_type is not None and prompt_type.value == "query"
        prompted = asks and bool(self._encoder.prompts.query)
        return self._encoder.encode(texts, kind="query" if prompted else "document")

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines (n, m)."""
        return self._functions.cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines (n,)."""
        return self._functions.pairwise_cos_sim(embeddings1, embeddings2)


def _tasks(mteb: ModuleType, tasks: Sequence[Any]) -> list[Any]:
    if isinstance(tasks, str) or not isinstance(tasks, Iterable):
        raise InputTypeError(f"tasks must be a list of tasks of mteb, found {tasks!r}")
    chosen = []
    for task in tasks:
        if not isinstance(task, str):
            chosen.append(task)
            continue
        try:
            chosen.append(mteb.get_task(task))
        except KeyError as error:
            reason = str(error.args[0]).removeprefix("KeyError: ")
            raise InputError(f"no task {printable(task, 60)!r} in mteb: {reason}") from error
    if not chosen:
        raise InputError("expected tasks of mteb, such as STSBenchmark, found none")
    return chosen


def _library() -> ModuleType:
    try:
        import mteb
    except ImportError as error:
        raise MissingDependency(
            "tasks of MTEB need the package mteb: pip install 'sbertkit[mteb]'"
        ) from error
    module: ModuleType = mteb
    return module


def _one_line(reason: str) -> str:
    return printable(" ".join(reason.split()), 300)
