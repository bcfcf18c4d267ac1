"""Starts a private Ray on the loopback interface, or joins a cluster. Only this file, `cluster`, `metrics` and `actors` import
ray."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ray
from ray.job_config import JobConfig

import pipeline
from pipeline.config.label import ClusterConfig
from pipeline.core.errors import ClusterError, Interrupted
from pipeline.core.formatting import printable
from pipeline.core.output import capture_errors, say
from pipeline.engines.vllm.engine_log import holds_wanted_logs
from pipeline.storage.temporary import keep, owned_folder, remove, remove_left_over

OBJECT_STORE_BYTES = 100 * 1024 * 1024
"""Object store of a private Ray in bytes. It only carries receipts, so it is little more than Ray's own minimum."""
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 10.0
JOIN_SECONDS = 120.0
"""How long a cluster may take to let this process in."""
POLL_SECONDS = 0.1
KEPT_SECONDS = 24 * 3600.0
"""For how long the folder of a run stays that failed, or whose engine died: somebody may look for the reason."""
_RAY = "stepvalue-ray-"
MAX_REASON_CHARACTERS = 200
RAY_JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Set where `ray job submit` has started this process, and distributes the code."""
_RAY_ERRORS = (ConnectionError, RuntimeError, ValueError, TimeoutError)
# The connection preface of RFC 9113 (3.4): a fixed text and a frame of SETTINGS without content. A server answers with its own
# frame of SETTINGS at once: three bytes of length, the type 4, a byte of flags.
_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_LENGTH_BYTES = 3
_HTTP2_SETTINGS = bytes([4, 0])
PRIVATE_RAY = {
    # With Ray's default of 15, an engine waits for everything else that the machine does.
    "RAY_worker_niceness": "0",
    # Each of these costs the engine about one percent of a core: unused workers in reserve, and figures for a dashboard that
    # does not run.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_worker_prestart": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_event_stats": "0",
    # No such port is there: these two servers of figures would ask nobody for the token.
    "AUTOSCALER_METRIC_PORT": "-1",
    "DASHBOARD_METRIC_PORT": "-1",
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
def cluster(config: ClusterConfig, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Join the given cluster, or start a private one on the loopback interface, unless this process is in one already. `check`
    is called while it joins.

    Raises ClusterError, and what `check` raises.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with _private_ray() if config.address is None else _joined(config.address, check):
        yield


@contextmanager
def _private_ray() -> Iterator[None]:
    for name, value in PRIVATE_RAY.items():
        os.environ.setdefault(name, value)
    with _private_folder() as folder:
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                object_store_memory=OBJECT_STORE_BYTES,
                job_config=_job_config(),
                _temp_dir=folder,
            )
        except Exception as error:  # where its processes are late, as on a busy machine, Ray raises no narrower class
            raise ClusterError(f"Ray cannot start on this machine: {_short(error)}") from error
        try:
            _check_loopback()
            yield
        finally:
            ray.shutdown()


@contextmanager
def _private_folder() -> Iterator[str]:
    """The folder of a private Ray's logs and sockets, for this account alone. It stays after a failure or an engine's death.

    Earlier ones go: of killed processes now, and of others KEPT_SECONDS after their end."""
    # Ray's sockets lie in it, and their paths may have 107 bytes at most.
    parent = os.environ.get("RAY_TMPDIR", "/tmp")
    if not os.path.isabs(parent) or not os.access(parent, os.W_OK | os.X_OK):
        raise ClusterError(f"RAY_TMPDIR={printable(parent)} is not the absolute path of a folder that can be written")
    remove_left_over(_RAY, parent, kept_seconds=KEPT_SECONDS)
    with owned_folder(_RAY, parent) as folder:
        is_wanted = True
        try:
            yield str(folder / "r")  # Ray opens the one that it is given, and all below, to every account
            is_wanted = holds_wanted_logs(folder)
        except (Interrupted, KeyboardInterrupt):
            is_wanted = False
            raise
        finally:
            (keep if is_wanted else remove)(folder)


@contextmanager
def _joined(asked: str, check: Callable[[], None]) -> Iterator[None]:
    address = _resolved(asked)
    _check_answers(asked, address, check)
    _join(asked, address, check)
    say(f"joined the Ray cluster at {address}")
    try:
        yield
    finally:
        ray.shutdown()


def _join(asked: str, address: str, check: Callable[[], None]) -> None:
    """Raises ClusterError, also where Ray is not in after JOIN_SECONDS, and what `check` raises.

    Ray joins in C++ code that hears no signal and has no limit of its own, so it does this in a thread of its own. Where that
    never ends, the process can still end.
    """
    failures: list[BaseException] = []

    def join() -> None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", job_config=_job_config())
        except BaseException as error:  # noqa: BLE001  it is raised again below
            failures.append(error)

    thread = threading.Thread(target=join, name="join the Ray cluster", daemon=True)
    deadline = time.monotonic() + JOIN_SECONDS
    with _quiet_unless_ended(address):
        thread.start()
        while thread.is_alive():
            check()
            if time.monotonic() >= deadline:
                raise ClusterError(
                    f"the Ray cluster at {_named(asked, address)} answers, but has not let this process in after "
                    f"{JOIN_SECONDS:g} s: check `ray status` on its head, that it runs this version of Ray, and that all its "
                    "ports are open to this machine"
                )
            thread.join(POLL_SECONDS)
    for error in failures:
        if isinstance(error, _RAY_ERRORS):
            raise ClusterError(
                f"the Ray cluster at {_named(asked, address)} answers, but refuses this client or does not run this version of "
                "Ray: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to the cluster's token (on its head: `ray get-auth-token`) "
                f"({_short(error)})"
            ) from error
        raise error


def _job_config() -> JobConfig | None:
    """Has workers import this package from where the driver has it. None where Ray itself distributes the code.

    Ray puts the working folder first on their path, also where the driver does not look there: another package of the same name
    in that folder would be taken for this one.
    """
    if RAY_JOB_CONFIG in os.environ:
        return None
    root, here = str(Path(pipeline.__file__).resolve().parent.parent), os.getcwd()
    return JobConfig(_py_driver_sys_path=_Fixed([here, root] if {"", here} & set(sys.path) else [root]))


class _Fixed(list[str]):
    """A list that Ray does not extend. The last entry goes first on the path of workers."""

    def extend(self, more: Iterable[str]) -> None:
        """Ray adds the working folder and that of the script."""


@contextmanager
def _quiet_unless_ended(address: str) -> Iterator[None]:
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
        with capture_errors() as written:
            assert watcher.stdin is not None
            watcher.stdin.write(f"{written}\n".encode())
            watcher.stdin.flush()
            yield
    finally:
        watcher.communicate(_JOINED.encode())


def _check_loopback() -> None:
    address = ray.util.get_node_ip_address()
    if address != LOOPBACK:
        raise ClusterError(
            f"the private Ray would listen on {address} instead of only {LOOPBACK}: start the run through the command line, or "
            "name a cluster with cluster.address"
        )


def _resolved(asked: str) -> str:
    """The address of a cluster. `auto` means the one in the environment, else that of the last `ray start` on this machine."""
    if asked != "auto":
        return asked
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    with contextlib.suppress(OSError):
        parent = os.environ.get("RAY_TMPDIR", os.environ.get("TMPDIR", "/tmp"))  # as Ray chooses it
        if address := (Path(parent) / "ray" / "ray_current_cluster").read_text().strip():
            return address
    raise ClusterError(
        _no_cluster("cluster.address=auto", "no `ray start` on this machine, and RAY_ADDRESS is not set")
    )


def _check_answers(asked: str, address: str, check: Callable[[], None]) -> None:
    """Raise ClusterError unless a server of HTTP/2, which Ray's are, listens there and says so within CONNECT_SECONDS, and what
    `check` raises. Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or "/" in host or not port.isdecimal():
        return
    deadline = time.monotonic() + CONNECT_SECONDS
    try:
        # An address of IPv6 stands in brackets.
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return  # a server of TLS says nothing to the text below
            connection.sendall(_HTTP2_HELLO)
            connection.settimeout(POLL_SECONDS)
            said = b""
            while len(said) < _LENGTH_BYTES + len(_HTTP2_SETTINGS):
                check()
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"no answer within {CONNECT_SECONDS:g} s")
                with contextlib.suppress(TimeoutError):
                    if not (more := connection.recv(1)):
                        break
                    said += more
    except (OSError, OverflowError) as error:
        raise ClusterError(_no_cluster(_named(asked, address), _short(error))) from error
    if said[_LENGTH_BYTES:] != _HTTP2_SETTINGS:
        raise ClusterError(_no_cluster(_named(asked, address), "something else than Ray listens there"))


def _named(asked: str, address: str) -> str:
    """How a message names the address."""
    return printable(f"cluster.address={asked}" + (f" ({address})" if address != asked else ""))


def _short(error: BaseException) -> str:
    return printable(str(error))[:MAX_REASON_CHARACTERS]


def _no_cluster(named: str, reason: str) -> str:
    return (
        f"no Ray cluster answers at {named}: start one with `ray start --head`, give its address, or leave cluster.address out "
        f"to use this machine alone ({reason})"
    )
