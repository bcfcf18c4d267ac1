"""Fault injection: points in the code at which a test can kill, stop or fail the process, as in tests of data bases.

Only a crash that a test has caused is proved to be harmless. `failpoint("name")` marks a moment at which the state of a run
changes, such as just before a file gets its name or just after a commit. It does nothing unless the process was started with

    STEPVALUE_FAILPOINT=NAME:ACTION:HIT     at the HIT-th time (from 1) that NAME is reached: kill, stop, raise or enospc
    STEPVALUE_FAILPOINT_COUNT=FILE          each time that a point is reached, its name is appended to FILE

`arm` reads these variables once. A process that starts other processes must pass the environment on, as Ray does.
Not covered: loss of data that the kernel has not yet written to disk, because a killed process does not lose such data.
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
    """The error that the action `raise` raises. No code expects it."""


def _raise() -> None:
    raise Injected(f"raised because of {ARMED}")


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
    """The failpoint and the log that are armed in this process, and how often each point was reached."""

    name: str = ""
    action: str = ""
    hit: int = 0
    log: str = ""
    reached: Counter[str] = field(default_factory=Counter)

    def trigger(self, name: str) -> None:
        self.reached[name] += 1
        if self.log:
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(f"{name}\n")
        if name == self.name and self.reached[name] == self.hit:
            _ACTIONS[self.action]()


_trap: _Trap | None = None


def failpoint(name: str) -> None:
    """Run the armed action if this point is due, and log the point if a log is armed. Raises what the action raises."""
    if _trap is not None:
        _trap.trigger(name)


def arm(environment: Mapping[str, str]) -> str:
    """Arm what the environment asks for. Return one line that says so for the user, or "" if nothing is armed.

    Raises UsageError for a value that cannot be parsed.
    """
    global _trap
    armed, log = environment.get(ARMED, ""), environment.get(COUNTED, "")
    name, action, hit = _parsed(armed) if armed else ("", "", 0)
    _trap = _Trap(name=name, action=action, hit=hit, log=log) if armed or log else None
    armed_text = ", ".join(f"{variable}={value}" for variable, value in ((ARMED, armed), (COUNTED, log)) if value)
    return f"fault injection for tests is on; unset the variable for a normal run: {armed_text}" if armed_text else ""


def _parsed(armed: str) -> tuple[str, str, int]:
    name, _, rest = armed.partition(":")
    action, _, hit = rest.partition(":")
    if not name or action not in _ACTIONS or not hit.isdecimal() or int(hit) < 1:
        raise UsageError(
            f"{ARMED}={armed} is not NAME:ACTION:HIT, where ACTION is one of {', '.join(_ACTIONS)}: unset the variable"
        )
    return name, action, int(hit)
