"""Points in the code at which a test has the process die, stop or fail: fault injection, as data bases are tested.

A crash is only proved harmless where it was made to happen. `failpoint("name")` stands where something becomes true: before a
file gets its name, behind a commit. It does nothing, unless the process was started with

    STEPVALUE_FAILPOINT=NAME:ACTION:HIT     at the HIT-th time (from 1) that NAME is reached: kill, stop, raise or enospc
    STEPVALUE_FAILPOINT_COUNT=FILE          each time that a point is reached, its name is added to FILE

`arm` reads these once. Who starts processes that are to be armed too hands the environment on, as Ray does.
Not covered: loss of what the kernel has not yet written; a killed process leaves that behind.
"""

import errno
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipeline.core.errors import UsageError

ARMED = "STEPVALUE_FAILPOINT"
COUNTED = "STEPVALUE_FAILPOINT_COUNT"


class Injected(Exception):
    """The failure that `raise` stands for: one that no code expects."""


def _raise() -> None:
    raise Injected(f"{ARMED} had this raised")


def _no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_ACTIONS: Mapping[str, Callable[[], None]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "raise": _raise,
    "enospc": _no_space,
}


@dataclass(slots=True, kw_only=True)
class _Trap:
    """What is armed in this process."""

    name: str = ""
    action: str = ""
    hit: int = 0
    log: str = ""
    reached: Counter[str] = field(default_factory=Counter)

    def spring(self, name: str) -> None:
        self.reached[name] += 1
        if self.log:
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        if name == self.name and self.reached[name] == self.hit:
            _ACTIONS[self.action]()


_trap: _Trap | None = None


def failpoint(name: str) -> None:
    """A place in the code that tests can make fail. Raises what the armed action raises; nothing where none is armed."""
    if _trap is not None:
        _trap.spring(name)


def arm(environment: Mapping[str, str]) -> str:
    """Do from now on what the environment asks for, and tell it in a line, "" where that is nothing.

    Raises UsageError for a value that cannot be read.
    """
    global _trap
    armed, log = environment.get(ARMED, ""), environment.get(COUNTED, "")
    name, action, hit = _parsed(armed) if armed else ("", "", 0)
    _trap = _Trap(name=name, action=action, hit=hit, log=log) if armed or log else None
    armed_text = ", ".join(f"{variable}={value}" for variable, value in ((ARMED, armed), (COUNTED, log)) if value)
    return (
        f"this run is made to fail for a test, unset the variable to have it work: {armed_text}" if armed_text else ""
    )


def _parsed(armed: str) -> tuple[str, str, int]:
    name, _, rest = armed.partition(":")
    action, _, hit = rest.partition(":")
    if not name or action not in _ACTIONS or not hit.isdecimal() or int(hit) < 1:
        raise UsageError(f"{ARMED}={armed} is not NAME:ACTION:HIT, ACTION one of {', '.join(_ACTIONS)}: unset it")
    return name, action, int(hit)
