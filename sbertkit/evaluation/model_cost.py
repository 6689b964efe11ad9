"""What an encoder costs on this machine: seconds to load, texts per second, memory."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import sbertkit
from sbertkit.data.sampling import Texts, sample_texts
from sbertkit.data.wordnet import demo_corpus
from sbertkit.errors import InputError, InputTypeError
from sbertkit.progress import track
from sbertkit.schema import as_record, to_dict

SAMPLE = 500
"""Default number of texts that are encoded."""
_SECONDS = 1_800.0
"""A model that has not answered by then is given up."""
_ROOT = str(Path(sbertkit.__file__).resolve().parents[1])
_PROGRAM = """
import sys
sys.path.append(sys.argv[1])
from sbertkit.evaluation.model_process import main
main()
"""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """An encoder as it was measured in a process of its own.

    Attributes:
        model: Its name or folder.
        dim: Size of a vector.
        max_tokens: Tokens that a text may have; None for no limit.
        parameters: Number of parameters.
        load_seconds: From a Python process without libraries to the first text's vector.
        texts: Number of texts encoded.
        tokens: How many tokens they have, padding not counted.
        encode_seconds: Time to encode them once, in the fastest of a few runs.
        memory: Most bytes that the process ever had resident, libraries and weights included.
        device_memory: Most bytes allocated on a GPU; 0 on the CPU.
        device: The kind of device that it ran on.
        precision: What it computed in.
    """

    model: str
    dim: int
    max_tokens: int | None
    parameters: int
    load_seconds: float
    texts: int
    tokens: int
    encode_seconds: float
    memory: int
    device_memory: int
    device: str
    precision: str

    @property
    def texts_per_second(self) -> float:
        """How many texts were encoded in a second."""
        return self.texts / self.encode_seconds if self.encode_seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The cost as strict JSON can hold it."""
        return {**to_dict(self), "texts_per_second": self.texts_per_second}


class MeasuredModels(NamedTuple):
    """What models cost, and why some could not be measured.

    Attributes:
        costs: In the order of the models.
        failed: The reason by the name of each other model.
    """

    costs: tuple[ModelCost, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModelJob:
    """What a process has to measure."""

    model: str
    texts: tuple[str, ...]
    device: str
    trust_remote_code: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """What it answers with on its last line of standard output: one of the two."""

    cost: ModelCost | None = None
    error: str | None = None


def measure_models(
    models: Sequence[str],
    corpus: Texts | None = None,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: bool = False,
) -> MeasuredModels:
    """What encoders cost on this machine: torch in fp32, each in a process of its own.

    Nothing is downloaded.

    Args:
        models: Folders, or names of models that are bundled or in the hub's cache.
        corpus: Whose texts are encoded: a path, or an iterable of texts or documents; None for
            glosses of WordNet, which have about 15 tokens.
        sample: Maximum number of texts drawn.
        seed: Seed of the draw.
        device: As for `Encoder.load`.
        trust_remote_code: Run Python code that comes with a model.
        progress: Show progress on standard error.

    Raises:
        InputError: A corpus that cannot be read.
        InputTypeError: No corpus, or no list of models.
        MissingFile: Its path does not exist.
    """
    if isinstance(models, str):
        raise InputTypeError(f"models must be a list of folders or names, found {models!r}")
    drawn = sample_texts(demo_corpus() if corpus is None else corpus, sample, seed=seed)
    names = list(dict.fromkeys(models))
    costs, failed = [], {}
    with track("measuring models", len(names), shown=progress) as advance:
        for model in names:
            answer = _ask(ModelJob(model, drawn.texts, device, trust_remote_code))
            if answer.cost is not None:
                costs.append(answer.cost)
            else:
                failed[model] = answer.error or "it gave no answer"
            advance(1)
    return MeasuredModels(tuple(costs), failed)


def answer_line(*, cost: ModelCost | None = None, error: str | None = None) -> str:
    """What a process that measured a model prints last."""
    return json.dumps({"cost": None if cost is None else asdict(cost), "error": error})


def _ask(job: ModelJob) -> _Answer:
    # Known models are loaded from where they are, never fetched.
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    try:
        ran = subprocess.run(  # noqa: S603 - this interpreter, a module of this package
            # -P: a json.py of the working folder is not the library's
            [sys.executable, "-P", "-c", _PROGRAM, _ROOT],
            input=json.dumps(asdict(job)),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Answer(error=f"no answer after {_SECONDS:,.0f} seconds")
    lines = ran.stdout.splitlines()
    try:
        return as_record(json.loads(lines[-1]), _Answer, "the answer of the process")
    except (IndexError, ValueError, InputError):
        said = ran.stderr.strip().splitlines()
        reason = f": {said[-1]}" if said else ""
        return _Answer(error=f"its process ended with status {ran.returncode}{reason}")
