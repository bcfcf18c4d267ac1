"""Ray: joining or starting it, what it has, and what it tells of a run. With `actors`, the only file that imports ray.

A run's progress stands among a cluster's metrics: each node's agent offers its drivers' to Prometheus, as `ray_stepvalue_...`.
They carry the run's name, and are those of the start at work; counters begin at 0 with it.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import ray
from ray.util.metrics import Counter, Gauge

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.progress import Status
from pipeline.engines.base import Policy
from pipeline.engines.detected_hardware import is_cpu_build
from pipeline.engines.vllm.load_errors import capture_output
from pipeline.runtime.placement import Share, share_of

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""For a private Ray: it carries receipts only, so little more than Ray's own minimum."""
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
PRIVATE_RAY = {
    # Ray's own 15 makes an engine wait for whatever else the machine does.
    "RAY_worker_niceness": "0",
    # Of a core that the engine wants, each takes a percent: a worker in reserve, which nobody asks for, and figures for a
    # dashboard that is not there.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_event_stats": "0",
}
"""Settings of a private Ray in its processes' environment; one that is set already stays."""
PREFIX = "stepvalue"
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
        f"(`ray status`), start it anew; then start the same command again. Ray wrote: {words or 'nothing'}",
        file=sys.stderr,
    )
"""
_RUN = "run"
_GAUGES = {
    "units": "units of the run",
    "units_done": "units that are whole",
    "prefixes": "prefixes of the units that were begun",
    "prefixes_decided": "of these, those that are asked for no more",
    "grader_queue": "completions that wait for their verdict",
    "workers": "workers at work",
}
_COUNTERS = {
    "rollouts_total": "rollouts that have come in",
    "tokens_total": "their tokens",
    "truncated_total": "rollouts that the token limit cut",
    "device_seconds_total": "what workers took of devices",
}


@contextmanager
def cluster(config: ClusterConfig) -> Iterator[None]:
    """Join the cluster that is named, or start a private one on the loopback interface. Raises ClusterError."""
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


def share(config: ClusterConfig, policy: Policy) -> Share:
    """What each worker takes of the nodes that are alive; see `placement`. Raises ClusterError.

    GPUs that vLLM's build could not use count as none, so that workers get the CPUs.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if is_cpu_build() and config.gpus_per_worker is None:
        nodes = [{name: have for name, have in node.items() if name != "GPU"} for node in nodes]
    return share_of(nodes, config, policy)


class RunMetrics:
    """A watcher of a run, see `worker_handle.Watcher`; for a process that has joined a cluster. `run`: the name that metrics carry."""

    def __init__(self, run: str) -> None:
        self._sent: dict[str, float] = {}
        self._gauges = {name: Gauge(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _GAUGES.items()}
        self._counters = {name: Counter(f"{PREFIX}_{name}", text, (_RUN,)) for name, text in _COUNTERS.items()}
        self._requests = Gauge(f"{PREFIX}_requests", "requests at the engines", (_RUN, "state"))
        self._verdicts = Counter(f"{PREFIX}_verdicts_total", "rollouts by what they came to", (_RUN, "verdict"))
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
        """Have a counter stand at `count`; Ray's take what is new."""
        new = count - self._sent.get(name, 0)
        if new > 0:
            counter.inc(new, tags)
            self._sent[name] = count


@contextmanager
def _joining(address: str) -> Iterator[None]:
    """What Ray writes to standard error in the block is shown only if this process ends in it.

    Refused, Ray writes a line a second past Python's logging before it gives up, and its exception says enough. But where a
    node of the cluster dies meanwhile, Ray's own code ends this process at once, and what it wrote is all that tells why.
    """
    # Another process, for nothing of this one runs after such an end. Its standard input ends with us.
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
            f"the private Ray would listen on {address}, not on {LOOPBACK} alone: start it through the command line, or "
            "name a cluster with cluster.address"
        )


def _check_answers(address: str | None) -> bool:
    """Whether an address was named and something listens there. Ray itself tries for minutes where nobody does."""
    named = _host_and_port(_running_cluster() if address == "auto" else address)
    if named is None:
        return False
    try:
        socket.create_connection(named, timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ClusterError(_no_cluster(address, str(error), reached=False)) from error
    return True


def _running_cluster() -> str | None:
    """The address that `auto` stands for: the one in the environment, else that of the last `ray start` here."""
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
            f"what answers at cluster.address={address} does not let this client in, or is no Ray of this version: set "
            f"RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the cluster's token (on its head: `ray get-auth-token`) ({reason})"
        )
    return (
        f"no Ray cluster answers at cluster.address={address}: start one with `ray start --head`, give its address, "
        f"or leave cluster.address out to use this machine alone ({reason})"
    )
