"""`run_recipe`: the steps from one's own text to a search, and a report of what each has given."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sbertkit.arguments import Paths, output_folder, path_list, path_text
from sbertkit.data.documents import ReadOptions
from sbertkit.data.named import local_path
from sbertkit.encoder.resolve import BUNDLED_NAME
from sbertkit.errors import InputError, InputTypeError
from sbertkit.lock import writer_lock
from sbertkit.pipeline.advice import advice_of, choose_encoder
from sbertkit.pipeline.config import NO_TASK, RecipeConfig
from sbertkit.pipeline.results import (
    ADAPT,
    BASE,
    DIAGNOSE,
    INDEX,
    TRAIN,
    RecipeResult,
    ScoredEncoder,
)
from sbertkit.pipeline.scores import Trial
from sbertkit.pipeline.state import Done, RecipeState, content_hash, key_of, remove
from sbertkit.progress import duration, say
from sbertkit.storage import made_parents
from sbertkit.training.pretraining.tasks import find_task
from sbertkit.training.run.folder import RunFolder

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder

logger = logging.getLogger(__name__)

_DEFAULT = RecipeConfig()
_READ = ReadOptions()
_EXAMPLES = 5
"""Queries that are tried on the index."""
_HITS = 3

Work = Callable[[Path, bool], Mapping[str, Any]]
"""Does a step: gets its output and whether it was begun before, gives its result."""


def run_recipe(
    corpus: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    nli: Paths,
    base: str | os.PathLike[str] = BUNDLED_NAME,
    dev: str | os.PathLike[str] | None = None,
    collections: Paths = (),
    read: ReadOptions = _READ,
    config: RecipeConfig = _DEFAULT,
    progress: bool = False,
) -> RecipeResult:
    """Adapts an encoder to texts, trains it on NLI, diagnoses it, and indexes the texts with it.

    After each step the encoder is scored: by how well two parts of a text of the corpus find each
    other, against the base with a 95 % interval, and on labeled data if any is given. The encoder
    that is indexed is the last one, or the base if that finds more. `output` gets the models
    ``adapted``, ``trained`` and ``diagnosed``, the index ``index``, and ``report.html``, which is
    written again after each step. The same call again skips the steps whose inputs have not
    changed, and continues one that was interrupted.

    Args:
        corpus: One's own texts, for `read_corpus`.
        output: A folder: new, empty, or one of an earlier recipe, whose steps are done again where
            their inputs have changed.
        nli: What `train_nli` takes.
        base: A model folder or a hub name.
        dev: Scored sentence pairs or a collection, as `train_nli` takes them: it chooses the best
            checkpoint of train-nli.
        collections: Collections to score encoders on, for `evaluate_retrieval`.
        read: How the corpus is read.
        config: All further settings.
        progress: Show progress on standard error.

    Raises:
        InputError: Corpus, data, base, output or settings are refused.
        InputTypeError: No `RecipeConfig`.
        TrainingStopped: The guard ended a training.
        StorageError: Another recipe writes to the output, the disk is full or the like.
        KeyboardInterrupt: Ctrl-C; the same call continues.
    """
    if not isinstance(config, RecipeConfig):
        raise InputTypeError(f"config must be a RecipeConfig, found {type(config).__name__}")
    given = _Given(
        path_text(corpus),
        path_text(base),
        [local_path(path_text(one)) for one in path_list(nli)],
        None if dev is None else path_text(dev),
        {path_text(one): local_path(path_text(one)) for one in path_list(collections)},
        read,
    )
    if not given.nli:
        raise InputError("expected data to train on (nli, --nli), found none")
    folder = output_folder(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder for the recipe")
    RecipeState(folder)  # before a lock is left in a folder of others
    trial, encoder = given.trial(config), given.encoder(config)
    with made_parents(folder), writer_lock(folder, partial(_made, folder)):
        return _Run(folder, given, trial, encoder, config, progress=progress).result()


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class _Given:
    """What a recipe is for; see `run_recipe`."""

    corpus: str
    base: str
    nli: list[str]
    dev: str | None
    collections: dict[str, str]
    read: ReadOptions

    def trial(self, config: RecipeConfig) -> Trial:
        """What encoders are scored on; all data is looked at, so that bad data is refused now."""
        from sbertkit.evaluation.diagnosis.pairs import draw_pairs
        from sbertkit.training.retrieval_dev import read_dev

        for path in (*self.nli, *self.collections.values()):
            if not Path(path).exists():
                raise InputError(f"{path}: no such file or folder; name the data to read")
        drawn = draw_pairs(self.corpus, config.sample, seed=config.seed, read=self.read)
        dev = None if self.dev is None else read_dev(self.dev)
        identity = {
            "corpus": [content_hash(self.corpus), repr(self.read)],
            "sample": [config.sample, config.seed],
            "dev": None if dev is None else dev.sha256,
            "collections": {name: content_hash(at) for name, at in self.collections.items()},
        }
        return Trial(list(drawn.pairs.values()), dev, self.collections, identity)

    def encoder(self, config: RecipeConfig) -> "Encoder":
        """The base as it is, with the pooling that it declares.

        Raises:
            InputError: It cannot be loaded, or the task does not suit it.
        """
        from sbertkit.encoder import Encoder

        encoder = Encoder.load(
            self.base,
            device=config.device,
            trust_remote_code=config.trust_remote_code,
        )
        return encoder if config.task == NO_TASK else find_task(config.task).student(encoder)


class _Run:
    """The steps, one after another.

    Args:
        folder: The output.
        given: What the recipe is for.
        trial: What encoders are scored on.
        encoder: The base.
        config: The settings.
        progress: Show progress on standard error.
    """

    def __init__(
        self,
        folder: Path,
        given: _Given,
        trial: Trial,
        encoder: "Encoder",
        config: RecipeConfig,
        *,
        progress: bool,
    ) -> None:
        self._folder = folder
        self._given = given
        self._trial = trial
        self._config = config
        self._progress = progress
        self._state = RecipeState(folder)
        self._encoders: list[ScoredEncoder] = []
        self._last: tuple[str, Encoder] | None = given.base, encoder
        self._about = {
            "corpus": given.corpus,
            "base": given.base,
            "NLI": ", ".join(given.nli),
            "dev set": given.dev or "none",
        }

    def result(self) -> RecipeResult:
        """Does what is not done yet."""
        model, known = self._given.base, self._trial.identity
        identity = self._scored(BASE, model, {}, 0.0)
        inputs: dict[str, Any]
        if self._config.task != NO_TASK:
            inputs = {"task": self._config.task, "corpus": known["corpus"]}
            model, identity = self._trained(ADAPT, "adapted", model, identity, inputs, self._adapt)
        inputs = {"dev": known["dev"], "nli": [content_hash(path) for path in self._given.nli]}
        model, identity = self._trained(TRAIN, "trained", model, identity, inputs, self._train)
        inputs = {"corpus": known["corpus"], "sample": self._config.sample}
        model, identity = self._trained(
            DIAGNOSE, "diagnosed", model, identity, inputs, self._diagnose
        )
        chosen = choose_encoder(self._encoders)
        index = self._step(
            INDEX,
            "index",
            {
                "encoder": self._identity(chosen.model),
                "corpus": known["corpus"],
                "recall": self._config.recall,
            },
            partial(self._index, chosen.model),
            keeps=False,
        )
        return self._report(chosen.model, index.result)

    def _trained(
        self,
        step: str,
        name: str,
        model: str,
        identity: str,
        inputs: Mapping[str, Any],
        work: Callable[[str, Path, bool], Mapping[str, Any]],
    ) -> tuple[str, str]:
        """Does a step that gives an encoder, and scores it: its folder and fingerprint."""
        settings = (
            self._config.pooling,
            self._config.batch_size,
            self._config.max_tokens,
            self._config.seed,
            self._config.guard,
        )
        steps = {ADAPT: self._config.adapt_steps, TRAIN: self._config.nli_steps}.get(step)
        decided = {**inputs, "base": identity, "settings": [*settings, steps]}
        done = self._step(step, name, decided, partial(work, model))
        folder = str(self._folder / name)
        return folder, self._scored(step, folder, done.result, done.seconds)

    def _step(
        self, step: str, name: str, inputs: Mapping[str, Any], work: Work, *, keeps: bool = True
    ) -> Done:
        """What a step gave, which is done now unless it was done with the same inputs.

        Args:
            step: Its name.
            name: That of its folder.
            inputs: What decides it.
            work: Does it.
            keeps: Whether its files must be as it wrote them; else it is an index, which must be
                whole, and replaces what is there.
        """
        key, output = key_of(inputs), self._folder / name
        known = self._state.done(step, key)
        if known is not None and (output.is_dir() if keeps else _is_whole(output)):
            say(f"{step}: done before, nothing has changed", shown=self._progress)
            return known
        resumes = self._state.is_begun(step, key)
        if not resumes:
            if keeps:
                remove(output)
            self._state.begin(step, key)
        say(f"{step} ...", shown=self._progress)
        started = time.monotonic()
        result = work(output, resumes)
        self._last = None  # the model of that name may be another now
        seconds = time.monotonic() - started
        say(f"{step}: {duration(seconds)}", shown=self._progress)
        return self._state.finish(step, key, seconds, result, output if keeps else None)

    def _scored(self, step: str, model: str, facts: Mapping[str, Any], seconds: float) -> str:
        """Scores the encoder after a step, unless that was done; its fingerprint."""
        identity = self._identity(model)
        name, key = f"{step} scores", key_of({"encoder": identity, **self._trial.identity})
        known = self._state.done(name, key)
        if known is None:
            say(f"{name} ...", shown=self._progress)
            self._state.begin(name, key)
            started = time.monotonic()
            scores = self._trial.score(self._load(model), progress=self._progress)
            known = self._state.finish(name, key, time.monotonic() - started, scores, None)
        base = self._encoders[0] if self._encoders else None
        self._encoders.append(
            ScoredEncoder.of(
                step,
                model,
                known.result,
                base,
                facts=facts,
                seconds=seconds,
                seed=self._config.seed,
            )
        )
        if len(self._encoders) > 1:
            self._report(None, {})
        return identity

    def _report(self, model: str | None, index: Mapping[str, Any]) -> RecipeResult:
        """The result so far, which is written as a page, too."""
        from sbertkit.evaluation.report.page import write_page
        from sbertkit.pipeline.report import recipe_page

        facts = {name: value for name, value in index.items() if name != "examples"}
        examples = {query: tuple(hits) for query, hits in index.get("examples", {}).items()}
        encoders = tuple(self._encoders)
        advice = tuple(advice_of(encoders, facts, self._config.task))
        found = RecipeResult(
            self._folder, self._about, encoders, model or "", facts, examples, advice
        )
        write_page(found.report, recipe_page(found))
        return found

    def _load(self, model: str) -> "Encoder":
        """An encoder: the base, or a result as it was saved."""
        from sbertkit.encoder import Encoder

        config = self._config
        if self._last is not None and self._last[0] == model:
            return self._last[1]
        if model == self._given.base:
            encoder = self._given.encoder(config)
        else:
            encoder = Encoder.load(
                model, device=config.device, trust_remote_code=config.trust_remote_code
            )
        self._last = model, encoder
        return encoder

    def _identity(self, model: str) -> str:
        return self._load(model).fingerprint

    def _settings(self, steps: int | None, output: Path) -> dict[str, Any]:
        """The settings that both trainings share."""
        config = self._config
        return {
            "max_steps": steps,
            "batch_size": config.batch_size,
            "max_tokens": config.max_tokens,
            "seed": config.seed,
            "guard": config.guard,
            "device": config.device,
            "trust_remote_code": config.trust_remote_code,
            "resume": RunFolder(output).is_unfinished,
            "progress": self._progress,
        }

    def _adapt(self, base: str, output: Path, resumes: bool) -> Mapping[str, Any]:
        from sbertkit.training.pretraining.adapt import adapt
        from sbertkit.training.pretraining.config import AdaptConfig
        from sbertkit.training.results import TrainResult

        if not (resumes and output.exists()):
            adapt(
                base,
                self._given.corpus,
                output,
                task=self._config.task,
                pooling=self._config.pooling,
                read=self._given.read,
                config=AdaptConfig(**self._settings(self._config.adapt_steps, output)),
            )
        record = TrainResult.read(output).record
        held_out = record.get("held_out") or {}
        return {"steps": record["steps"], "examples": record["examples"], "held_out": held_out}

    def _train(self, base: str, output: Path, resumes: bool) -> Mapping[str, Any]:
        from sbertkit.training.config import TrainConfig
        from sbertkit.training.nli import train_nli
        from sbertkit.training.results import TrainResult

        if not (resumes and output.exists()):
            train_nli(
                base,
                self._given.nli,
                output,
                pooling=self._config.pooling,
                dev=self._trial.dev,
                config=TrainConfig(**self._settings(self._config.nli_steps, output)),
            )
        record = TrainResult.read(output).record
        return {"steps": record["steps"], "examples": record["examples"]}

    def _diagnose(self, base: str, output: Path, resumes: bool) -> Mapping[str, Any]:
        from sbertkit.encoder.saving import save_model
        from sbertkit.evaluation import diagnose
        from sbertkit.evaluation.report.diagnosis import advice

        del resumes  # it takes a minute
        encoder = self._load(base)
        found = diagnose(
            encoder,
            self._given.corpus,
            sample=min(2_000, self._config.sample),
            seed=self._config.seed,
            read=self._given.read,
            progress=self._progress,
        )
        save_model(found.apply(encoder).torch, output, lineage={"diagnosis": found.summary()})
        return {"advice": advice(found), "candidates": len(found.candidates)}

    def _index(self, model: str, output: Path, resumes: bool) -> Mapping[str, Any]:
        from sbertkit.retrieval import SearchIndex

        with SearchIndex.build(
            self._given.corpus,
            partial(self._load, model),
            output,
            recall=self._config.recall,
            read=self._given.read,
            resume=resumes,
            progress=self._progress,
        ) as index:
            info = index.info()
            queries = [pair.first for pair in self._trial.pairs[:_EXAMPLES]]
            found = index.search_batch(queries, _HITS)
        measured = info.measured
        return {
            "documents": info.documents,
            "vectors": info.vectors,
            "kind": info.kind,
            "bytes": info.bytes,
            "mode": info.default_mode,
            "recall": None if measured is None else measured.recall,
            "examples": {
                query: [hit.passage.text[:500] for hit in hits]
                for query, hits in zip(queries, found, strict=True)
            },
        }


def _is_whole(index: Path) -> bool:
    """Whether there is an index without damage; what is wrong is logged."""
    from sbertkit.retrieval import verify_index

    if not index.is_dir():
        return False
    try:
        problems = verify_index(index)
    except InputError as error:
        logger.warning("%s; the index is built again", error)
        return False
    for problem in problems:
        logger.warning("%s: %s; the index is built again", index / problem.file, problem.reason)
    return not problems
