"""The resources and the nodes of the cluster that this process has joined. Only this file, `connection`, `metrics` and `actors`
import ray."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.formatting import format_count
from pipeline.core.hardware import VISIBLE_DEVICES, hides_gpus
from pipeline.core.output import say
from pipeline.engines.base import OnDevices
from pipeline.runtime.placement import (
    Node,
    Share,
    cpus_and_gpus,
    demand,
    resources_of,
    share_of,
    unused_gpus,
    uses_gpus,
)

NODE_SECONDS = 60.0
"""How long a node may take to look at itself: it starts a process for that."""
T = TypeVar("T")
POLL_SECONDS = 0.5
"""Time between two looks at the nodes, while they are too few."""


def share(config: ClusterConfig, policy: OnDevices, check: Callable[[], None] = lambda: None) -> Share:
    """The resources of each worker on the nodes that are alive; see `placement`.

    Where a cluster is named and its nodes are too few, ask its autoscaler for more and wait up to `cluster.wait_seconds` for
    nodes to join. `check` is called meanwhile and may raise. Raises ClusterError and UsageError.
    """
    deadline = time.monotonic() + (0 if config.address is None else config.wait_seconds)
    shown = ""
    with contextlib.ExitStack() as asked:
        while True:
            nodes = _nodes()
            try:
                found = share_of(nodes, config, policy)
                break
            except ClusterError as error:
                if time.monotonic() >= deadline:
                    raise ClusterError(f"{error}{_why_no_gpu(nodes, config, policy)}") from error
                if not shown:
                    asked.enter_context(_asked_for(*demand(config, policy, nodes)))
                if shown != (shown := resources_of(nodes)):
                    say(f"waiting up to {config.wait_seconds:g} s (cluster.wait_seconds) for nodes to join: {error}")
            check()
            time.sleep(POLL_SECONDS)
    if unused := unused_gpus(nodes, found, config):
        say(f"warning: {unused}")
    if config.address is not None and found.gpus and config.workers is None:
        say(
            f"{format_count(found.workers, 'worker')} on {resources_of(nodes)}; nodes that join later are not used: set "
            "cluster.workers to wait for them"
        )
    return found


def _nodes() -> list[Node]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


@contextmanager
def _asked_for(worker: Node, workers: int) -> Iterator[None]:
    """Have the cluster's autoscaler add nodes for this number of workers. Without one, nothing happens."""
    # A pending placement group is demand that ends with this process. `request_resources` would replace the request of others.
    group = placement_group([dict(worker)] * workers, strategy="SPREAD")
    try:
        yield
    finally:
        remove_placement_group(group)


def _why_no_gpu(nodes: Sequence[Node], config: ClusterConfig, policy: OnDevices) -> str:
    """What explains that Ray sees no GPU although workers need some, as the rest of a sentence. Empty if it sees some."""
    if any(node.get("GPU") for node in nodes) or not uses_gpus(nodes, config, policy):
        return ""
    if config.address is None and hides_gpus(os.environ.get(VISIBLE_DEVICES, "all")):
        return f". {VISIBLE_DEVICES}={os.environ[VISIBLE_DEVICES]!r} hides the GPUs of this machine: unset it"
    where = "this machine" if config.address is None else "any node"
    return (
        f". Ray sees no GPU on {where}: check `nvidia-smi` and {VISIBLE_DEVICES} there. To run on CPUs, install the cpu extra "
        "or set cluster.gpus_per_worker=0"
    )


def has_free_device(taken: Share) -> bool:
    """Whether the cluster has a GPU, or the share of one, that is free for another worker. False where workers use none."""
    return 0 < taken.gpus <= free_gpus()


def free_gpus() -> float:
    """The number of GPUs of the cluster that no worker has."""
    return float(ray.available_resources().get("GPU", 0.0))


def wanted_and_there(taken: Share) -> str:
    """A clause that says what a worker needs and what the cluster has, for a worker that waits."""
    have, free = ray.cluster_resources(), ray.available_resources()
    names = ("CPU", "GPU") if taken.gpus else ("CPU",)
    there = " and ".join(f"{free.get(name, 0.0):g} of {have.get(name, 0.0):g} {name}s" for name in names)
    needs = cpus_and_gpus(taken.cpus, taken.gpus)
    return f"each needs {needs} of one node, and {there} of {format_count(len(_nodes()), 'node')} are free"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAnswer(Generic[T]):
    """What a node answered. `resources`: those of Ray there. `result` is None if the node gave none within NODE_SECONDS, or
    could not call the function. `arrived`: when, in seconds since 1970."""

    host: str
    resources: Mapping[str, float]
    result: T | None
    arrived: float


def on_every_node(
    function: Callable[..., T],
    *arguments: object,
    variables: Mapping[str, str] | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[NodeAnswer[T]]:
    """Call a function once on every living node, in processes of their own that take no resources and have the environment
    `variables` besides that of their node. `check` is called meanwhile and may raise."""
    asked = {}
    for node in (node for node in ray.nodes() if node["Alive"]):
        task = ray.remote(function).options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node["NodeID"], soft=False),
            runtime_env={"env_vars": dict(variables)} if variables else None,
        )
        asked[task.remote(*arguments)] = node
    deadline = time.monotonic() + NODE_SECONDS
    waiting, found = list(asked), list[NodeAnswer[T]]()

    def answer(call: Any, result: T | None) -> NodeAnswer[T]:
        node = asked[call]
        host, resources = str(node["NodeManagerHostname"]), node["Resources"]
        return NodeAnswer(host=host, resources=resources, result=result, arrived=time.time())

    while waiting and time.monotonic() < deadline:
        check()
        ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
        found += [answer(each, _result_or_none(each)) for each in ready]
    return [*found, *(answer(each, None) for each in waiting)]


def _result_or_none(call: Any) -> Any:
    try:
        return ray.get(call)
    except RayError:
        return None
