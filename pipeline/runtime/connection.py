"""Starts a private Ray on the loopback interface, or joins a cluster. Only this file, `cluster`, `metrics` and `actors` import
ray."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError
from pipeline.core.output import capture_output

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Object store of a private Ray in bytes. It only carries receipts, so it is little more than Ray's own minimum."""
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
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
