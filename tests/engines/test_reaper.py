"""Processes of an engine end with their owner, however the owner ends."""

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pipeline.engines.vllm import reaper
from pipeline.engines.vllm.guard import end_orphans
from pipeline.engines.vllm.reaper import (
    MARK,
    NAMES,
    SHARED_MEMORY,
    TRACKER_SECONDS,
    marked_processes,
    names_kept_in,
    processes_to_end,
    remove_shared_memory,
)

pytestmark = pytest.mark.slow

# Stands in for vLLM: a child in a session of its own, which would outlive its parent.
OWNER = """
import os, subprocess, sys, time
from pipeline.engines.vllm.guard import EngineGuard
from pipeline.engines.vllm.reaper import MARK
guard = EngineGuard()
child = [sys.executable, "-c", sys.argv[2]]
made = subprocess.Popen(child, start_new_session=True, stdout=subprocess.PIPE)
made.stdout.readline()
if sys.argv[1] == "all":
    time.sleep(1.0)  # the guard looks at them
print(os.environ[MARK], flush=True)
if sys.argv[1] == "release":
    guard.release()
time.sleep(300)
"""


# It maps shared memory, and nobody removes it when it is killed.
CHILD = """
import mmap, time
with open({path!r}, "wb") as file:
    file.write(bytes(4096))
with open({path!r}, "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 4096)
print("mapped", flush=True)
time.sleep(300)
"""


def shared_memory() -> Path:
    """A name of its own."""
    return SHARED_MEMORY / f"psm_test_{secrets.token_hex(8)}"


