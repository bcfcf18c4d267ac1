"""Fixtures that several test files share."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What is slow is the first draw in a fresh checkout, and a machine that others use too; neither is a failure.
settings.register_profile("stepvalue", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stepvalue")

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is collected stays: looked through again and again for cycles, it takes two fifths longer, in every process."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that two processes that take a file each in turn end at about the same time."""
    slow = {item.path for item in items if any(item.get_closest_marker(name) for name in ("model", "ray"))}
    items.sort(key=lambda item: item.path not in slow)


@dataclass(frozen=True)
class Cluster:
    """A Ray head of this test session. `environment` holds what a client needs to be let in."""

    address: str
    dashboard: str
    environment: dict[str, str]


@pytest.fixture(scope="session")
def ray_head() -> Iterator[Cluster]:
    """A Ray cluster made by `ray start --head`, on the loopback interface."""
    port, dashboard_port, agent_port = _free_port(), _free_port(), _free_port()
    with tempfile.TemporaryDirectory(prefix="sv-ray-", dir="/tmp") as folder:  # Ray's sockets want a short path
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "stepvalue-tests-" + "0" * 32}
        environment = {**os.environ, **token}
        command = [
            str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats",
            "--node-ip-address=127.0.0.1", f"--port={port}", "--dashboard-host=127.0.0.1",
            f"--dashboard-port={dashboard_port}",
            # Ray gives every cluster of a machine the same one.
            f"--dashboard-agent-listen-port={agent_port}",
            "--num-cpus=2", "--object-store-memory=100000000", f"--temp-dir={folder}",
        ]  # fmt: skip
        with (Path(folder) / "head.log").open("wb") as log:
            head = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            try:
                _wait_for(port)
                _wait_for(dashboard_port)
                yield Cluster(
                    address=f"127.0.0.1:{port}",
                    dashboard=f"http://127.0.0.1:{dashboard_port}",
                    environment=token,
                )
            finally:
                head.send_signal(signal.SIGTERM)
                try:
                    head.wait(20)
                finally:
                    os.killpg(head.pid, signal.SIGKILL) if _alive(head.pid) else None


def run_stepvalue(
    arguments: Sequence[str], *, environment: dict[str, str] | None = None, timeout: float = 240
) -> "subprocess.CompletedProcess[str]":
    """The command line as a user starts it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def write_rows(path: Path, rows: Sequence[dict[str, object]]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port}")


def _alive(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True
