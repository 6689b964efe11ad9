"""Switching off what libraries report to their makers; nothing leaves the machine unasked."""

import os
import sys

_SETTINGS = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "ORT_DISABLE_TELEMETRY": "1",
    "WANDB_ERROR_REPORTING": "false",
}
"""Variables that libraries read when they are imported; a value that the user has set stays."""

_REPORTING_MODULE = "openvino_telemetry"
"""OpenVINO reports every import by it, and goes without where it cannot be imported."""


def switch_off_telemetry() -> None:
    """Keeps onnxruntime, OpenVINO and the hub's libraries from reporting.

    It has to be called before any of them is imported.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    # None in this place makes an import fail as if there were no such package.
    sys.modules.setdefault(_REPORTING_MODULE, None)  # type: ignore[arg-type]
