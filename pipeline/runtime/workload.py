"""What the workers of a run do: the settings that each gets, what a worker needs of its machine, and how one is made.

The driver of a run makes a `Workload` from its settings. `actors` turns it into workers on a Ray cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline.config.label import ClusterConfig
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.runtime.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """See the module. `model`: what the workers load. `settings`: number of GPUs over which a model is spread -> the settings
    that `make`, a function of a module, turns into a worker in another process. `planned_devices`: the number of devices that
    the settings state for an estimate of the wall time."""

    model: OnDevices
    settings: Callable[[int], Any]
    make: Callable[[Any, Surroundings], Worker]
    run_dir: str
    units_in_flight: int
    cluster: ClusterConfig
    planned_devices: int | None = None
