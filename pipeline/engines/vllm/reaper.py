"""What a guard process runs: it ends an engine's processes when their owner is gone, however it went. See `guard`.

It waits for its owner's end of a pipe to close, which the kernel does in every case, and then kills what carries the owner's
mark in its environment. Run as a file, in an interpreter that sees no other module of this package. Linux only.
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
    """The marks that processes of this user carry, by their pids. A process that is ending carries none any more."""
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
    """Processes of this user that carry this mark."""
    return [pid for pid, carried in process_marks().items() if carried == mark]


def _reap(mark: str) -> None:
    sys.stdin.buffer.read()
    # A process may be started while its parent is being killed: look again until there is none.
    while pids := marked_processes(mark):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _reap(sys.argv[1])
