"""Over how many devices of a node a model is spread: over as few as hold it and leave it room to work.

Copies of a model work without each other, the parts of one exchange what every layer made: one device per copy where that
is enough.
"""

from pipeline.core.hardware import Architecture
from pipeline.engines.hardware.roofline import kv_bytes, weight_bytes

WORKSPACE_BYTES = 2e9
"""What vLLM needs on every device beside weights and KV cache, for activations and CUDA graphs."""
ROOM_FOR = 0.25
"""The share of all sequences that the KV cache has to hold at once: with fewer an engine spends its time reading weights."""
SEQUENCES = 256
"""Taken where no setting says how many run at once. Large devices run more where their memory holds them, which is no reason to
spread a model that fits on one."""
SEQUENCE_TOKENS = 1024
"""What a sequence is taken to hold on average: a problem, a chain and its completion."""


def least_devices(
    architecture: Architecture,
    *,
    memory: float,
    share: float,
    at_most: int,
    sequences: int | None = None,
    context: int | None = None,
) -> int | None:
    """The smallest power of two of devices, each with `memory` bytes of which the engine may take a `share`, that holds the
    model and the KV cache of a quarter of the `sequences`, and of one that fills the `context`. None where `at_most` devices do
    not.

    Heads are dealt out whole. Where there are more devices than KV heads, several hold the same.
    """
    longest = context or architecture.context
    typical = ROOM_FOR * (sequences or SEQUENCES) * kv_bytes(architecture, min(SEQUENCE_TOKENS, longest))
    cache = max(typical, kv_bytes(architecture, longest))
    devices = 1
    while devices <= at_most:
        if divides(architecture, devices):
            per_device = weight_bytes(architecture) / devices + cache / min(devices, architecture.kv_heads)
            if per_device + WORKSPACE_BYTES <= share * memory:
                return devices
        devices *= 2
    return None


def divides(architecture: Architecture, devices: int) -> bool:
    """Whether vLLM can deal a model's heads out to so many devices."""
    few, many = sorted((architecture.kv_heads, devices))
    return architecture.heads % devices == 0 and many % few == 0
