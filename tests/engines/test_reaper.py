"""Processes of an engine end with their owner, however the owner ends."""

import subprocess
import sys
import time
from pathlib import Path

from pipeline.engines.vllm.reaper import MARK, marked_processes

# Stands in for vLLM: a child in a session of its own, which would outlive its parent.
OWNER = """
import os, subprocess, sys, time
from pipeline.engines.vllm.guard import EngineGuard
from pipeline.engines.vllm.reaper import MARK
guard = EngineGuard()
child = [sys.executable, "-c", "import time; time.sleep(300)"]
subprocess.Popen(child, start_new_session=True)
time.sleep(0.3)
print(os.environ[MARK], flush=True)
if sys.argv[1] == "release":
    guard.release()
time.sleep(300)
"""


def owner(tmp_path: Path, then: str) -> tuple["subprocess.Popen[str]", str]:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    process = subprocess.Popen([sys.executable, str(script), then], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def none_left(token: str, seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while marked_processes(token) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not marked_processes(token)


def test_children_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    process, token = owner(tmp_path, "wait")
    assert len(marked_processes(token)) == 1
    process.kill()
    process.communicate()
    assert none_left(token)


def test_release_ends_them_and_leaves_the_owner(tmp_path: Path) -> None:
    process, token = owner(tmp_path, "release")
    assert none_left(token)
    assert process.poll() is None
    process.kill()
    process.communicate()


def test_the_mark_is_looked_up_whole() -> None:
    assert marked_processes("no-such-token") == []
    assert MARK.isidentifier()
