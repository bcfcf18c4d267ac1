"""Workers as Ray actors. Only this file, `cluster`, `connection` and `metrics` import ray.

Ray's own retries are off: the driver decides what is retried, and on which worker.
"""

import asyncio
import gc
import os
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import ray
from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

from pipeline.core.errors import ClusterError, EngineDied, PlaceError, StepvalueError, WorkerLost
from pipeline.core.failpoints import arm
from pipeline.engines.base import Surroundings
from pipeline.runtime.chain_run.task import Task
from pipeline.runtime.cluster import has_free_device, share, wanted_and_there
from pipeline.runtime.connection import cluster
from pipeline.runtime.environment import forwarded, without_secrets
from pipeline.runtime.metrics import RunMetrics
from pipeline.runtime.objects import Packed, objects_here, offered, packed
from pipeline.runtime.placement import Share
from pipeline.runtime.worker import Worker
from pipeline.runtime.worker_handle import WorkerHandle, WorkerLocation, WorkerPool, no_watcher
from pipeline.storage.location import last_part

SPARE_CALLS = 5
"""Concurrent calls of an actor besides its units: snapshots, drain, stop and the call that waits for capacity."""
GC_THRESHOLDS = (100_000, 20, 50)
"""Thresholds of the garbage collector for the three generations, see `gc.set_threshold`."""
_CAUSE_CHARS = 300
_OTHER_PACKAGE = ("No module named 'pipeline", "from 'pipeline", "module 'pipeline")
_NOT_OURS = (
    "the worker's machine has no stepvalue, or its Python finds another package `pipeline` first: install stepvalue there, and "
    "look at PYTHONPATH of its `ray start`"
)
_HUB_TOKEN = "HF_TOKEN"
_TAKEN_AWAY = ("its node has died", "node was terminated", "node is dead", "receives a SIGTERM")
"""Phrases in Ray 2.60's messages about an actor that was lost with its node. Until Ray declares the node dead, the actor is
unavailable."""


_OWNER_DIED = "its owner has died"
"""A phrase in Ray 2.60's messages about an actor whose driver was taken for dead, as it is where its node died."""


class _Actor(Worker):
    """A worker in a process of its own. `sent`: the kind of its task, with settings."""

    def __init__(self, sent: Packed, around: Surroundings, secrets: Mapping[str, str]) -> None:
        os.environ.update(secrets)
        arm(os.environ)
        objects, (kind, config) = sent.unpacked()
        # For as long as this process lives.
        self._objects = offered(objects)
        self._objects.__enter__()
        self._shares_gpu = 0 < around.gpus < 1
        task: Task[Any] = kind(config)
        work = task.work(replace(around, log_folder=_log_folder()))
        super().__init__(work, task.storage(), config.run.flush_seconds)

    async def location(self) -> WorkerLocation:
        context = ray.get_runtime_context()
        gpus = tuple(context.get_accelerator_ids().get("GPU", ()))
        return WorkerLocation(
            machine=ray.util.get_node_ip_address(), node_id=context.get_node_id(), gpus=gpus, shared=self._shares_gpu
        )

    async def start(self) -> str:
        try:
            model = await super().start()
        except StepvalueError:
            raise
        except Exception as error:
            # A full disk, a broken library: another place may do.
            raise PlaceError(f"a worker cannot start here: {type(error).__name__}: {error}") from error
        # The requests and rollouts of a unit live until it ends. Searching them, and all modules, for reference cycles again
        # and again would take a quarter of the worker's time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        return model


def _log_folder() -> str | None:
    """The folder of the logs of Ray's session: Ray sends standard output of this process to a file there."""
    try:
        file = Path("/proc/self/fd/1").readlink()
    except OSError:
        return None
    return str(file.parent) if file.parent.name == "logs" and file.is_file() else None


class _RayWorker:
    """An actor; see `worker_handle.WorkerHandle`. Its errors are raised without the values of `secrets`."""

    def __init__(self, actor: Any, secrets: Collection[str]) -> None:
        self._actor = actor
        self._secrets = secrets

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """All but `kill` happens in the actor."""

        async def called(*arguments: object) -> Any:
            return await _result(getattr(self._actor, name).remote(*arguments), self._secrets)

        return called

    def kill(self) -> None:
        ray.kill(self._actor, no_restart=True)


