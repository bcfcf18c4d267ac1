"""Joining a Ray cluster."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError, Interrupted
from pipeline.engines.registry import policy_for
from pipeline.runtime import cluster, connection
from pipeline.runtime.connection import LOOPBACK
from tests.conftest import ROOT
from tests.settings import policy_settings

pytestmark = pytest.mark.slow

ADDRESS = "127.0.0.1:6379"
WITHOUT_GPU = [{"Alive": True, "Resources": {"CPU": 16.0}}]
ONE_GPU = [{"Alive": True, "Resources": {"CPU": 16.0, "GPU": 1.0}}]


def join(body: str) -> "subprocess.CompletedProcess[str]":
    """A process of its own that does `body` while it joins a cluster."""
    block = textwrap.indent(textwrap.dedent(body), "    ")
    name = "_quiet_unless_ended"
    code = f"import os\nfrom pipeline.runtime.connection import {name}\nwith {name}({ADDRESS!r}):\n{block}"
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_process_that_ray_ends_reports_what_ray_wrote() -> None:
    ended = join(r"""
        os.write(2, b"[E] Failed to register worker to Raylet: \x1b[31mEnd of file\n")
        os._exit(1)
    """)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"stepvalue: this command was ended while it joined the Ray cluster at {ADDRESS}")
    assert "Failed to register worker to Raylet" in line
    assert line.isprintable()
    assert "start the same command again" in line


def test_a_silent_end_is_reported_too() -> None:
    assert "Ray wrote: nothing" in join("os._exit(1)").stderr


def test_what_ray_writes_before_it_is_in_or_refused_is_kept_away() -> None:
    assert join(r"os.write(2, b'one retry\n')").stderr == ""
    refused = join(r"os.write(2, b'one retry\n'); raise ConnectionError('no')")
    assert refused.stderr.count("ConnectionError") == 1
    assert "one retry" not in refused.stderr
    assert "was ended while" not in refused.stderr


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that does this with each connection."""
    open_connections = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    open_connections.append(connection)
                    talk(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def listening(says: bytes) -> AbstractContextManager[int]:
    """It says this to everybody, and nothing else."""
    return serving(lambda connection: connection.sendall(says))


def dripping(seconds: float) -> AbstractContextManager[int]:
    """It says one byte of HTTP/2 at a time."""

    def talk(connection: socket.socket) -> None:
        while True:
            time.sleep(seconds)
            connection.sendall(b"\0")

    return serving(talk)


HTTP2 = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("says", "reason"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else than Ray listens there"), (b"", "no answer within 0.5 s")],
)
def test_a_stranger_at_the_address_is_noticed_at_once(
    says: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    with (
        listening(says) as port,
        pytest.raises(ClusterError, match=rf"no Ray cluster answers at cluster.address=127.0.0.1:{port}: .*{reason}"),
        connection.cluster(ClusterConfig(address=f"127.0.0.1:{port}")),
    ):
        raise AssertionError("joined")


@pytest.mark.parametrize("name", ["RAY_TMPDIR", "TMPDIR"])
def test_auto_is_resolved_and_named(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ClusterError, match="no `ray start` on this machine, and RAY_ADDRESS is not set"):
        connection._resolved("auto")
    with listening(b"") as port:
        (tmp_path / "ray").mkdir()
        (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}\n")
        with (
            pytest.raises(ClusterError, match=rf"cluster.address=auto \(127.0.0.1:{port}\)"),
            connection.cluster(ClusterConfig(address="auto")),
        ):
            raise AssertionError("joined")
        monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
        assert connection._resolved("auto") == "10.0.0.1:6379"
    assert connection._resolved("head:6379") == "head:6379"


JOIN = """
import sys
from pipeline.cli.workers import set_up_ray
set_up_ray(sys.argv[1])
from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError, Interrupted
from pipeline.runtime import connection
from pipeline.runtime.stop import StopSignal
connection.JOIN_SECONDS = float(sys.argv[2])
stop = StopSignal()
stop.listen()
print("joining", flush=True)
try:
    with connection.cluster(ClusterConfig(address=sys.argv[1]), stop.check):
        print("joined")
except (ClusterError, Interrupted) as error:
    print(type(error).__name__, error)
"""


def joining(port: int, seconds: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", JOIN, f"127.0.0.1:{port}", str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "joining\n"
    return process


def test_a_server_that_never_lets_this_process_in_is_given_up() -> None:
    with listening(HTTP2) as port:
        said, _ = joining(port, 3.0).communicate(timeout=60)
    assert said.startswith("ClusterError the Ray cluster at cluster.address=127.0.0.1:")
    assert "has not let this process in after 3 s: check `ray status`" in said


@pytest.mark.parametrize(
    ("server", "seconds", "number"),
    [
        (listening(HTTP2), 2.0, signal.SIGINT),  # it is in Ray's code then
        (listening(HTTP2), 2.0, signal.SIGTERM),
        (dripping(4.0), 1.0, signal.SIGTERM),
    ],
)
def test_signals_end_the_wait_for_a_cluster(
    server: AbstractContextManager[int], seconds: float, number: signal.Signals
) -> None:
    with server as port:
        process = joining(port, 600.0)
        time.sleep(seconds)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert said.startswith("Interrupted")


@pytest.mark.nightly
def test_workers_load_the_package_of_the_driver_in_a_folder_with_another_one(tmp_path: Path) -> None:
    """As `stepvalue label` does, whose path does not begin with the working folder."""
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "__init__.py").write_text("raise RuntimeError('a stranger')\n")
    code = (
        f"import sys; sys.path = [{str(ROOT)!r}, *(path for path in sys.path if path)]\n"
        "from pipeline.__main__ import main\n"
        "sys.exit(main(['label', 'data=sample', 'data.limit=1', 'policy=oracle', 'run_dir=run']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_folder_of_a_run_that_failed_stays_for_a_while(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    for error, left in ((None, 0), (Interrupted("stop"), 0), (ClusterError("no"), 1), (None, 1)):
        with suppress(Interrupted, ClusterError), connection._private_folder() as folder:
            assert Path(folder).parent.parent == tmp_path
            if error is not None:
                raise error
        assert len(list(tmp_path.iterdir())) == left
    monkeypatch.setattr(connection, "KEPT_SECONDS", 0)
    with connection._private_folder() as folder:
        assert list(tmp_path.iterdir()) == [Path(folder).parent]
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match=r"RAY_TMPDIR=.*none is not"), connection._private_folder():
        raise AssertionError("made")


HELD = """
import sys
from pipeline.cli.workers import set_up_ray
set_up_ray(None)
import ray
from pipeline.config.label import ClusterConfig
from pipeline.runtime import connection
with connection.cluster(ClusterConfig()):
    print(ray.get(ray.remote(lambda: "on").remote()), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def private(monkeypatch: pytest.MonkeyPatch) -> "Iterator[subprocess.Popen[bytes]]":
    """A process in a private Ray that has run a task, whose folder lies where every account may look."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    with tempfile.TemporaryDirectory(prefix="sv-", dir="/tmp", ignore_cleanup_errors=True) as parent:
        Path(parent).chmod(0o755)
        monkeypatch.setenv("RAY_TMPDIR", parent)
        run = subprocess.Popen(
            [sys.executable, "-c", HELD],
            cwd=ROOT,
            env=plain | {"RAY_TMPDIR": parent},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == b"on\n"
            yield run
        finally:
            run.kill()
            run.communicate()


@pytest.mark.ray
@pytest.mark.parametrize("killed", [[], pytest.param(["raylet"], marks=pytest.mark.nightly)])
def test_other_accounts_are_kept_out_while_ray_runs_and_the_next_start_removes_what_a_kill_leaves(
    killed: list[str], private: "subprocess.Popen[bytes]"
) -> None:
    parent = Path(os.environ["RAY_TMPDIR"])
    (folder,) = parent.iterdir()
    assert (folder.stat().st_mode & 0o7777, folder.stat().st_uid) == (0o700, os.geteuid())
    (session,) = folder.glob(f"*/session_*_{private.pid}")
    if os.geteuid() == 0:
        for path in (session / "logs" / "gcs_server.out", session / "sockets" / "raylet"):
            shown = subprocess.run(
                ["cat", path], user=65534, group=65534, extra_groups=[], capture_output=True, check=False
            )
            assert shown.stderr.endswith(b"Permission denied\n")
    with connection._private_folder():
        assert (session / "sockets" / "raylet").is_socket()
    for each in psutil.Process(private.pid).children():
        assert each.environ()["RAY_USAGE_STATS_ENABLED"] == "0"
        if each.name() in killed:
            each.kill()
    private.kill()
    private.wait()
    assert session.exists()
    with connection._private_folder() as own:
        assert list(parent.iterdir()) == [Path(own).parent]


@pytest.mark.parametrize(
    ("visible", "address", "remedy"),
    [
        ("", None, "CUDA_VISIBLE_DEVICES='' hides the GPUs of this machine: unset it"),
        ("-1", None, "CUDA_VISIBLE_DEVICES='-1' hides the GPUs of this machine: unset it"),
        (
            "0,1",
            None,
            "Ray sees no GPU on this machine: check `nvidia-smi` and CUDA_VISIBLE_DEVICES there. To run on CPUs",
        ),
        (None, None, "Ray sees no GPU on this machine"),
        ("", ADDRESS, "Ray sees no GPU on any node"),
    ],
)
def test_hidden_or_missing_gpus_are_explained(
    visible: str | None, address: str | None, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("ray.nodes", lambda: WITHOUT_GPU)
    monkeypatch.setattr(cluster, "placement_group", lambda *_, **__: None)
    monkeypatch.setattr(cluster, "remove_placement_group", lambda _: None)
    asked = ClusterConfig(address=address, gpus_per_worker=1, wait_seconds=0.01)
    with pytest.raises(ClusterError) as caught:
        cluster.share(asked, policy_for(policy_settings("oracle")))
    assert "1 worker of 1 CPU and 1 GPU does not fit" in str(caught.value)
    assert remedy in str(caught.value)


def test_a_wait_for_nodes_shows_each_change_once_and_asks_for_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter([WITHOUT_GPU, WITHOUT_GPU, ONE_GPU, ONE_GPU, ONE_GPU * 2])
    asked: list[object] = []
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.0)
    monkeypatch.setattr("ray.nodes", lambda: next(looks))
    monkeypatch.setattr(cluster, "placement_group", lambda bundles, strategy: asked.append((bundles, strategy)))
    monkeypatch.setattr(cluster, "remove_placement_group", asked.append)
    wanted = ClusterConfig(address=ADDRESS, workers=2, gpus_per_worker=1)
    assert cluster.share(wanted, policy_for(policy_settings("oracle"))).workers == 2
    assert asked == [([{"CPU": 1.0, "GPU": 1.0}] * 2, "SPREAD"), None]
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        "stepvalue: waiting up to 600 s (cluster.wait_seconds) for nodes to join: 2 workers of 1 CPU and 1 GPU"
    )
    assert "(16 CPUs and 0 GPUs on 1 node)" in first
    assert "can hold 1 (16 CPUs and 1 GPU on 1 node)" in second


def test_a_signal_ends_the_wait_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> None:
        raise Interrupted("stop")

    ended: list[object] = []
    monkeypatch.setattr("ray.nodes", lambda: WITHOUT_GPU)
    monkeypatch.setattr(cluster, "placement_group", lambda *_, **__: "asked")
    monkeypatch.setattr(cluster, "remove_placement_group", ended.append)
    with pytest.raises(Interrupted):
        cluster.share(ClusterConfig(address=ADDRESS, gpus_per_worker=1), policy_for(policy_settings("oracle")), check)
    assert ended == ["asked"]


def test_the_gpus_that_are_used_are_reported_where_more_nodes_may_join(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ray.nodes", lambda: [{"Alive": True, "Resources": {"CPU": 2.0, "GPU": 8.0}}])
    cluster.share(ClusterConfig(address=ADDRESS, gpus_per_worker=1), policy_for(policy_settings("oracle")))
    unused, used = capsys.readouterr().err.splitlines()
    assert unused.startswith("stepvalue: warning: 2 workers use 2 of the cluster's 8 GPUs: each needs 1 CPU and 1 GPU")
    assert used.startswith("stepvalue: 2 workers on 2 CPUs and 8 GPUs on 1 node; nodes that join later are not used")


STRANGER = """
import sys
from ray._raylet import GcsClient
print(len(GcsClient(address=sys.argv[1]).get_all_node_info()))
"""


@pytest.mark.nightly
@pytest.mark.ray
def test_a_private_ray_listens_on_the_loopback_interface_and_answers_nobody_without_its_token(
    private: "subprocess.Popen[bytes]",
) -> None:
    listens = listening_under(private.pid)
    assert {"gcs_server", "raylet", "ray::IDLE"} <= {name for name, _, _ in listens}
    assert {address for _, address, _ in listens} <= {LOOPBACK, "::1"}
    for _, _, port in listens:
        with socket.create_connection((LOOPBACK, port)) as asked_of:
            asked_of.sendall(b"GET / HTTP/1.1\r\nHost: ray\r\n\r\n")
            assert asked_of.recv(12).startswith((b"HTTP/1.1 401", bytes(2))), listens  # or frames of HTTP/2
    port = next(port for name, _, port in listens if name == "gcs_server")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    guess = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    for known, answered in ((token_of(private.pid), True), ({}, False), (guess, False)):
        words = [sys.executable, "-c", STRANGER, f"{LOOPBACK}:{port}"]
        asked = subprocess.run(words, env=plain | known, capture_output=True, text=True, timeout=60, check=False)
        assert (asked.returncode == 0) is answered, asked.stderr
        assert answered or "InvalidAuthToken" in asked.stderr


def token_of(pid: int) -> dict[str, str]:
    gcs = next(each for each in psutil.Process(pid).children(recursive=True) if each.name() == "gcs_server")
    return {name: value for name, value in gcs.environ().items() if name.startswith("RAY_AUTH")}


def listening_under(pid: int) -> list[tuple[str, str, int]]:
    """The name of the process, the address and the port of each listening socket."""
    listens = []
    for each in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            name, found = each.name(), each.net_connections("tcp")
            addresses = [one.laddr for one in found if one.status == psutil.CONN_LISTEN]
            listens += [(name, address.ip.removeprefix("::ffff:"), address.port) for address in addresses]
    return listens
