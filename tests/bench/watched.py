"""A command as a user starts it, watched from outside: what it says and when, and the processor time of all its processes.

Processes that outlive the command are ended, and counted.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import psutil

from tests.checkout import ROOT

LOOK_SECONDS = 0.2
"""Between looks at the processes, which take 4 to 8 ms each; what a process does after the last one is not seen."""
WORKER_TITLE = "ray::_Actor"
"""What Ray calls the process of an actor of `pipeline.runtime.actors`."""
GRACE_SECONDS = 5.0
"""For processes that are on their way out when the command ends."""


class Role(StrEnum):
    """Which part of a command a process is."""

    DRIVER = "driver"
    WORKER = "worker"
    ENGINE = "engine"
    RAY = "Ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A line of output, and the wall clock when it came."""

    at: float
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """CPU seconds of the command's processes, the ended ones too, until `at`."""

    at: float
    cpu_seconds: Mapping[Role, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A command that has ended well. `left` are the processes that it had not ended itself."""

    began: float
    ended: float
    said: Sequence[Said]
    looks: Sequence[Look]
    driver_mib: float
    left: int

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def between(self, begin: float, end: float) -> dict[Role, float]:
        """CPU seconds by role, on straight lines between looks."""
        times = [look.at for look in self.looks]
        spent = {role: [look.cpu_seconds[role] for look in self.looks] for role in Role}
        return {role: float(np.diff(np.interp([begin, end], times, spent[role]))[0]) for role in Role}

    def first(self, beginning: str) -> Said:
        """The first line that begins so. Raises SystemExit where there is none: the command speaks otherwise by now."""
        for said in self.said:
            if said.line.startswith(beginning):
                return said
        raise SystemExit(f"the command has printed no line that begins with {beginning!r}")


def watched(
    command: Sequence[str], *, look_seconds: float = LOOK_SECONDS, heard: Callable[[str], None] | None = None
) -> Watched:
    """Run it to its end. `heard` gets each line when it comes. Raises SystemExit with its last words where it fails."""
    began = time.time()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    said: list[Said] = []
    listening = threading.Thread(target=_listen, args=(process, said, heard))
    listening.start()
    family = _Family(driver=psutil.Process(process.pid))
    family.look()
    while _goes_on(process, look_seconds):
        family.look()
    ended = time.time()
    left = family.end()
    listening.join()
    if process.returncode:
        raise SystemExit("\n".join(each.line for each in said[-30:]))
    return Watched(
        began=began,
        ended=ended,
        said=said,
        looks=family.looks(),
        driver_mib=family.driver_bytes / 2**20,
        left=left,
    )


def _goes_on(process: "subprocess.Popen[str]", look_seconds: float) -> bool:
    """Whether it still does when it is time for another look."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(look_seconds)
    return process.poll() is None


def _listen(process: "subprocess.Popen[str]", said: list[Said], heard: Callable[[str], None] | None) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.append(Said(at=time.time(), line=line.rstrip("\n")))
        if heard is not None:
            heard(said[-1].line)


@dataclass(slots=True, kw_only=True)
class _Family:
    """A command's processes, those too whose parents have gone."""

    driver: psutil.Process
    members: dict[psutil.Process, float] = field(default_factory=dict)
    roles: dict[psutil.Process, Role] = field(default_factory=dict)
    seen: list[tuple[float, dict[psutil.Process, float]]] = field(default_factory=list)
    driver_bytes: int = 0

    def look(self) -> None:
        with suppress(psutil.Error):
            for found in (self.driver, *self.driver.children(recursive=True)):
                self.members.setdefault(found, 0.0)
        for member in self.members:
            with suppress(psutil.Error):
                times = member.cpu_times()
                self.members[member] = times.user + times.system
                if self.roles.get(member, Role.RAY) is Role.RAY:
                    self.roles[member] = self._role(member)
        with suppress(psutil.Error):
            self.driver_bytes = max(self.driver_bytes, self.driver.memory_info().rss)
        self.seen.append((time.time(), dict(self.members)))

    def looks(self) -> list[Look]:
        """A process that Ray kept in stock before it made a worker of it was a worker all the time."""
        looks = []
        for at, members in self.seen:
            spent = dict.fromkeys(Role, 0.0)
            for member, seconds in members.items():
                spent[self.roles.get(member, Role.RAY)] += seconds
            looks.append(Look(at=at, cpu_seconds=spent))
        return looks

    def end(self) -> int:
        """Kill what does not end by itself; how many that were."""
        _, left = psutil.wait_procs([member for member in self.members if member != self.driver], GRACE_SECONDS)
        for member in left:
            with suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(left)
        return len(left)

    def _role(self, member: psutil.Process) -> Role:
        title = " ".join(member.cmdline()[:1])
        if member == self.driver:
            return Role.DRIVER
        if title.startswith("VLLM::"):
            return Role.ENGINE
        if title.startswith(WORKER_TITLE):
            return Role.WORKER
        return Role.RAY
