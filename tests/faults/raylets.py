"""A Ray cluster of several nodes on one machine, made by `ray start` as on several: a head, where drivers join, and nodes where
workers are."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.faults.runs import until
from tests.ray_head import LOOPBACK, START_SECONDS, STARTED, STOP_SECONDS, TOKEN, free_port, ray_start

STORE_BYTES = 80_000_000
ORPHAN_MILLISECONDS = 30_000
"""How often an actor asks whether its raylet lives, and ends itself if not; with Ray's own second it may write nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A `ray start --block` and the processes under it."""

    process: "subprocess.Popen[bytes]"

    def child(self, name: str) -> psutil.Process:
        """The node's `raylet`, or the head's `gcs_server`."""
        return next(each for each in psutil.Process(self.process.pid).children() if each.name() == name)

    def lives(self) -> bool:
        with contextlib.suppress(psutil.Error, StopIteration):
            return bool(self.child("raylet").status() != psutil.STATUS_ZOMBIE)
        return False

    def actors(self) -> list[psutil.Process]:
        """The workers of `label` on this node; none where it is dead."""
        try:
            children: list[psutil.Process] = self.child("raylet").children()
            return [each for each in children if "_Actor" in " ".join(each.cmdline())]
        except (psutil.Error, StopIteration):
            return []

    def end(self) -> None:
        """At once, with all that came from it."""
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_SECONDS)


@dataclass(slots=True, kw_only=True)
class Raylets:
    """See the module. `nodes` begins with the head; the others are started with the options `each`."""

    folder: Path
    address: str
    each: tuple[str, ...]
    nodes: list[Node] = field(default_factory=list)

    @property
    def others(self) -> list[Node]:
        """The nodes but the head that are alive."""
        return [node for node in self.nodes[1:] if node.lives()]

    def actors(self) -> list[psutil.Process]:
        return [actor for node in self.nodes for actor in node.actors()]

    def grow(self, others: int) -> None:
        """Add nodes until the head has this number of other nodes, one by one: they choose names in one folder."""
        for _ in range(others - len(self.others)):
            self.start(f"--address={self.address}", *self.each)

    def start(self, *role: str) -> None:
        """Start a node and wait until it has joined."""
        log = self.folder / f"node-{len(self.nodes)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ray_start(*role, store_bytes=STORE_BYTES),
                env={
                    **os.environ,
                    **TOKEN,
                    "RAY_raylet_death_check_interval_milliseconds": str(ORPHAN_MILLISECONDS),
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.nodes.append(Node(process=process))
        until(lambda: STARTED in log.read_text(), START_SECONDS)


@contextmanager
def raylets(others: int, *each: str) -> Iterator[Raylets]:
    """A cluster of a head and `others` more nodes, with one CPU or the options `each`. All nodes are ended after the block."""
    with tempfile.TemporaryDirectory(prefix="sv-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        made = Raylets(folder=Path(folder), address=f"{LOOPBACK}:{free_port()}", each=each or ("--num-cpus=1",))
        try:
            port = made.address.rpartition(":")[2]
            head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")
            made.start(*head, "--num-cpus=0")
            made.grow(others)
            yield made
        finally:
            for node in reversed(made.nodes):
                node.end()
