"""A Ray head on the loopback interface, made by `ray start --head` as a user's is."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
STORE_BYTES = 100_000_000
START_SECONDS = 90.0
STOP_SECONDS = 20.0
STARTED = "Ray runtime started"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "stepvalue-tests-" + "0" * 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """`environment` holds what a client needs to be let in."""

    address: str
    dashboard: str
    environment: dict[str, str]


@contextmanager
def ray_head(*, dashboard: bool) -> Iterator[Cluster]:
    """A cluster of one node with two CPUs; it is ended after the block. Raises TimeoutError with what Ray wrote."""
    port, dashboard_port = free_port(), free_port()
    dashboard_options = (
        [f"--dashboard-host={LOOPBACK}", f"--dashboard-port={dashboard_port}"]
        if dashboard
        else ["--include-dashboard=false"]
    )
    with tempfile.TemporaryDirectory(prefix="sv-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # Ray's sockets want a short path, so the folder stands right under /tmp.
        command = ray_start("--head", f"--port={port}", *dashboard_options, "--num-cpus=2", f"--temp-dir={folder}")
        written = Path(folder) / "head.log"
        with written.open("wb") as log:
            head = subprocess.Popen(
                command,
                env={**os.environ, **TOKEN},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            _wait_until_started(written, dashboard_port if dashboard else None)
            yield Cluster(
                address=f"{LOOPBACK}:{port}", dashboard=f"http://{LOOPBACK}:{dashboard_port}", environment=dict(TOKEN)
            )
        finally:
            head.send_signal(signal.SIGTERM)
            try:
                head.wait(STOP_SECONDS)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(head.pid, signal.SIGKILL)


def ray_start(*options: str, store_bytes: int = STORE_BYTES) -> list[str]:
    """The command that starts a node of a cluster on the loopback interface and waits until it ends."""
    return [
        str(Path(sys.executable).with_name("ray")),
        "start",
        "--block",
        "--disable-usage-stats",
        f"--node-ip-address={LOOPBACK}",
        f"--object-store-memory={store_bytes}",
        # By default Ray gives every node the same ports, so nodes of one machine would collide.
        f"--dashboard-agent-listen-port={free_port()}",
        "--min-worker-port=0",
        "--max-worker-port=0",
        *options,
    ]


def was_ended_by_ray(error: str) -> bool:
    """Whether a command says that Ray ended it while it joined, which a start of the same command mends."""
    return "was ended while it joined the Ray cluster" in error


def free_port() -> int:
    """A port of the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _wait_until_started(written: Path, dashboard_port: int | None) -> None:
    deadline = time.monotonic() + START_SECONDS
    while STARTED not in written.read_text() or (dashboard_port is not None and not _answers(dashboard_port)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"Ray did not start in {START_SECONDS:.0f} s: {written.read_text()[-2000:]}")
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
