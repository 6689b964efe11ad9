"""Which number format a device trains in well, and what that asks of batches."""

import torch

from sbertkit.errors import InputError


def choose_precision(name: str, device: torch.device) -> str:
    """``fp32``, ``bf16`` or ``fp16``; ``auto`` takes bf16 where the device computes in it.

    Raises:
        InputError: The device cannot train in that format.
    """
    if name == "auto":
        return "bf16" if _computes_in_bf16(device) else "fp32"
    if name == "fp16" and device.type != "cuda":
        raise InputError(
            f"precision fp16 needs a CUDA device, found {device.type}; choose bf16 or fp32"
        )
    return name


def compiles_shapes(precision: str, device: torch.device) -> bool:
    """Whether each new shape of a batch costs time: oneDNN compiles its bf16 products for it."""
    return precision == "bf16" and device.type == "cpu"


def _computes_in_bf16(device: torch.device) -> bool:
    """Whether there are instructions for it; emulated, it is slower than float32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    if device.type == "cpu":
        cpu = torch.cpu
        if hasattr(cpu, "get_capabilities"):
            found = cpu.get_capabilities()
            return bool(found.get("avx512_bf16") or found.get("amx_bf16"))
        return bool(cpu._is_avx512_bf16_supported())  # older torch has nothing public
    return False
