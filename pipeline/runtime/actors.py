"""Workers as Ray actors. With `cluster`, the only file that imports ray.

Ray's own retries are off: the driver decides what is tried again, and by whom.
"""

import asyncio
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

from pipeline.config.label import LabelConfig
from pipeline.core.errors import EngineDied, StepvalueError, WorkerLost
from pipeline.core.failpoints import arm
from pipeline.engines.registry import policy_for
from pipeline.runtime.cluster import RunMetrics, cluster, share
from pipeline.runtime.placement import Share
from pipeline.runtime.worker import Receipt, Snapshot, UnitTask, Worker, engine_for
from pipeline.runtime.worker_handle import WorkerHandle, WorkerPool, no_watcher
from pipeline.storage.location import last_part, storage_at

SPARE_CALLS = 5
"""Concurrent calls an actor takes beside its units: snapshots, drain, stop and the one that waits for room."""
GC_THRESHOLDS = (100_000, 20, 50)
"""Allocations between two collections of the youngest objects, such collections between two of the next age, and so on."""
_CAUSE_CHARS = 300
_TAKEN_AWAY = ("its node has died", "node was terminated", "node is dead", "receives a SIGTERM")
"""Words of Ray 2.60 about an actor that died without a fault of its own. Until its node counts as dead, it is unavailable."""


class _Actor(Worker):
    def __init__(self, config: LabelConfig, *, cpus: int, attempt: int) -> None:
        arm(os.environ)
        assert config.run_dir is not None
        super().__init__(config, storage_at(config.run_dir), engine_for(config, cpus=cpus, attempt=attempt))

    async def start(self) -> str:
        policy = await super().start()
        # A unit's requests and rollouts live until it ends: to look through them, and all modules, again and again for
        # cycles takes a quarter of the worker's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        return policy


class _RayWorker:
    """An actor; see `worker_handle.WorkerHandle`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def start(self) -> str:
        return str(await _result(self._actor.start.remote()))

    async def wait_for_capacity(self, begun: int) -> None:
        await _result(self._actor.wait_for_capacity.remote(begun))

    async def label_unit(self, task: UnitTask) -> Receipt:
        receipt: Receipt = await _result(self._actor.label_unit.remote(task))
        return receipt

    async def owed(self, task: UnitTask) -> list[str]:
        return list(await _result(self._actor.owed.remote(task)))

    async def snapshot(self) -> Snapshot:
        snapshot: Snapshot = await _result(self._actor.snapshot.remote())
        return snapshot

    async def drain(self) -> None:
        await _result(self._actor.drain.remote())

    async def stop(self) -> None:
        await _result(self._actor.stop.remote())

    def kill(self) -> None:
        ray.kill(self._actor, no_restart=True)


@contextmanager
def ray_workers(config: LabelConfig) -> Iterator[WorkerPool]:
    """Join or start the cluster: how to hire workers that take their share of it, and how many. Raises ClusterError."""
    with cluster(config.cluster):
        policy = policy_for(config.policy)
        taken = share(config.cluster, policy)
        actor_class: Any = ray.remote(_Actor).options(
            num_cpus=taken.cpus,
            num_gpus=taken.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=config.run.units_in_flight + SPARE_CALLS,
            # All GPUs of an actor are of one node anyway; several actors share a node's processors only where they must.
            scheduling_strategy="SPREAD",
        )
        placed = replace(config, policy=policy.placed(taken.tensor_parallel))

        def hire(attempt: int) -> WorkerHandle:
            return _RayWorker(actor_class.remote(placed, cpus=max(1, int(taken.cpus)), attempt=attempt))

        yield WorkerPool(
            hire=hire,
            workers=taken.workers,
            devices=_devices(policy.devices(), config.plan.gpus, taken),
            # A private Ray offers no metrics to anybody.
            watch=RunMetrics(last_part(config.run_dir or "")) if config.cluster.address is not None else no_watcher,
        )


def _devices(elsewhere: int | None, stated: int | None, taken: Share) -> float:
    """Devices per worker: its own, or those that answer elsewhere, as many as is `stated` of."""
    if elsewhere is not None:
        return (stated or elsewhere) / taken.workers
    return taken.gpus or 1.0


async def _result(reference: Any) -> Any:
    """What a call returned. A worker's own errors come back as they were raised, a dead worker as EngineDied."""
    try:
        return await asyncio.wrap_future(reference.future())
    except RayTaskError as error:
        if isinstance(error.cause, StepvalueError):
            raise error.cause from None
        raise
    except RayActorError as error:
        raise (WorkerLost if was_taken_away(error) else EngineDied)(f"a worker died: {_cause(error)}") from error


def was_taken_away(error: RayActorError) -> bool:
    """Whether an actor went with its machine, or because it was told to: its node died, cannot be reached or is drained."""
    return (
        error.preempted or isinstance(error, ActorUnavailableError) or any(words in str(error) for words in _TAKEN_AWAY)
    )


def _cause(error: RayError) -> str:
    """What Ray says last: it begins with what any death looks like, and lists what the actor was called."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:_CAUSE_CHARS] if lines else type(error).__name__
