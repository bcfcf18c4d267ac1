"""A new engine first ends the processes of a dead owner, and no other processes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pipeline.core.errors import PolicyError
from pipeline.engines.vllm import guard
from pipeline.engines.vllm.guard import end_orphans, mark_of_this_process
from pipeline.engines.vllm.reaper import MARK, process_marks
from tests.conftest import ROOT

HEX = "0123456789abcdef" * 2
SECONDS = 10
Start = Callable[[str | None], "subprocess.Popen[bytes]"]
NAMESPACE = 17
"""Stands for the pid namespace. Engines of other tests, which start at any time, take these marks for those of a container."""
IN_NAMESPACE = f"""
from pipeline.engines.vllm import guard
guard._pid_namespace = lambda: {NAMESPACE}
"""

# Stands in for a worker with vLLM: a child in a session of its own.
OWNER = f"""
import subprocess, sys, time
{IN_NAMESPACE}
kept = guard.EngineGuard()
child = subprocess.Popen([sys.executable, "-c", "print(flush=True); import time; time.sleep(300)"],
                         start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(300)
"""


def stat_fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def mark(pid: int, *, namespace: int = NAMESPACE, later: int = 0) -> str:
    """The mark of an owner with this pid whose start is `later` ticks after that of the current process."""
    return f"{namespace}-{pid}-{int(stat_fields(pid)[19]) + later}-{HEX}"


@pytest.fixture(autouse=True)
def namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_pid_namespace", lambda: NAMESPACE)


@pytest.fixture
def sleeper() -> Iterator[Start]:
    """Starts idle processes with marks."""
    started: list[subprocess.Popen[bytes]] = []

    def start(carried: str | None) -> "subprocess.Popen[bytes]":
        environment = {"OTHER": "x"} if carried is None else {"OTHER": "x", MARK: carried}
        started.append(subprocess.Popen(["/bin/sleep", "300"], env=environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def zombie() -> Iterator[int]:
    process = subprocess.Popen(["/bin/true"])
    while stat_fields(process.pid)[0] != "Z":
        pass
    yield process.pid
    process.wait()


@pytest.fixture
def dead() -> str:
    """The mark of a process that has ended."""
    process = subprocess.Popen(["/bin/sleep", "300"])
    carried = mark(process.pid)
    process.kill()
    process.wait()
    return carried


def test_only_what_a_dead_owner_left_is_ended(sleeper: Start, zombie: int, dead: str) -> None:
    reused = mark(os.getpid(), later=-1)
    orphans = [sleeper(carried) for carried in (dead, mark(zombie), reused)]
    spared = {
        "unmarked": sleeper(None),
        "of a living owner": sleeper(mark_of_this_process()),
        "of a container": sleeper(mark(zombie, namespace=NAMESPACE + 1)),
        "of another program": sleeper(f"{os.getpid()}-17"),
        "more than a mark": sleeper(f"{dead}0"),
        "empty": sleeper(""),
    }
    end_orphans(SECONDS)
    assert [process.wait(SECONDS) for process in orphans] == [-signal.SIGKILL] * 3
    assert {name for name, process in spared.items() if process.poll() is not None} == set()


def has_ended(process: psutil.Process) -> bool:
    """Whether the process has ended. It may be a zombie whose exit status pid 1 has not fetched."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_child_of_an_owner_outlives_it_and_its_guard_only_until_the_next_one_starts(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)

    def start() -> tuple["subprocess.Popen[str]", psutil.Process]:
        process = subprocess.Popen([sys.executable, str(script)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, psutil.Process(int(process.stdout.readline()))

    owner, orphan = start()
    mark = process_marks()[orphan.pid]
    (guard,) = (process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or []))
    guard.kill()
    owner.kill()
    owner.communicate()
    assert not has_ended(orphan)
    second, child = start()
    assert has_ended(orphan)
    third, other = start()
    assert not has_ended(child)
    for process in (second, third):
        process.kill()
        process.communicate()
    deadline = time.monotonic() + SECONDS
    while not (has_ended(child) and has_ended(other)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert has_ended(child)
    assert has_ended(other)


def test_what_cannot_be_ended_is_named_with_the_remedy(
    sleeper: Start, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = sleeper(dead)
    remedy = rf"processes {process.pid} of .*end them or restart the machine"
    with monkeypatch.context() as patched:
        patched.setattr(os, "kill", lambda pid, number: None)
        with pytest.raises(PolicyError, match=remedy):
            end_orphans(0.2)


def test_a_process_does_not_end_its_own_family(sleeper: Start, dead: str) -> None:
    sibling = sleeper(dead)
    script = f"{IN_NAMESPACE}guard.end_orphans({SECONDS}); print('done')"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={**os.environ, MARK: dead}, capture_output=True, text=True
    )
    assert done.stdout == "done\n", done.stderr
    assert sibling.poll() is None


def test_every_mark_is_new_and_names_this_process() -> None:
    first, second = mark_of_this_process(), mark_of_this_process()
    assert first != second
    assert re.fullmatch(rf"{NAMESPACE}-{os.getpid()}-\d+-[0-9a-f]{{32}}", first)


def test_a_mark_names_the_pid_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert mark_of_this_process().startswith(f"{Path('/proc/self/ns/pid').stat().st_ino}-{os.getpid()}-")


def test_marks_are_read_from_processes_of_this_user(sleeper: Start) -> None:
    process = sleeper("a mark")
    found = process_marks()
    assert found[process.pid] == "a mark"
    assert os.getpid() not in found
