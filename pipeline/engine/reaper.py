"""Ends an engine's processes when their owner is gone, however it went.

vLLM works in processes of its own, and they outlive an owner that is killed: under pid 1, generating on, holding the device.
A guard is a small process that waits for its owner's end of a pipe to close, which the kernel does in every case, and then
kills what carries the owner's mark in its environment. Linux only.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

MARK = "STEPVALUE_ENGINE_OWNER"
_WAIT_SECONDS = 10.0


class EngineGuard:
    """Processes started after this one was made, and theirs, end with this process, or at `release`."""

    def __init__(self) -> None:
        token = secrets.token_hex(16)
        os.environ[MARK] = token
        os.environ["SPT_NOENV"] = "1"  # else a process that renames itself overwrites the mark
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, token],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={},
            close_fds=True,
        )

    def release(self) -> None:
        """Kill what is left of the engine, and wait until it is gone."""
        os.environ.pop(MARK, None)
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_WAIT_SECONDS)


def marked(token: str) -> list[int]:
    """Processes of this user that carry the mark."""
    mark = f"{MARK}={token}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
    return found


def _reap(token: str) -> None:
    sys.stdin.buffer.read()
    # A process may be started while its parent is being killed: look again until there is none.
    while pids := marked(token):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    _reap(sys.argv[1])
