"""Libraries that run encoders, each in one module and one entry of `BACKENDS`."""

from typing import NamedTuple


class BackendKind(NamedTuple):
    """A library that runs encoders.

    Attributes:
        backend: Where its class is, a `sbertkit.encoder.backends.base.Backend`.
        precisions: What it computes in.
        library: The module that has to be installed.
        extra: What installs it with sbertkit; ``None`` for what is always installed.
    """

    backend: str
    precisions: tuple[str, ...]
    library: str
    extra: str | None = None

    @property
    def runs_exports(self) -> bool:
        """Whether it runs exported ONNX models, on the CPU; torch runs the model itself."""
        return self.extra is not None


BACKENDS: dict[str, BackendKind] = {
    "torch": BackendKind(
        "sbertkit.encoder.backends.torch:TorchBackend", ("fp32", "bf16", "fp16"), "torch"
    ),
    "onnx": BackendKind(
        "sbertkit.encoder.backends.onnx:OnnxBackend", ("fp32", "int8"), "onnxruntime", "cpu"
    ),
    "openvino": BackendKind(
        "sbertkit.encoder.backends.openvino:OpenvinoBackend",
        ("fp32", "bf16", "int8"),
        "openvino",
        "openvino",
    ),
}
"""The backends by name, the fastest on the CPU last."""

BACKEND_CHOICES = ("auto", *BACKENDS)
PRECISIONS = (
    *dict.fromkeys(precision for kind in BACKENDS.values() for precision in kind.precisions),
    "auto",
)
EXPORT_PRECISIONS = BACKENDS["onnx"].precisions
"""What the ONNX model of an export can be in."""