@contextmanager
def ray_workers(task: Task[Any], check: Callable[[], None] = lambda: None) -> Iterator[WorkerPool]:
    """Join or start the cluster, and yield the pool that creates workers on it. `check` is called while nodes are waited for.

    Raises ClusterError, UsageError, and what `check` raises.
    """
    with cluster(task.config.cluster, check):
        model, config = task.model(), task.config
        taken = share(config.cluster, model, check)
        variables = forwarded(os.environ)
        # The nodes of a private Ray have the environment of this process already.
        elsewhere = config.cluster.address is not None
        sent = {**variables.secret, **_login()} if elsewhere else {}
        actor_class: Any = ray.remote(_Actor).options(
            runtime_env={"env_vars": dict(variables.plain)} if elsewhere and variables.plain else None,
            num_cpus=taken.cpus,
            num_gpus=taken.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=config.run.units_in_flight + SPARE_CALLS,
            # All GPUs of an actor are on one node in any case. Several actors share the CPUs of a node only if they must.
            scheduling_strategy="SPREAD",
        )
        secrets = tuple({**variables.secret, **sent}.values())
        placed = packed(objects_here(), (type(task), task.spread(taken.tensor_parallel)))

        def hire(attempt: int) -> WorkerHandle:
            around = Surroundings(cpus=max(1, int(taken.cpus)), attempt=attempt, gpus=taken.gpus)
            return cast(WorkerHandle, _RayWorker(actor_class.remote(placed, around, sent), secrets))

        yield WorkerPool(
            hire=hire,
            workers=taken.workers,
            devices=_devices(model.devices(), task.planned_devices(), taken),
            wait_seconds=config.cluster.wait_seconds,
            resources=partial(wanted_and_there, taken),
            has_free_device=partial(has_free_device, taken),
            # A private Ray does not export metrics.
            watch=RunMetrics(last_part(task.storage().run_dir)) if elsewhere else no_watcher,
        )


def _login() -> Mapping[str, str]:
    """`HF_TOKEN` with the token of `hf auth login`, where the environment has none: it lies in a file of this machine."""
    if os.environ.get(_HUB_TOKEN):
        return {}
    try:
        from huggingface_hub import get_token

        token = get_token()
    except Exception:  # noqa: BLE001  most models need no token, and a worker that needs one says so
        return {}
    return {_HUB_TOKEN: token} if token else {}


def _devices(elsewhere: int | None, stated: int | None, taken: Share) -> float:
    """Devices per worker: its own GPUs (1 without a GPU), or its part of the devices elsewhere, which `stated` may override."""
    if elsewhere is not None:
        return (stated or elsewhere) / taken.workers
    return taken.gpus or 1.0


async def _result(reference: Any, secrets: Collection[str]) -> Any:
    """The result of a call. A dead worker raises EngineDied or WorkerLost, others their own errors without `secrets`."""
    try:
        return await asyncio.wrap_future(reference.future())
    except RayTaskError as error:
        if isinstance(error.cause, StepvalueError):
            message = str(error.cause)
            hidden = without_secrets(message, secrets)
            raise error.cause if hidden == message else type(error.cause)(hidden) from None
        raise
    except RayActorError as error:
        cause = without_secrets(_cause(error), secrets)
        if is_cut_off(error):
            raise ClusterError(
                "Ray's process on this machine (raylet) has died, and this command can reach no worker without it: start the "
                f"same command again ({cause})"
            ) from error
        raise (WorkerLost if was_taken_away(error) else EngineDied)(f"a worker died: {cause}") from error


def was_taken_away(error: RayActorError) -> bool:
    """Whether an actor was lost with its machine: its node died, cannot be reached or is drained."""
    return (
        error.preempted or isinstance(error, ActorUnavailableError) or any(words in str(error) for words in _TAKEN_AWAY)
    )


def is_cut_off(error: RayActorError) -> bool:
    """Whether an actor was ended because the node of this process has died. No new one can be created then."""
    return _OWNER_DIED in str(error)


def _cause(error: RayError) -> str:
    """The last line of Ray's message. The lines before it are the same for every death and list the names of the actor."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = lines[-1][:_CAUSE_CHARS] if lines else type(error).__name__
    return f"{cause}; {_NOT_OURS}" if any(words in cause for words in _OTHER_PACKAGE) else cause
