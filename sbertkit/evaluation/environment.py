"""When, with what and on what a result was measured."""

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sbertkit
from sbertkit.encoder import Encoder

_LIBRARIES = (
    *("numpy", "torch", "transformers", "tokenizers", "onnxruntime", "openvino"),
    *("faiss-cpu", "ir-measures"),
)
_CPU_INFO = Path("/proc/cpuinfo")


def environment(encoder: Encoder | None = None) -> dict[str, Any]:
    """Date (UTC), versions, machine, and how the encoder ran, as JSON can hold it.

    Args:
        encoder: The encoder, after it has encoded; None if there was none.
    """
    found: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "sbertkit": sbertkit.__version__,
        "python": platform.python_version(),
        "libraries": {name: known for name in _LIBRARIES if (known := _version(name))},
        "machine": {"cpu": _cpu_model(), "cores": os.cpu_count(), "system": platform.system()},
    }
    if encoder is not None:
        names = ("precision", "backend", "device")
        found |= {name: getattr(encoder, name) for name in names}
    return found


def environment_facts(found: Mapping[str, Any]) -> dict[str, object]:
    """What `environment` gave as names and texts, for a page."""
    facts: dict[str, object] = {
        name: found[name] for name in ("date", "precision", "backend", "device") if name in found
    }
    if "date" in found:
        facts["date"] = f"{datetime.fromisoformat(found['date']):%Y-%m-%d %H:%M} UTC"
    if "machine" in found:
        machine = found["machine"]
        facts["machine"] = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"
    numbers = {name: found[name] for name in ("sbertkit", "python") if name in found}
    numbers |= found.get("libraries", {})
    if numbers:
        facts["versions"] = ", ".join(f"{name} {number}" for name, number in numbers.items())
    return facts


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    """The name of the processor; its architecture where the system does not tell the name."""
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