def owner(tmp_path: Path, then: str, path: Path | None = None) -> tuple["subprocess.Popen[str]", str]:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    child = CHILD.format(path=str(path)) if path else "import time; print('up', flush=True); time.sleep(300)"
    process = subprocess.Popen([sys.executable, str(script), then, child], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def soon(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 15
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def none_left(token: str) -> bool:
    return soon(lambda: not marked_processes(token))


def gone(*paths: Path) -> bool:
    return soon(lambda: not any(path.exists() for path in paths))


def guards(token: str) -> list[int]:
    """The guard processes of a mark, which is their argument."""
    return [process.pid for process in psutil.process_iter() if token in _arguments(process)]


def _arguments(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def test_children_end_when_their_owner_is_killed_but_the_guard_is_none_of_them(tmp_path: Path) -> None:
    """A worker of Ray that ends kills its children."""
    process, token = owner(tmp_path, "wait")
    assert len(marked_processes(token)) == 1
    (guard,) = guards(token)
    assert guard not in {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    process.kill()
    process.communicate()
    assert none_left(token)


def test_release_ends_them_and_leaves_the_owner(tmp_path: Path) -> None:
    process, token = owner(tmp_path, "release")
    assert none_left(token)
    assert process.poll() is None
    process.kill()
    process.communicate()


def test_their_shared_memory_goes_with_them(tmp_path: Path) -> None:
    path, other = shared_memory(), shared_memory()
    other.write_bytes(b"of somebody else")
    process, token = owner(tmp_path, "wait", path)
    assert path.exists()
    process.kill()
    process.communicate()
    assert none_left(token)
    assert gone(path, SHARED_MEMORY / f"{NAMES}{token}")
    assert other.exists()
    other.unlink()


SEMAPHORES = """
import multiprocessing, os, time
from pipeline.engines.vllm.guard import EngineGuard
from pipeline.engines.vllm.reaper import MARK
guard = EngineGuard()
locks = [multiprocessing.get_context("spawn").Lock() for _ in range({count})]
print(os.environ[MARK], locks[0]._semlock.name, locks[-1]._semlock.name, flush=True)
time.sleep(300)
"""


def semaphores(tmp_path: Path, count: int) -> tuple["subprocess.Popen[str]", str, list[Path]]:
    """An owner with its mark, and its first and its last semaphore."""
    script = tmp_path / "owner.py"
    script.write_text(SEMAPHORES.format(count=count))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    token, *names = process.stdout.readline().split()
    paths = [SHARED_MEMORY / f"sem.{name.removeprefix('/')}" for name in names]
    assert all(path.exists() for path in paths)
    return process, token, paths


def test_semaphores_of_an_owner_that_is_killed_go_too(tmp_path: Path) -> None:
    """Its tracker removes them, which takes a moment."""
    process, token, paths = semaphores(tmp_path, 3000)
    process.kill()
    process.communicate()
    assert none_left(token)
    assert gone(*paths)


# A process of the engine makes semaphores and shared memory, and is killed before the guard looks.
KILLED = """
import multiprocessing, os, signal, time
from multiprocessing.shared_memory import SharedMemory
from pipeline.engines.vllm.guard import EngineGuard
from pipeline.engines.vllm.reaper import MARK

def engine(names):
    made = multiprocessing.get_context("spawn").Lock()
    memory = SharedMemory(create=True, size=4096)
    names.send((os.getpid(), made._semlock.name, memory.name))
    time.sleep(300)

if __name__ == "__main__":
    guard = EngineGuard()
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=engine, args=(theirs,))
    process.start()
    pid, lock, memory = ours.recv()
    os.kill(pid, signal.SIGKILL)
    process.join()
    mark = os.environ[MARK]
    guard.release()
    print(mark, lock, memory, flush=True)
    input()
"""


def test_what_a_killed_engine_left_goes_with_an_owner_that_released_it(tmp_path: Path) -> None:
    """The owner's tracker alone knows of it, so a release does not end the tracker, and does not wait for it."""
    script = tmp_path / "owner.py"
    script.write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    mark, lock, memory = process.stdout.readline().split()
    left = [SHARED_MEMORY / f"sem.{lock.removeprefix('/')}", SHARED_MEMORY / memory.removeprefix("/")]
    assert all(path.exists() for path in left)
    assert len(marked_processes(mark)) == 1
    assert processes_to_end(mark) == []
    process.communicate("go on\n")
    assert process.returncode == 0
    assert gone(*left)
    assert none_left(mark)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", str, int, list[Path]]]:
    """An owner with its mark, its tracker, which is stopped, and its semaphores."""
    process, token, paths = semaphores(tmp_path, 2)
    (tracker,) = marked_processes(token)
    os.kill(tracker, signal.SIGSTOP)
    yield process, token, tracker, paths
    assert process.stdout is not None
    process.stdout.close()
    for path in paths:
        path.unlink(missing_ok=True)


def test_the_next_start_leaves_a_tracker_time_for_its_work(
    stopped: tuple["subprocess.Popen[str]", str, int, list[Path]],
) -> None:
    """The guard process was killed with the owner."""
    process, token, tracker, paths = stopped
    for pid in (*guards(token), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    goes_on = threading.Timer(TRACKER_SECONDS / 4, os.kill, (tracker, signal.SIGCONT))
    goes_on.start()
    end_orphans()
    goes_on.join()
    assert not any(path.exists() for path in paths)
    assert marked_processes(token) == []


def test_a_tracker_that_does_not_end_is_killed(stopped: tuple["subprocess.Popen[str]", str, int, list[Path]]) -> None:
    process, token, _, _ = stopped
    process.kill()
    process.wait()
    assert none_left(token)


def test_shared_memory_that_outlived_everything_is_removed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Owner, engine and guard are killed at once, after the guard has looked."""
    path = shared_memory()
    script = tmp_path / "reaper.py"
    script.write_text(Path(reaper.__file__).read_text().replace("_LEARN_SECONDS = 5.0", "_LEARN_SECONDS = 0.1"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    process, token = owner(tmp_path, "all", path)
    guard = subprocess.Popen(
        [sys.executable, "-I", str(script), token], stdin=subprocess.PIPE, start_new_session=True, env={}
    )
    kept = SHARED_MEMORY / f"{NAMES}{token}"
    assert soon(kept.exists)
    assert kept.stat().st_mode & 0o777 == 0o600
    for each in (*guards(token), process.pid, *marked_processes(token)):
        os.kill(each, signal.SIGKILL)
    process.communicate()
    guard.communicate()
    assert path.exists()
    end_orphans()
    assert not path.exists()
    assert not kept.exists()


def test_only_shared_memory_of_this_user_is_removed(tmp_path: Path) -> None:
    outside = tmp_path / "file"
    outside.write_text("kept")
    link = shared_memory()
    link.symlink_to(outside)
    remove_shared_memory([f"../..{outside}", link.name, "no-such-name", ""])
    assert outside.exists()
    assert link.is_symlink()
    assert names_kept_in(link) == []
    link.unlink()


def test_the_mark_is_looked_up_whole() -> None:
    assert marked_processes("no-such-token") == []
    assert MARK.isidentifier()
