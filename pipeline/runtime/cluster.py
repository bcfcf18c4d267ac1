"""Joins or starts Ray, finds its resources, and exports metrics of a run. Only this file and `actors` import ray.

The progress of a run is part of the cluster's metrics: the agent of each node exports it to Prometheus as `ray_stepvalue_...`.
The metrics carry the name of the run and describe the current start; counters begin at 0 with each start.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.metrics import Counter, Gauge
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.formatting import format_count
from pipeline.core.hardware import hides_gpus
from pipeline.core.output import capture_output
from pipeline.core.progress import Status
from pipeline.engines.base import Policy
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

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Object store of a private Ray in bytes. It only carries receipts, so it is little more than Ray's own minimum."""
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
NODE_SECONDS = 60.0
"""How long a node may take to look at itself: it starts a process for that."""
T = TypeVar("T")
POLL_SECONDS = 0.5
"""Time between two looks at the nodes, while they are too few."""
PRIVATE_RAY = {
    # With Ray's default of 15, an engine waits for everything else that the machine does.
    "RAY_worker_niceness": "0",
    # Each of these costs the engine about one percent of a core: unused workers in reserve, and figures for a dashboard that
    # does not run.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_event_stats": "0",
}
"""Environment variables for the processes of a private Ray. A variable that is already set keeps its value."""
PREFIX = "stepvalue"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_JOINED = "joined"
_LAST_WORDS = """
import os, sys
address, joined = sys.argv[1:]
path, _, end = sys.stdin.read().partition("\\n")
if path and end != joined:
    with open(path, errors="replace") as written:
        words = "".join(each if each.isprintable() else " " for each in written.read()[-1000:]).strip()
    os.unlink(path)
    print(
        f"stepvalue: this command was ended while it joined the Ray cluster at {address}. If a node of the cluster has died "
        f"(`ray status`), restart the node; then start the same command again. Ray wrote: {words or 'nothing'}",
        file=sys.stderr,
    )
"""
_RUN = "run"
_GAUGES = {
    "units": "units of the run",
    "units_done": "units that are done",
    "prefixes": "prefixes of the units that have begun",
    "prefixes_decided": "prefixes that need no more rollouts",
    "grader_queue": "completions that wait for their verdict",
    "workers": "workers that are running",
}
_COUNTERS = {
    "rollouts_total": "finished rollouts",
    "tokens_total": "tokens of finished rollouts",
    "truncated_total": "rollouts that the token limit cut",
    "device_seconds_total": "device time that workers have used, in seconds",
}


