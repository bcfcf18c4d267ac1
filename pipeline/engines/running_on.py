"""What a started engine runs on, as far as its model's config and its device's name tell."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.core.devices import KNOWN, device_named
from pipeline.core.hardware import Architecture, Device, Hardware
from pipeline.engines.hardware.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.probe import measured_cpu
from pipeline.engines.vllm.settings import DeviceConfig

_ONE_BYTE = 1.0


def gpu_hardware(
    model: Mapping[str, Any],
    *,
    dtype: str,
    quantization: str | None,
    kv_dtype: str,
    name: str,
    devices: int,
    told: DeviceConfig,
) -> Hardware:
    """A model on so many GPUs that call themselves `name`; `told` is what the settings say of them."""
    architecture, unknown = _architecture(model, dtype, quantization, kv_dtype)
    fp8 = architecture is not None and architecture.bytes_per_weight == _ONE_BYTE
    device = _corrected(device_named(told.name or name, fp8=fp8), told)
    if device is None:
        unknown = (
            f"{name} is not known: give policy.device.bandwidth and policy.device.flops, or policy.device.name if it is one "
            f"of {', '.join(KNOWN)}"
        )
    return Hardware(architecture=architecture, device=device, devices=devices, unknown=unknown)


def cpu_hardware(model: Mapping[str, Any], *, dtype: str, kv_dtype: str, threads: int, told: DeviceConfig) -> Hardware:
    """A model on so many cores of this machine, which are measured: see `probe`."""
    architecture, unknown = _architecture(model, dtype, None, kv_dtype)
    return Hardware(
        architecture=architecture, device=_corrected(measured_cpu(dtype, threads), told), devices=1, unknown=unknown
    )


def planned_hardware(architecture: Architecture, devices: int, told: DeviceConfig) -> Hardware | None:
    """A model on devices that the settings tell of; None where they do not."""
    device = _corrected(device_named(told.name, fp8=architecture.bytes_per_weight == _ONE_BYTE), told)
    return None if device is None else Hardware(architecture=architecture, device=device, devices=devices)


def _corrected(device: Device | None, told: DeviceConfig) -> Device | None:
    """A device with what the settings say of it instead; None where neither tells enough."""
    if device is None:
        if told.bandwidth is None or told.flops is None:
            return None
        device = Device(name=told.name or "the device", bandwidth=told.bandwidth, flops=told.flops, memory=0.0)
    return replace(
        device,
        bandwidth=told.bandwidth or device.bandwidth,
        flops=told.flops or device.flops,
        memory=told.memory or device.memory,
    )


def _architecture(
    model: Mapping[str, Any], dtype: str, quantization: str | None, kv_dtype: str
) -> tuple[Architecture | None, str]:
    try:
        return architecture_of(model, dtype=dtype, quantization=quantization, kv_dtype=kv_dtype), ""
    except UnknownArchitecture as error:
        return None, str(error)
