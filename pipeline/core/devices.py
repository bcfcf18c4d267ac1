"""What devices can do at best, by the name that NVML or Ray gives them.

Figures are those of NVIDIA's data sheets: memory in GB of 10^9 bytes, FLOP/s of the tensor cores without sparsity (where a data
sheet states them with it, half of that).
"""

import re
from dataclasses import dataclass

from pipeline.core.hardware import Device

_TERA, _GIGA = 1e12, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A device: TB/s, dense TFLOP/s in bfloat16 and in FP8 (0: it has none), GB; `pattern` finds it in a name."""

    name: str
    pattern: str
    bandwidth: float
    flops: float
    flops_fp8: float
    memory: float


# The first that matches counts: a plain "H100" behind its variants.
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
    """The device that a driver or a user names, with its FLOP/s in bfloat16 or, where it has them, in FP8; None: unknown.

    Parts of a device (MIG) are unknown.
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
    """Bytes of the smallest device that Ray may mean by an `accelerator_type`, which leaves variants out; None: unknown."""
    family = re.compile(rf"{re.escape(_plain(accelerator))}B?\b")
    sizes = [model.memory for model in _MODELS if family.match(_plain(model.name))]
    return min(sizes) * _GIGA if sizes else None


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]+", " ", name).upper()
