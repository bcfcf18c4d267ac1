"""Frozen records of an engine's hardware and throughput, and the peak figures of known devices by the names of NVML and Ray.

The figures come from NVIDIA's data sheets: memory in GB (10^9 bytes) and FLOP/s of the tensor cores without sparsity. Where a
data sheet states FLOP/s with sparsity, the figure here is half of that. Pure.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The sizes of a decoder-only transformer that determine its speed.

    `body` counts the parameters of all layers without their experts, `experts` those of all experts. One token uses the share
    `expert_share` of the experts. The embeddings have `vocab` x `hidden` parameters, twice that if the output layer is not
    `tied` to them. Norms and biases (below 0.1 %) are left out. The byte counts are per weight of a layer, per weight of the
    embeddings (which quantisation does not change) and per element of the KV cache. `windowed_layers` attend to at most
    `window` tokens. `context` is the longest supported context in tokens.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    body: int
    bytes_per_weight: float
    bytes_per_embedding: float
    bytes_per_kv: float
    context: int
    experts: int = 0
    expert_share: float = 1.0
    windowed_layers: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The peak figures of one device: memory `bandwidth` in bytes/s, dense FLOP/s in the engine's number format, `memory` in
    bytes."""

    name: str
    bandwidth: float
    flops: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The hardware of one engine: a model on `devices` equal devices. None means unknown; `unknown` then says in one line why,
    and what the user can do."""

    architecture: Architecture | None = None
    device: Device | None = None
    devices: int = 1
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The speed of a run's engines, and how close it was to the limit of the hardware.

    `tokens_per_second`: the sum over `engines` engines. `batch`: mean number of sequences per forward pass; None for engines
    that do not count passes. `context`: mean number of tokens before a generated token. `share`: the least time that the
    hardware needs for this decoding at this batch and context, divided by the time that it took. `prefill_share`: the same for
    the computed prompts, in addition to `share`. Both are None if `hardware` is not known well enough. `prefill_ratio`:
    computed prompt tokens divided by distinct prompt tokens; None if unknown. `idle`: share of the engines' request slots, over
    time, that were empty while no request waited; `tail`: the part of `idle` after the last unit was given out. `grading`:
    time spent on verdicts divided by the time of the engines.
    """

    hardware: Hardware
    engines: float
    tokens_per_second: float
    batch: float | None
    context: float
    idle: float
    grading: float
    tail: float | None = None
    prefill_ratio: float | None = None
    share: float | None = None
    prefill_share: float | None = None


_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A device: TB/s, dense TFLOP/s in bfloat16 and in FP8 (0: no FP8), GB. `pattern` matches its name."""

    name: str
    pattern: str
    bandwidth: float
    flops: float
    flops_fp8: float
    memory: float


# The first match counts, so a plain "H100" comes after its variants.
_MODELS = (
    # NVIDIA H200 Tensor Core GPU data sheet
    _Model(name="H200 NVL", pattern="H200 NVL", bandwidth=4.8, flops=835, flops_fp8=1671, memory=141),
    _Model(name="H200 SXM", pattern="H200", bandwidth=4.8, flops=989, flops_fp8=1979, memory=141),
    # NVIDIA H100 Tensor Core GPU data sheet
    _Model(name="H100 NVL", pattern="H100 NVL", bandwidth=3.9, flops=835, flops_fp8=1671, memory=94),
    _Model(name="H100 PCIe", pattern="H100 PCIE", bandwidth=2.0, flops=756, flops_fp8=1513, memory=80),
    _Model(name="H100 SXM", pattern="H100", bandwidth=3.35, flops=989, flops_fp8=1979, memory=80),
    # NVIDIA A100 Tensor Core GPU data sheets, of 40 GB and of 80 GB
    _Model(name="A100 80GB PCIe", pattern="A100 (PCIE 80GB|80GB PCIE)", bandwidth=1.935, flops=312, flops_fp8=0, memory=80),
    _Model(name="A100 80GB SXM", pattern="A100 (SXM4 )?80GB?", bandwidth=2.039, flops=312, flops_fp8=0, memory=80),
    _Model(name="A100 40GB", pattern="A100", bandwidth=1.555, flops=312, flops_fp8=0, memory=40),
    # NVIDIA L40S data sheet
    _Model(name="L40S", pattern="L40S", bandwidth=0.864, flops=362, flops_fp8=733, memory=48),
)  # fmt: skip

KNOWN = tuple(model.name for model in _MODELS)


def device_named(name: str, *, fp8: bool = False) -> Device | None:
    """The device that a driver or a user names; None if unknown. Parts of a device (MIG) are unknown.

    FLOP/s are those in bfloat16, or with `fp8` those in FP8 if the device supports it.
    """
    plain = _plain(name)
    found = next((model for model in _MODELS if re.search(rf"\b({model.pattern})\b", plain)), None)
    if found is None or " MIG " in plain:
        return None
    return Device(
        name=found.name,
        bandwidth=found.bandwidth * _TERA,
        flops=(found.flops_fp8 if fp8 and found.flops_fp8 else found.flops) * _TERA,
        memory=found.memory * _GIGA,
    )


def least_memory(accelerator: str) -> float | None:
    """Memory in bytes of the smallest device that an `accelerator_type` of Ray can mean; None if unknown.

    Ray's name does not distinguish the variants of a device.
    """
    family = re.compile(rf"{re.escape(_plain(accelerator))}B?\b")
    sizes = [model.memory for model in _MODELS if family.match(_plain(model.name))]
    return min(sizes) * _GIGA if sizes else None


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]+", " ", name).upper()


VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def hides_gpus(visible: str) -> bool:
    """Whether this value of CUDA_VISIBLE_DEVICES names no GPU."""
    return visible.strip() in ("", "-1")
