"""The program of the guard process: it ends an engine's processes when their owner ends in any way. See `guard`.

It waits until its owner's end of a pipe closes, which the kernel guarantees, and then kills every process with the owner's mark
in its environment. It is run as a file, in an interpreter that sees no other module of this package. Linux only.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

MARK = "STEPVALUE_ENGINE_OWNER"
_LOOK_SECONDS = 0.02


def process_marks() -> dict[int, str]:
    """The marks of this user's processes by pid. A process that is ending has no mark any more."""
    name = f"{MARK}=".encode()
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.geteuid():
                    for entry in (folder / "environ").read_bytes().split(b"\0"):
                        if entry.startswith(name):
                            found[int(folder.name)] = entry.removeprefix(name).decode(errors="replace")
    return found


def marked_processes(mark: str) -> list[int]:
    """The pids of this user's processes with this mark."""
    return [pid for pid, carried in process_marks().items() if carried == mark]


def _reap(mark: str) -> None:
    sys.stdin.buffer.read()
    # A process may start while its parent is being killed: repeat until none is found.
    while pids := marked_processes(mark):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _reap(sys.argv[1])
