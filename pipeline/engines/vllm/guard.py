"""Ends an engine's processes when their owner is gone, however it went.

vLLM works in processes of its own, and they outlive an owner that is killed: under pid 1, generating on, holding the device.
They carry a mark in their environment that names their owner, and a small process beside the owner ends them (see `reaper`).
What even that one could not end, because it was killed too, the next engine ends before it starts (see `leftovers`).
"""

import contextlib
import os
import subprocess
import sys

from pipeline.engines.vllm import reaper
from pipeline.engines.vllm.leftovers import end_leftovers, mark_of_this_process

_WAIT_SECONDS = 10.0


class EngineGuard:
    """Processes started after this one was made, and theirs, end with this process, or at `release`.

    Raises PolicyError when processes of an earlier owner can be found and not be ended.
    """

    def __init__(self) -> None:
        end_leftovers()
        mark = mark_of_this_process()
        os.environ[reaper.MARK] = mark
        os.environ["SPT_NOENV"] = "1"  # else a process that renames itself overwrites the mark
        os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = (
            "spawn"  # a forked process shows the environment of its parent's start
        )
        self._process = subprocess.Popen(
            [sys.executable, "-I", reaper.__file__, mark],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env={},
            close_fds=True,
        )

    def release(self) -> None:
        """Kill what is left of the engine, and wait until it is gone."""
        os.environ.pop(reaper.MARK, None)
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_WAIT_SECONDS)
