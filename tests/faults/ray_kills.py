"""kill -9 of a command with its private Ray, of the driver or of a worker, again and again until it ends by itself."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from tests.checkout import ROOT

SECONDS = 60.0
"""The longest that a start may take."""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pipeline", *words]


def committed(run_dir: Path) -> dict[str, bytes]:
    """The commit records of units, by name."""
    folder = run_dir / "commits"
    return {file.name: file.read_bytes() for file in sorted(folder.glob("unit-*.json"))} if folder.is_dir() else {}


def kills_until_done(words: Sequence[str], run_dir: Path, victim: str, *, most: int, apart: int) -> int:
    """Start a command until it ends well, and kill the `victim` at most `most` times in all, each time after 1 to `apart`
    commits. Returns the number of kills. No record that was committed changes."""
    luck, kills, before = random.Random(victim), 0, dict[str, bytes]()
    while True:
        process = subprocess.Popen(
            command(*words),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + SECONDS
            wanted = len(before) + luck.randint(1, apart)
            while process.poll() is None and time.monotonic() < deadline:
                if kills < most and len(committed(run_dir)) >= wanted and _kill(process, victim):
                    kills += 1
                    wanted = len(committed(run_dir)) + luck.randint(1, apart)
                time.sleep(0.01)
            said = process.communicate(timeout=SECONDS)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        now = committed(run_dir)
        assert before.items() <= now.items(), "no record that was committed has changed"
        before = now
        if process.returncode == 0:
            return kills
        assert process.returncode == -signal.SIGKILL, said


def _kill(process: "subprocess.Popen[str]", victim: str) -> bool:
    """Kill the driver or a worker. Returns whether there was one."""
    if victim == "driver":
        os.kill(process.pid, signal.SIGKILL)
        return True
    for worker in _workers(process):
        worker.kill()
        return True
    return False


def _workers(process: "subprocess.Popen[str]") -> Iterator[psutil.Process]:
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if any("_Actor" in word for word in child.cmdline()):
                yield child
        except psutil.Error:
            continue
