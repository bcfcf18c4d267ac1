"""What an engine runs on, and how far it is from what that can do: frozen records; and what devices can do at best, by the name
that NVML or Ray gives them.

Figures are those of NVIDIA's data sheets: memory in GB of 10^9 bytes, FLOP/s of the tensor cores without sparsity (where a data
sheet states them with it, half of that).
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """The sizes of a decoder-only transformer, as far as its speed depends on them.

    `body` counts the parameters of all layers outside of their experts, `experts` those of all experts; of the latter a token
    uses `expert_share`. Embeddings have `vocab` x `hidden` parameters, twice where the output layer is not `tied` to them.
    Norms and biases, below 0.1 %, are left out. Bytes are those of one weight of a layer, of one weight of the embeddings,
    which quantisation leaves alone, and of one element of the KV cache. `windowed_layers` look back `window` tokens at most.
    `context` is the longest the model was made for, in tokens.
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
    """What one device can do at best: `bandwidth` of its memory in bytes/s, dense FLOP/s in the engine's number format, and its
    memory in bytes."""

    name: str
    bandwidth: float
    flops: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What one engine runs on: a model on `devices` equal devices. What is None is not known, and `unknown` says why, and what
    to do, in one line for the user."""

    architecture: Architecture | None = None
    device: Device | None = None
    devices: int = 1
    unknown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """How fast the engines of a run were, and how fast they could have been.

    `tokens_per_second` are those of `engines` engines together. `batch`: sequences per forward pass on average, None for
    engines that count no passes, and `context`: tokens in front of a generated one. `share`: what the hardware would have
    needed at least for this decoding at this batch and context, over the time that it took; `prefill_share`: the same for the
    prompts that were computed, which comes on top. None where `hardware` does not tell. `prefill_ratio`: prompt tokens computed
    over distinct ones, None where that is not known. `idle` is the share of all places for requests, over all time, that stood
    empty while nothing waited, and `tail` the part of it after the last input was handed out. `grading`: the time of verdicts
    over that of the engines.
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
