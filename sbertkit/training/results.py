"""What a training run comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sbertkit.encoder.model_files import LINEAGE_FILE
from sbertkit.errors import InputError
from sbertkit.files import read_regular
from sbertkit.metrics import Interval, StoredInterval
from sbertkit.schema import Count, as_record, parse_json
from sbertkit.training.dev_set import MEASURES, DevScore
from sbertkit.training.run.guard import SpaceSnapshot
from sbertkit.training.run.metrics_log import LOG_FILE, read_log


@dataclass(frozen=True, slots=True)
class Quality:
    """An encoder's dev score and space; None for what is undefined or was not measured.

    Attributes:
        spearman: Rank correlation of cosines with gold scores on the dev set, from -1 to 1.
        interval: The 95 % bootstrap interval of the dev score.
        random_cosine: Mean cosine of two random training texts.
        uniformity: See `sbertkit.metrics.uniformity`.
        effective_rank: See `sbertkit.metrics.effective_rank`.
        label_cosines: Mean cosine of premise and hypothesis by label.
        ndcg: Mean nDCG@10 on a retrieval dev set, from 0 to 1.
    """

    spearman: float | None
    interval: Interval | None
    random_cosine: float | None
    uniformity: float | None
    effective_rank: float | None
    label_cosines: Mapping[str, float]
    ndcg: float | None = None

    @property
    def dev_score(self) -> float | None:
        """The score on the dev set, whatever it measures."""
        return self.spearman if self.ndcg is None else self.ndcg

    @property
    def measure(self) -> str:
        """What the dev score is called."""
        return MEASURES["spearman" if self.ndcg is None else "ndcg"]

    @classmethod
    def of(
        cls, score: DevScore | None, snapshot: SpaceSnapshot | None, measure: str = "spearman"
    ) -> "Quality":
        """The quality in a dev score, of one of `MEASURES`, and a snapshot."""
        value = None if score is None else score.value
        return cls(
            spearman=value if measure == "spearman" else None,
            ndcg=value if measure == "ndcg" else None,
            interval=None if score is None else score.interval,
            random_cosine=None if snapshot is None else snapshot.random_cosine,
            uniformity=None if snapshot is None else snapshot.uniformity,
            effective_rank=None if snapshot is None else snapshot.effective_rank,
            label_cosines={} if snapshot is None else dict(snapshot.label_cosines),
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: object = "quality") -> "Quality":
        """The quality that `to_dict` gave.

        Args:
            content: Parsed JSON.
            where: The file, for the message.

        Raises:
            InputError: A field is missing or of another type.
        """
        read = as_record(content, _Quality, where)
        values = {field.name: getattr(read, field.name) for field in fields(cls)}
        interval = None if read.interval is None else read.interval.interval()
        return cls(**{**values, "interval": interval})

    def to_dict(self) -> dict[str, Any]:
        """The quality as strict JSON can hold it."""
        return {
            "spearman": self.spearman,
            "interval": None if self.interval is None else self.interval._asdict(),
            "random_cosine": self.random_cosine,
            "uniformity": self.uniformity,
            "effective_rank": self.effective_rank,
            "label_cosines": dict(self.label_cosines),
            "ndcg": self.ndcg,
        }


@dataclass(frozen=True, slots=True)
class TrainResult:
    """A finished run.

    Attributes:
        folder: The trained model.
        steps: Optimizer steps done.
        before: The base, with the pooling that was trained.
        after: The trained encoder.
        log: The metrics log, one mapping per row, each with ``step``.
        record: All that is known of the run, as in ``sbertkit.json``.
    """

    folder: Path
    steps: int
    before: Quality
    after: Quality
    log: tuple[Mapping[str, Any], ...]
    record: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "TrainResult":
        """The result of a run from the folder that it wrote.

        Raises:
            InputError: It is no such folder.
        """
        path = folder / LINEAGE_FILE
        try:
            content = parse_json(read_regular(path), path)
            lineage = as_record(content, _LineageFile, path).lineage
            return cls(
                folder,
                lineage.steps,
                Quality.from_dict(lineage.before, path),
                Quality.from_dict(lineage.after, path),
                tuple(read_log(folder / LOG_FILE)),
                content["lineage"],
            )
        except (OSError, InputError) as error:
            raise InputError(
                f"{folder} is not a model that a training run wrote ({error})"
            ) from error

    @property
    def unmerged(self) -> Quality | None:
        """The trained encoder before it was averaged with its base; None where it was not."""
        known = self.record.get("unmerged")
        return None if known is None else Quality.from_dict(known)

    @property
    def gain(self) -> float | None:
        """How much the dev score rose; None without a dev set."""
        before, after = self.before.dev_score, self.after.dev_score
        return None if before is None or after is None else after - before


@dataclass(frozen=True, slots=True)
class _Quality:
    """A quality as `Quality.to_dict` gives it."""

    spearman: float | None
    interval: StoredInterval | None
    random_cosine: float | None
    uniformity: float | None
    effective_rank: float | None
    label_cosines: dict[str, float]
    ndcg: float | None = None


@dataclass(frozen=True, slots=True)
class _Lineage:
    steps: Count
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _LineageFile:
    lineage: _Lineage