@contextmanager
def cluster(config: ClusterConfig) -> Iterator[None]:
    """Join the given cluster, or start a private one on the loopback interface. Raises ClusterError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    reached = _check_answers(config.address)
    try:
        if config.address is None:
            for name, value in PRIVATE_RAY.items():
                os.environ.setdefault(name, value)
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                object_store_memory=OBJECT_STORE_BYTES,
            )
            _check_loopback()
        else:
            with _joining(config.address):
                ray.init(address=config.address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise ClusterError(_no_cluster(config.address, str(error), reached=reached)) from error
    try:
        yield
    finally:
        ray.shutdown()


def share(config: ClusterConfig, policy: Policy, check: Callable[[], None] = lambda: None) -> Share:
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
                    _print(f"waiting up to {config.wait_seconds:g} s (cluster.wait_seconds) for nodes to join: {error}")
            check()
            time.sleep(POLL_SECONDS)
    if unused := unused_gpus(nodes, found, config):
        _print(f"warning: {unused}")
    if config.address is not None and found.gpus and config.workers is None:
        _print(
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


def _why_no_gpu(nodes: Sequence[Node], config: ClusterConfig, policy: Policy) -> str:
    """What explains that Ray sees no GPU although workers need some, as the rest of a sentence. Empty if it sees some."""
    if any(node.get("GPU") for node in nodes) or not uses_gpus(nodes, config, policy):
        return ""
    if config.address is None and hides_gpus(os.environ.get(_VISIBLE, "all")):
        return f". {_VISIBLE}={os.environ[_VISIBLE]!r} hides the GPUs of this machine: unset it"
    where = "this machine" if config.address is None else "any node"
    return (
        f". Ray sees no GPU on {where}: check `nvidia-smi` and {_VISIBLE} there. To run on CPUs, install the cpu extra or set "
        "cluster.gpus_per_worker=0"
    )


def _print(line: str) -> None:
    sys.stderr.write(f"stepvalue: {line}\n")


def has_free_device(taken: Share) -> bool:
    """Whether the cluster has a GPU, or the share of one, that is free for another worker. False where workers use none."""
    return taken.gpus > 0 and bool(ray.available_resources().get("GPU", 0.0) >= taken.gpus)


def wanted_and_there(taken: Share) -> str:
    """A clause that says what a worker needs and what the cluster has, for a worker that waits."""
    have, free = ray.cluster_resources(), ray.available_resources()
    names = ("CPU", "GPU") if taken.gpus else ("CPU",)
    there = " and ".join(f"{free.get(name, 0.0):g} of {have.get(name, 0.0):g} {name}s" for name in names)
    needs = cpus_and_gpus(taken.cpus, taken.gpus)
    return f"each needs {needs} of one node, and {there} of {format_count(len(_nodes()), 'node')} are free"


class RunMetrics:
    """A watcher (see `worker_handle.Watcher`) that exports metrics, for a process that has joined a cluster.

    `run`: the name of the run in the metrics.
    """

    def __init__(self, run: str) -> None:
        self._sent: dict[str, float] = {}
        self._gauges = {name: Gauge(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _GAUGES.items()}
        self._counters = {name: Counter(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _COUNTERS.items()}
        self._requests = Gauge(f"{PREFIX}_requests", "requests at the engines, by state", (_RUN, "state"))
        self._verdicts = Counter(f"{PREFIX}_verdicts_total", "finished rollouts by verdict", (_RUN, "verdict"))
        for metric in (*self._gauges.values(), *self._counters.values(), self._requests, self._verdicts):
            metric.set_default_tags({_RUN: run})

    def __call__(self, status: Status) -> None:
        values = {
            "units": status.units,
            "units_done": status.units_done,
            "prefixes": status.prefixes,
            "prefixes_decided": status.prefixes_decided,
            "grader_queue": status.load.grading,
            "workers": status.workers,
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        for state, value in (("running", status.load.running), ("waiting", status.load.waiting)):
            self._requests.set(value, {"state": state})
        verdicts = asdict(status.verdicts)
        counts = {
            "rollouts_total": status.rollouts,
            "tokens_total": status.tokens,
            "truncated_total": verdicts.pop("truncated"),
            "device_seconds_total": status.device_seconds,
        }
        for name, count in counts.items():
            self._raise(self._counters[name], name, count)
        for verdict, count in verdicts.items():
            self._raise(self._verdicts, verdict, count, {"verdict": verdict})

    def _raise(self, counter: Counter, name: str, count: float, tags: dict[str, str] | None = None) -> None:
        """Raise a counter to `count`. Ray's counters take the increment."""
        new = count - self._sent.get(name, 0)
        if new > 0:
            counter.inc(new, tags)
            self._sent[name] = count


@contextmanager
def _joining(address: str) -> Iterator[None]:
    """Hide what Ray writes to standard error in the block, unless this process ends there.

    If a cluster refuses the connection, Ray writes a line per second, bypassing Python's logging, before it gives up; its
    exception says enough. But if a node of the cluster dies meanwhile, Ray's own code ends this process at once, and only what
    it wrote explains why.
    """
    # A separate process shows it, because no code of this process runs after such an end. Its standard input ends with ours.
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAST_WORDS, address, _JOINED], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        with capture_output([2]) as written:
            assert watcher.stdin is not None
            watcher.stdin.write(f"{written}\n".encode())
            watcher.stdin.flush()
            yield
    finally:
        watcher.communicate(_JOINED.encode())


def _check_loopback() -> None:
    address = ray.util.get_node_ip_address()
    if address != LOOPBACK:
        ray.shutdown()
        raise ClusterError(
            f"the private Ray would listen on {address} instead of only {LOOPBACK}: start the run through the command line, or "
            "name a cluster with cluster.address"
        )


def _check_answers(address: str | None) -> bool:
    """Whether an address is given. Raises ClusterError if nothing listens there; Ray itself would try for minutes."""
    named = _host_and_port(_running_cluster() if address == "auto" else address)
    if named is None:
        return False
    try:
        socket.create_connection(named, timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(_no_cluster(address, str(error), reached=False)) from error
    return True


def _running_cluster() -> str | None:
    """The address that `auto` means: the one in the environment, else that of the last `ray start` on this machine."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    with contextlib.suppress(OSError):
        return (Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster").read_text().strip()
    return None


def _host_and_port(address: str | None) -> tuple[str, int] | None:
    host, colon, port = (address or "").rpartition(":")
    return (host, int(port)) if colon and "/" not in host and port.isdecimal() else None


def _no_cluster(address: str | None, error: str, *, reached: bool) -> str:
    reason = " ".join(error.split())[:200]
    if address is None:
        return f"Ray cannot start on this machine: {reason}"
    if reached:
        return (
            f"cluster.address={address} answers, but refuses this client or does not run this version of Ray: set "
            f"RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the cluster's token (on its head: `ray get-auth-token`) ({reason})"
        )
    return (
        f"no Ray cluster answers at cluster.address={address}: start one with `ray start --head`, give its address, "
        f"or leave cluster.address out to use this machine alone ({reason})"
    )


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
