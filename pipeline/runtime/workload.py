"""What the workers of a run do: the settings that each gets, what a worker needs of its machine, and how one is made.

The driver of a run makes a `Workload` from its settings. `actors` turns it into workers on a Ray cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pipeline.config.label import ClusterConfig, LabelConfig
from pipeline.engines.base import OnDevices, Surroundings
from pipeline.engines.registry import policy_for
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask, labelling_worker


class UnitWorker(Protocol):
    """A worker in its own process: it does what units still need, and writes their files itself."""

    async def fetch(self) -> None:
        """Download to this machine what the worker loads. Raises PolicyError."""
        ...

    async def start(self) -> str:
        """Load the model and return its identity. Raises PolicyError."""
        ...

    async def wait_for_capacity(self, begun: int) -> None:
        """Return when the worker needs another unit to stay busy, but not before `begun` units have arrived."""
        ...

    async def finish_unit(self, task: UnitTask) -> Receipt:
        """Do what a unit still needs and commit its files. Raises EngineDied if the engine stopped working, and StoreError."""
        ...

    async def missing_requests(self, task: UnitTask) -> list[str]:
        """Ids of what a unit needs next from the engine; an empty list if it is whole."""
        ...

    async def snapshot(self) -> Snapshot: ...

    async def drain(self) -> None:
        """Commit all finished results. Raises StoreError."""
        ...

    async def stop(self) -> None:
        """Free the device."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """See the module. `model`: what the workers load. `settings`: number of GPUs over which a model is spread -> the settings
    that `make`, a function of a module, turns into a worker in another process. `planned_devices`: the number of devices that
    the settings state for an estimate of the wall time."""

    model: OnDevices
    settings: Callable[[int], Any]
    make: Callable[[Any, Surroundings], UnitWorker]
    run_dir: str
    units_in_flight: int
    cluster: ClusterConfig
    planned_devices: int | None = None


def labelling(config: LabelConfig) -> Workload:
    """What the workers of `label` do. Raises UsageError for a policy that is not installed."""
    policy = policy_for(config.policy)
    return Workload(
        model=policy,
        settings=lambda parts: replace(config, policy=policy.with_tensor_parallel(parts)),
        make=labelling_worker,
        run_dir=config.run_dir or "",
        units_in_flight=config.run.units_in_flight,
        cluster=config.cluster,
        planned_devices=config.plan.gpus,
    )
