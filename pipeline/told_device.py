"""What a user tells of a device (`policy.device`). Part of the settings in `config`."""

import math
from dataclasses import dataclass

from pipeline.devices import KNOWN, device_named
from pipeline.ranges import check


@dataclass(kw_only=True, slots=True)
class DeviceConfig:
    """What a device can do, where it is not known or not what its name says. It changes what is told of a run's speed, and over
    how many GPUs a model is spread, nothing else."""

    name: str = ""
    """One that `devices` knows, or any with `bandwidth` and `flops`."""
    bandwidth: float | None = None
    """Of the memory, in bytes/s."""
    flops: float | None = None
    """FLOP/s, dense, in the number format that the engine computes in."""
    memory: float | None = None
    """Bytes."""

    def __post_init__(self) -> None:
        for key, value in (("bandwidth", self.bandwidth), ("flops", self.flops), ("memory", self.memory)):
            check(value is None or 0 < value < math.inf, f"policy.device.{key}", value, "above 0")
        if self.name and device_named(self.name) is None and None in (self.bandwidth, self.flops):
            raise ValueError(
                f"policy.device.name={self.name} is not known: choose {', '.join(KNOWN)}, or give policy.device.bandwidth and "
                "policy.device.flops with it"
            )
