"""Teachers: encoders whose vectors others learn."""

from typing import TYPE_CHECKING, NamedTuple

from sbertkit.training.config import TrainConfig

if TYPE_CHECKING:
    from sbertkit.encoder import Encoder


class Teacher(NamedTuple):
    """What is known of a teacher that need not be loaded.

    Attributes:
        fingerprint: See `Encoder.fingerprint`.
        dim: Size of its vectors.
        normalizes: Whether they have unit length.
    """

    fingerprint: str
    dim: int
    normalizes: bool


def load_teacher(name: str, config: TrainConfig) -> "Encoder":
    """The encoder of that name, on the device of a run.

    Raises:
        InputError: See `Encoder.load`.
    """
    from sbertkit.encoder import Encoder

    return Encoder.load(name, device=config.device, trust_remote_code=config.trust_remote_code)


def teacher_of(name: str, config: TrainConfig) -> Teacher:
    """What there is to know of a teacher before it encodes; errors are `load_teacher`'s."""
    encoder = load_teacher(name, config)
    return Teacher(encoder.fingerprint, encoder.dim, encoder.normalizes)
